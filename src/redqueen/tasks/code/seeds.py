"""The tasks that a race begins with, when there is no archive yet to draw references from.

Written by hand to show teachers the range of what is welcome: helpers, classes, recursion, imports, keyword inputs.
"""

from redqueen.tasks.code.task import CodeTask


def _seed(program: str, given: str, output: str) -> CodeTask:
    return CodeTask("code_o", program=program.strip("\n"), inputs=(given,), outputs=(output,))


SEEDS: tuple[CodeTask, ...] = (
    _seed(
        """
def f(text):
    vowels = [letter for letter in text if letter in "aeiou"]
    return "".join(reversed(vowels)) + str(len(text))
""",
        "'red queen race'",
        "'eaeeue14'",
    ),
    _seed(
        """
def f(numbers):
    total = 0
    for place, number in enumerate(numbers):
        if place % 2 == 0:
            total += number
        else:
            total -= 2 * number
    return total
""",
        "[5, 1, 4, 2, 9]",
        "12",
    ),
    _seed(
        """
from collections import Counter

def f(words: list[str]) -> list[tuple[str, int]]:
    counts = Counter(word[0] for word in words if word)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
""",
        "['pear', 'plum', 'apple', '', 'fig', 'peach', 'fennel']",
        "[('p', 3), ('f', 2), ('a', 1)]",
    ),
    _seed(
        """
def f(n, base=2):
    digits = []
    while n > 0:
        n, digit = divmod(n, base)
        digits.append(digit)
    return digits[::-1]
""",
        "n=100, base=7",
        "[2, 0, 2]",
    ),
    _seed(
        """
def depth(tree):
    if not isinstance(tree, list):
        return 0
    return 1 + max((depth(branch) for branch in tree), default=0)

def f(tree):
    return [depth(branch) for branch in tree]
""",
        "[1, [2, [3]], [], [[[4]], 5]]",
        "[0, 2, 1, 3]",
    ),
    _seed(
        """
class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop() if self.items else 0

def f(tokens):
    stack = Stack()
    for token in tokens.split():
        if token == "+":
            stack.push(stack.pop() + stack.pop())
        elif token == "*":
            stack.push(stack.pop() * stack.pop())
        else:
            stack.push(int(token))
    return stack.items
""",
        "'3 4 + 2 * 7 1 +'",
        "[14, 8]",
    ),
    _seed(
        """
import math

def f(a, b, c):
    disc = b * b - 4 * a * c
    if disc < 0:
        return ()
    root = math.isqrt(disc)
    return tuple(sorted({(-b - root) / (2 * a), (-b + root) / (2 * a)}))
""",
        "2, -10, 12",
        "(2.0, 3.0)",
    ),
    _seed(
        """
def f(grid):
    rows, cols = len(grid), len(grid[0])
    seen = set()

    def fill(row, col):
        if not (0 <= row < rows and 0 <= col < cols) or (row, col) in seen or grid[row][col] != "#":
            return 0
        seen.add((row, col))
        return 1 + fill(row + 1, col) + fill(row - 1, col) + fill(row, col + 1) + fill(row, col - 1)

    return max(fill(row, col) for row in range(rows) for col in range(cols))
""",
        "['##.#', '.#.#', '...#', '##..']",
        "3",
    ),
    _seed(
        """
from functools import lru_cache

def f(coins, amount):
    @lru_cache(None)
    def ways(place, left):
        if left == 0:
            return 1
        if left < 0 or place == len(coins):
            return 0
        return ways(place, left - coins[place]) + ways(place + 1, left)

    return ways(0, amount)
""",
        "[1, 2, 5], 11",
        "11",
    ),
    _seed(
        """
def f(text, shift):
    moved = []
    for letter in text:
        if letter.isalpha():
            start = ord("A") if letter.isupper() else ord("a")
            letter = chr(start + (ord(letter) - start + shift) % 26)
        moved.append(letter)
    return "".join(moved)
""",
        "'Abc xyz!', 5",
        "'Fgh cde!'",
    ),
    _seed(
        """
def f(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return {start: end - start for start, end in merged}
""",
        "[(8, 10), (1, 3), (2, 6), (15, 18), (17, 20)]",
        "{1: 5, 8: 2, 15: 5}",
    ),
    _seed(
        """
import itertools

def f(n):
    squares = {i * i for i in range(1, n + 1)}
    return {a + b for a, b in itertools.combinations(sorted(squares), 2) if a + b in squares}
""",
        "13",
        "{25, 100, 169}",
    ),
)
