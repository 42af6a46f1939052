"""Functions whose results are known: each is called here and run in the verifier, from the same text.

They are our own, plain and without side effects. A function's text travels alone, so it imports what it needs itself.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True)
class Function:
    """One of them, and how its arguments are drawn."""

    call: Callable[..., Any]
    draw: Callable[[Random], tuple[Hashable, ...]]


@cache
def verdict(function: Function, values: tuple[Hashable, ...]) -> str:
    """What the verifier must say of this call. Remembered: some calls take their time."""
    try:
        return f"ok:{function.call(*values)!a}"
    except (ArithmeticError, LookupError, ValueError) as error:
        return f"exc:{type(error).__name__}"


# Short.


def line(x, a, b):
    return a * x + b


def turned(text, n):
    return text[::-1].upper() * n


def odd_squares(numbers):
    return [n * n for n in numbers if n % 2]


def divided(a, b):
    return divmod(a, b)


def third(numbers):
    return sorted(numbers)[2]


def number_in(text, base):
    return int(text, base)


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def letters(text):
    counts = {}
    for letter in text:
        counts[letter] = counts.get(letter, 0) + 1
    return counts


def common(a, b):
    import math

    return math.gcd(a, b), a * b // math.gcd(a, b)


def hanoi(discs):
    def move(n, start, end, spare):
        if n == 0:
            return []
        return [*move(n - 1, start, spare, end), (start, end), *move(n - 1, spare, end, start)]

    return move(discs, "a", "c", "b")


def mean(numbers):
    from fractions import Fraction

    exact = Fraction(sum(numbers), len(numbers))
    return exact.numerator, exact.denominator


def brackets(text):
    import re

    while (shorter := re.sub(r"\(\)|\[\]|\{\}", "", text)) != text:
        text = shorter
    return not text


# Long: tens of milliseconds.


def collatz(most):
    longest = (0, 0)
    for start in range(1, most):
        n, steps = start, 0
        while n != 1:
            n = 3 * n + 1 if n % 2 else n // 2
            steps += 1
        longest = max(longest, (steps, start))
    return longest


def primes(most):
    found = []
    for n in range(2, most):
        if all(n % p for p in found if p * p <= n):
            found.append(n)
    return len(found), found[-1]


def remainders(n, modulus):
    return sum(i * i % modulus for i in range(n))


# Large: 50 to 100 MB.


def sieve(megabytes):
    flags = bytearray(b"\x01") * (megabytes << 20)
    flags[::2] = bytes(len(flags) // 2)
    return len(flags), sum(flags[:1000])


def slots(megabytes):
    cells = [0] * (megabytes << 17)
    cells[::1000] = range(len(cells[::1000]))
    return len(cells), cells[-(len(cells) % 1000) or -1000]


def _number(rng: Random) -> int:
    return rng.randint(-99, 99)


def _numbers(rng: Random) -> tuple[int, ...]:
    return tuple(_number(rng) for _ in range(rng.randint(1, 8)))


def _text(rng: Random, alphabet: str) -> str:
    return "".join(rng.choices(alphabet, k=rng.randint(1, 12)))


SHORT = (
    Function(line, lambda rng: (_number(rng), _number(rng), _number(rng))),
    Function(turned, lambda rng: (_text(rng, "abcd 'é"), rng.randint(0, 3))),
    Function(odd_squares, lambda rng: (_numbers(rng),)),
    # The next three also raise now and then: an exception is as good a verdict as a value.
    Function(divided, lambda rng: (_number(rng), rng.randint(-2, 2))),
    Function(third, lambda rng: (_numbers(rng),)),
    Function(number_in, lambda rng: (_text(rng, "0123ab"), rng.choice((10, 16)))),
    Function(fibonacci, lambda rng: (rng.randint(0, 90),)),
    Function(letters, lambda rng: (_text(rng, "mispred queen"),)),
    Function(common, lambda rng: (rng.randint(1, 999), rng.randint(1, 999))),
    Function(hanoi, lambda rng: (rng.randint(0, 5),)),
    Function(mean, lambda rng: (_numbers(rng),)),
    Function(brackets, lambda rng: (_text(rng, "()[]{}"),)),
)
LONG = (
    Function(collatz, lambda rng: (rng.choice((3000, 4000, 5000)),)),
    Function(primes, lambda rng: (rng.choice((6000, 8000)),)),
    Function(remainders, lambda rng: (rng.choice((300_000, 500_000)), rng.choice((7, 11)))),
)
LARGE = (
    Function(sieve, lambda rng: (rng.choice((25, 35, 50)),)),
    Function(slots, lambda rng: (rng.choice((50, 70, 90)),)),
)
