"""The puzzles that a race begins with, while there is no archive yet to draw references from.

Written by hand to show teachers the range of what is welcome: orders, sums, products, words, knights, several groups.
"""

from redqueen.tasks.logic.task import LogicTask


def _seed(puzzle: str, guesses: int) -> LogicTask:
    return LogicTask("logic_s", puzzle=puzzle.strip("\n"), guesses=guesses)


SEEDS: tuple[LogicTask, ...] = (
    _seed(
        """
math, art, music, sport in 8..13, different
music == art + 1
abs(sport - math) == 1
music == sport + 4
""",
        14,
    ),
    _seed(
        """
a, b, c, d, e in 0..1
x, y in 0..9
a + b + c + d + e == 2
x > 2 * a + 3 * b + c
x == y + 3
a == b
""",
        43,
    ),
    _seed(
        """
Tom, Uma, Vic in tea, milk, juice, cola, different
tom, uma, vic in 1..5, different
count(Tom == tea, Uma == tea, Vic == milk) == 0
Tom != cola or uma == 1
Vic != juice
uma == tom + 4
""",
        64,
    ),
    _seed(
        """
w, x, y, z in 1..9
w * x == 6
x + y == 7
y - z == -3
""",
        9,
    ),
    _seed(
        """
P, Q, R, S, T, U, V in knight, knave
P says count(P == knave, Q == knave, R == knave, S == knave) == 3
Q says P != R
R says S == T
S says U == knave and V == knight
U says V != T
T == knight
""",
        10,
    ),
    _seed(
        """
Mon, Tue, Wed, Thu, Fri in 0..6
Mon + Tue + Wed == 4
Tue == Wed
Thu > 2 * Wed
Fri > Thu
Fri - Mon == 1
""",
        40,
    ),
    _seed(
        """
lamp, desk, sofa, vase, plant in 1..5, different
abs(lamp - desk) == 2
sofa > desk
abs(vase - plant) == 4
plant != 1
""",
        7,
    ),
    _seed(
        """
red, green, blue, black in 0..5
red + green + blue + black == 17
red < green
red - blue == -1
""",
        20,
    ),
    _seed(
        """
Eva, Finn, Gus, Hana in 1..4, different
Ivy, Jan, Kai, Lou in 1..4, different
Eva > Jan
Finn > Gus
Kai == Hana
Ivy + Eva == 6
Lou < Kai
""",
        24,
    ),
    _seed(
        """
Al, Bo, Cleo, Di, Ed, Flo in tea, milk, juice
count(Al == tea, Bo == tea, Cleo == tea, Di == tea) == 0
Al == Bo
Cleo == Di or Ed == milk
Ed != Flo
count(Di == juice, Ed == juice, Flo == juice) == 1
Bo != Flo
""",
        43,
    ),
    _seed(
        """
north, south, east, west, middle in 1..9
north + south == 7
east > 2 * west
middle == east
north - middle == -3
south % 3 == 2
west + middle > 9
""",
        5,
    ),
    _seed(
        """
Ivy, Jo, Ken, Lu, Mo, Ned, Olga in knight, knave
Ivy says Jo != Ken
Ken says Ivy == knave or Ned == knave
Lu says count(Ivy == knave, Jo == knave, Ken == knave, Ned == knave) == 2
Mo says not Olga == Lu
Ned says Mo == knave
Olga says Ned != knight
""",
        8,
    ),
    _seed(
        """
gold, silver, bronze in 1..6, different
Pam, Quin, Ray in 1..6, different
gold > silver
Pam == gold - 4
abs(Quin - silver) == 0
Ray > Pam or bronze == 1
Quin + Ray == bronze + 4
""",
        43,
    ),
)
