"""Programs that never end, and programs that want more memory than they may have; functions `f` without arguments."""


def _f(body: str, before: str = "") -> str:
    return before + "def f():\n" + "".join(f"    {line}\n" for line in body.splitlines())


LOOPS = (
    ("a bare loop", _f("while True: pass")),
    ("a loop that counts", _f("n = 0\nwhile True:\n    n += 1")),
    ("a walk around two cells", _f("cells = [1, 0]\nn = 0\nwhile True: n = cells[n]")),
    ("generators without end", _f("def g():\n    while True: yield 1\nreturn sum(g()) * 0")),
    ("a long sum in C", _f("return sum(range(10 ** 12))")),
    ("a long power in C", _f("return pow(3, 10 ** 200_000, 10 ** 5_000 + 1)")),
    ("a regular expression", _f("return re.match('(a+)+$', 'a' * 64 + 'b')", "import re\n")),
    ("a search in C", _f("return -1 in itertools.count()", "import itertools\n")),
    ("a loop that swallows exceptions", _f("while True:\n    try: 1 / 0\n    except BaseException: pass")),
    ("a loop in finally", _f("while True:\n    try: return 1\n    finally: continue")),
    ("a loop at import", "while True:\n    pass\n" + _f("return 1")),
    ("a long sum at import", "N = sum(range(10 ** 12))\n" + _f("return N")),
    # Most of their time is the kernel's.
    ("pages taken and given back", _f("while True: bytearray(32 << 20)")),
    ("two areas in turns", _f("while True:\n    a = bytearray(b'x') * (48 << 20)\n    del a\n    bytearray(16 << 20)")),
)
HOGS = (
    ("a terabyte at once", _f("return len(bytes(1 << 40))")),
    ("half a gigabyte at once", _f("return len(bytearray(512 << 20))")),
    ("a long list", _f("return len([0] * 10 ** 9)")),
    ("a long text", _f("return len('x' * 10 ** 10)")),
    ("a large number", _f("return (1 << (1 << 34)).bit_length()")),
    ("a long list at import", "N = [None] * 10 ** 9\n" + _f("return len(N)")),
    ("untouched pieces, kept", _f("kept = []\nwhile True: kept.append(bytes(16 << 20))")),
    ("touched pieces, kept", _f("kept = []\nwhile True: kept.append(bytearray(b'x') * (16 << 20))")),
    ("a list that doubles", _f("kept = [0]\nwhile True: kept += kept")),
)
