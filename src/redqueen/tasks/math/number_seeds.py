"""The puzzles with a number as their answer that a race begins with, while there is no archive yet.

Written by hand to show teachers the range of what is welcome: sums, products, orders, remainders, solutions to count.
"""

from redqueen.tasks.math.task import ProblemTask


def _seed(problem: str, answer: int, steps: int) -> ProblemTask:
    return ProblemTask("math_n", text=problem.strip("\n"), answer=answer, steps=steps)


NUMBER_SEEDS: tuple[ProblemTask, ...] = (
    _seed(
        """
a, b, c, d in 1..9, different
a * b == 24
c == a + 3
d == b - 2
ask 10 * c + d
""",
        92,
        9,
    ),
    _seed(
        """
x, y, z in 1..12
x + y == 21
y * z == 44
ask x * y * z
""",
        440,
        12,
    ),
    _seed(
        """
Ann, Bob, Cy, Dan in 1..8, different
Ann + Bob == 13
Bob == Cy + 4
abs(Dan - Ann) == 5
Dan < 3
ask 100 * Ann + 10 * Cy + Dan
""",
        631,
        2,
    ),
    _seed(
        """
p, q, r in 2..11
p == r + 6
q * r == 12
p == 10
ask p * q + r
""",
        34,
        0,
    ),
    _seed(
        """
red, green in 0..9
red * green == 3
red > green
ask 12 * red + 7 * green
""",
        43,
        10,
    ),
    _seed(
        """
u, v, w in 1..10
u + 2 * v == 28
v + 2 * w == 18
ask u * v * w
""",
        320,
        10,
    ),
    _seed(
        """
a, b, c, d in 1..7
a + b + c + d == 12
a < b
ask count
""",
        64,
        174,
    ),
    _seed(
        """
x, y, z in 0..11
(2 * x + 3 * y + z) % 7 == 4
x < y
ask count
""",
        113,
        171,
    ),
    _seed(
        """
north, south, east, west in 1..10, different
north + south == east + west
2 * south == north + 13
east - west == 6
ask north * east + west
""",
        54,
        42,
    ),
    _seed(
        """
k, l, m in 1..12, different
k * l == 32
l + m == 13
m > l
ask k * m + 40 * l
""",
        232,
        12,
    ),
    _seed(
        """
Mon, Tue, Wed, Thu in 1..6
Mon + Tue + Wed + Thu == 13
Mon < Tue
Wed != Thu
ask count
""",
        52,
        110,
    ),
    _seed(
        """
a, b, c in 1..12
a * b == c + 50
a == b + 3
ask 20 * a + 3 * b * c
""",
        252,
        12,
    ),
    _seed(
        """
e, f, g, h in 1..9
e * f == 18
f * g == 27
g + h == 12
e < h
ask e * g * h
""",
        54,
        9,
    ),
    _seed(
        """
lamp, desk, sofa in 3..12
lamp + desk == 20
sofa * lamp == 56
ask lamp * desk + 5 * sofa
""",
        131,
        10,
    ),
    _seed(
        """
x, y in 1..12
z in 1..12
x * y + z == 51
2 * y == x + 13
ask 11 * x + 6 * z
""",
        91,
        12,
    ),
    _seed(
        """
a, b, c, d in 0..5
count(a > b, b > c, c > d) == 2
a + d == 6
ask count
""",
        61,
        94,
    ),
    _seed(
        """
o, p, q, r in 1..9, different
o + p == 6
q + r == 13
o - q == -4
r > q
ask 31 * o + 17 * r
""",
        181,
        9,
    ),
    _seed(
        """
s, t, u in 1..12
s + t + u == 22
s * t == 35
abs(s - u) == 3
ask s * u + t
""",
        75,
        12,
    ),
    _seed(
        """
gold, silver, bronze in 2..12
3 * bronze == gold + 4
gold + silver == 12
bronze == 3
ask gold * silver + bronze
""",
        38,
        0,
    ),
    _seed(
        """
a, b, c, d in 1..6, different
a + b > c + d
a > b
ask count
""",
        76,
        144,
    ),
    _seed(
        """
i, j, k in 0..10
i + j == 2 * k
i * j == 21
i > j
ask 9 * i + 8 * j + 7 * k
""",
        122,
        11,
    ),
    _seed(
        """
m, n in 1..12
o in 0..9
m * n == 48
m - n == 2
o == m % 5
ask 10 * m + o
""",
        83,
        20,
    ),
)
