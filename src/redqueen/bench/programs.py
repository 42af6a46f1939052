"""The programs that all contestants run: small ones, of the sort that teachers write. Standard library only."""

PROGRAMS = (
    ("def f(x):\n    return x + 1\n", "41"),
    ("def f(s):\n    return s[::-1].upper()\n", "'abc def'"),
    ("def f(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n", "30"),
    ("def f(xs):\n    return sorted(set(xs), reverse=True)\n", "[3, 1, 2, 3, 1]"),
    ("def f(xs):\n    return [x * x for x in xs if x % 2]\n", "[1, 2, 3, 4, 5]"),
    (
        "def f(s):\n    counts = {}\n    for c in s:\n        counts[c] = counts.get(c, 0) + 1\n    return counts\n",
        "'mississippi'",
    ),
    ("def g(n):\n    return n if n < 2 else g(n - 1) + g(n - 2)\ndef f(n):\n    return g(n)\n", "8"),
    ("import math\ndef f(a, b):\n    return math.gcd(a, b), a * b // math.gcd(a, b)\n", "84, 36"),
)

LOOP = "def f(x):\n    while True:\n        x += 1\n"
