"""Programs from a typed grammar: real Python over integers, strings, lists, pairs and dicts.

    def f(x, y):
        a = sorted(x)
        b = [i * 3 for i in a]
        return sum(b) - y

A program is a chain of operations, each of which takes what the one before it gave; its depth is their number, loops,
branches and helper functions counting twice. It grows along one input, so whatever raises, explodes or changes nothing
there is never written. Depths 1 to 8 make bands 1 to 4, of which the base learns; 9 and 10, the deepest fifth, it never
sees, nor some pairs of operations in a row, nor one program in sixteen of any kind: they are what it is examined on.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from types import CodeType
from typing import Any

DEPTHS = 10
BAND = 2
"""Depths in a band."""
LEARNT = 8
"""The deepest that the base learns from."""
MAX_INT, MAX_ITEMS, MAX_CHARS = 99, 6, 8
"""Larger values are not written, neither on the way nor as results."""
NAMES = "abcdehjklmo"
"""Of variables, in their order: `f` and `g` are functions, `i` runs in loops, `n` is what a helper takes."""
LETTERS = "ABCDE"
"""Of strings: capitals, which nothing else in a program has, so a tokenizer can tell them."""
INLINE = 0.25
"""How often an expression stands inside the next one and has no name of its own."""
PROBES, ALIVE, DISTINCT = 6, 5, 4
"""A program is tried on so many other inputs as it grows; with its own so many must work at every line, and give so
many different values."""
SECOND = 0.35
"""How often a program has a second parameter, an integer, where a constant might be."""
UNSEEN_PAIRS, UNSEEN_PROGRAMS = 12, 16
"""One in so many is kept from the base."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation. In its text `{v}` is what it takes, `{n}` the variable that a block assigns, `{c}` a small number,
    `{k}` 2 or 3, `{m}` one of 3 to 9, `{w}` and `{u}` letters."""

    name: str
    takes: str
    gives: str
    text: str
    helper: str = ""

    @property
    def block(self) -> bool:
        return "{n}" in self.text

    @property
    def depth(self) -> int:
        return 2 if self.block or self.helper else 1


def _ops(takes: str, gives: str, **texts: str) -> list[Op]:
    return [Op(name, takes, gives, text) for name, text in texts.items()]


OPS: tuple[Op, ...] = (
    *_ops(
        "int", "int",
        plus="{v} + {c}", minus="{v} - {c}", less="{c} - {v}", times="{v} * {k}", part="{v} // {k}", rest="{v} % {m}",
        size="abs({v})", most="max({v}, {c})", least="min({v}, {c})", square="{v} * {v}",
        even="{v} + {c} if {v} % 2 == 0 else {v} * {k}", above="{v} - {m} if {v} > {m} else {v} + {k}",
        halve="{n} = {v}\nwhile {n} > {m}:\n    {n} //= 2",
        climb="{n} = {v}\nfor i in range({k}):\n    {n} += i * {c}",
        turn="if {v} > {m}:\n    {n} = {v} - {m}\nelse:\n    {n} = {v} * {k}",
    ),
    *_ops("int", "str", text="str({v})", repeat="{w} * ({v} % {m})"),
    *_ops(
        "int", "list",
        count="list(range({v} % {m}))", two="[{v}, {v} + {c}]", digits="[int(i) for i in str(abs({v}))]",
    ),
    *_ops("int", "pair", divide="divmod({v}, {m})"),
    *_ops(
        "str", "str",
        reverse="{v}[::-1]", append="{v} + {w}", prepend="{w} + {v}", tail="{v}[1:]",
        head="{v}[:-1]", second="{v}[::2]", swap="{v}.replace({w}, {u})", double="{v} * 2", sort="''.join(sorted({v}))",
        without="''.join(i for i in {v} if i != {w})",
        mirror="{n} = ''\nfor i in {v}:\n    {n} = i + {n} + i",
        shorten="if len({v}) > {m}:\n    {n} = {v}[:{k}]\nelse:\n    {n} = {v} + {w}",
    ),
    *_ops(
        "str", "int",
        length="len({v})", occur="{v}.count({w})", find="{v}.find({w})",
        score="{n} = 0\nfor i in {v}:\n    if i == {w}:\n        {n} += {c}\n    else:\n        {n} += 1",
    ),
    *_ops("str", "list", each="[{v}.count(i) for i in {v}]", pieces="[len(i) for i in {v}.split({w})]"),
    *_ops(
        "str", "tally",
        tally="{{i: {v}.count(i) for i in {v}}}",
        places="{n} = {{}}\nfor i in {v}:\n    {n}[i] = len({n})",
    ),
    *_ops(
        "list", "list",
        order="sorted({v})", backward="{v}[::-1]", drop="{v}[1:]", first="{v}[:{k}]", put="{v} + [{c}]",
        raised="[i + {c} for i in {v}]", scaled="[i * {k} for i in {v}]", wrapped="[i % {m} for i in {v}]",
        over="[i for i in {v} if i > {m}]", evens="[i for i in {v} if i % 2 == 0]", unique="sorted(set({v}))",
        running="{n} = []\nfor i in {v}:\n    {n}.append(i + len({n}))",
        filtered="{n} = []\nfor i in {v}:\n    if i % {k} == 0:\n        {n}.append(i)\n"
        "    else:\n        {n}.append({c})",
    ),
    *_ops(
        "list", "int",
        total="sum({v})", items="len({v})", largest="max({v})", smallest="min({v})", start="{v}[0]", end="{v}[-1]",
        equal="{v}.count({c})",
        weigh="{n} = 0\nfor i in {v}:\n    {n} += i * {k}",
        sift="{n} = {c}\nfor i in {v}:\n    if i > {m}:\n        {n} += i\n    else:\n        {n} -= 1",
    ),
    *_ops("list", "str", join="''.join(str(i) for i in {v})"),
    *_ops("list", "pair", ends="(min({v}), max({v}))", sized="({v}[0], len({v}))"),
    *_ops(
        "list", "dict",
        mapped="{{i: i * {k} for i in {v}}}", numbered="dict(enumerate({v}))",
        counted="{n} = {{}}\nfor i in {v}:\n    {n}[i] = {n}.get(i, 0) + 1",
    ),
    *_ops("pair", "int", added="{v}[0] + {v}[1]", apart="{v}[1] - {v}[0]", multiplied="{v}[0] * {v}[1]"),
    *_ops("pair", "pair", switched="({v}[1], {v}[0])"),
    *_ops("pair", "list", listed="list({v})"),
    *_ops("dict", "int", keys="len({v})", values="sum({v}.values())", top="max({v}.values())", look="{v}.get({c}, 0)"),
    *_ops("dict", "list", contents="list({v}.values())", names="sorted({v})"),
    *_ops("dict", "dict", lifted="{{i: j + {c} for i, j in {v}.items()}}"),
    *_ops("tally", "int", kinds="len({v})", often="max({v}.values())", known="{v}.get({w}, 0)"),
    *_ops("tally", "str", spelt="''.join({v})", chosen="''.join(i for i in {v} if {v}[i] > 1)"),
    *_ops("tally", "list", amounts="sorted({v}.values())"),
    Op("helped", "int", "int", "g({v})", "def g(n):\n    return {e}\n\n"),
    Op("helping", "list", "list", "[g(i) for i in {v}]", "def g(n):\n    return {e}\n\n"),
    Op("judged", "list", "list", "[i for i in {v} if g(i) > {m}]", "def g(n):\n    return {e}\n\n"),
)  # fmt: skip
_BY_TYPE = {takes: [op for op in OPS if op.takes == takes] for takes in {op.takes for op in OPS}}
_INSIDE_HELPERS = [op for op in _BY_TYPE["int"] if op.gives == "int" and op.depth == 1]
TYPES = ("int", "str", "list", "pair", "dict")
"""Of the first parameter."""


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of a program: its lines, the variable that it assigns, and what that came to."""

    lines: tuple[str, ...]
    name: str
    history: tuple[str, ...]
    """Each value that the variable had, the last one being what counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that was grown along an input."""

    text: str
    given: str
    """The input, as call arguments."""
    output: str
    depth: int
    ops: tuple[str, ...]
    hints: tuple[str, ...]
    """Each operation with its constants."""
    steps: tuple[Step, ...]
    """All but the last line."""
    takes: str
    """The type of the first parameter."""
    second: bool
    """Whether there is another one."""

    @property
    def band(self) -> int:
        return -(-self.depth // BAND)

    @property
    def unseen(self) -> bool:
        """Kept from the base, whatever else it is."""
        return zlib.crc32(self.text.encode()) % UNSEEN_PROGRAMS == 0

    @property
    def has_unseen_pair(self) -> bool:
        return any(unseen_pair(one, other) for one, other in zip(self.ops, self.ops[1:], strict=False))

    @property
    def trace(self) -> str:
        """What each variable comes to, a line each."""
        return "".join(f"{step.name}={' '.join(step.history)}\n" for step in self.steps)


def unseen_pair(one: str, other: str) -> bool:
    return zlib.crc32(f"{one} {other}".encode()) % UNSEEN_PAIRS == 0


def draw_value(kind: str, rng: Random) -> Any:
    """An input of a type."""
    if kind == "int":
        return rng.randint(-9, 40)
    if kind == "str":
        return "".join(rng.choice(LETTERS) for _ in range(rng.randint(3, 5)))
    if kind == "list":
        return [rng.randint(0, 12) for _ in range(rng.randint(3, 5))]
    if kind == "pair":
        return (rng.randint(0, 12), rng.randint(0, 12))
    return {rng.randint(0, 9): rng.randint(0, 12) for _ in range(rng.randint(2, 4))}


def draw_input(takes: str, second: bool, rng: Random) -> str:
    """Call arguments for a program of this signature."""
    first = repr(draw_value(takes, rng))
    return f"{first}, {rng.randint(1, 9)}" if second else first


def small(value: Any) -> bool:
    """Whether a value is one to be written."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int):
        return abs(value) <= MAX_INT
    if isinstance(value, str):
        return len(value) <= MAX_CHARS
    items = list(value.items()) if isinstance(value, dict) else value
    return len(items) <= MAX_ITEMS and all(small(item) for item in items)


def _run(source: str | CodeType, scope: dict[str, Any]) -> bool:
    """Run a statement of the grammar's own; False where it raises."""
    try:
        exec(source, scope)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return False
    return True


class _Growing:
    """A program that is being written along its input, and tried on a few others as it grows."""

    def __init__(self, takes: str, second: bool, rng: Random):
        self.rng, self.takes, self.second = rng, takes, second
        self.given = draw_input(takes, second, rng)
        self.scopes: list[dict[str, Any]] = []
        """What every variable holds: along the program's own input, then along the others that still work."""
        for given in (self.given, *(draw_input(takes, second, rng) for _ in range(PROBES))):
            scope: dict[str, Any] = {}
            _run(f"{'x, y' if second else 'x'} = {given}", scope)
            self.scopes.append(scope | {"_": scope["x"]})
        self.holds, self.type = "x", takes
        self.pending: str | None = None
        """An expression that has no name yet; `_` holds what it comes to, or else what the last variable does."""
        self.helper = ""
        self.steps: list[Step] = []
        self.ops: list[str] = []
        self.hints: list[str] = []
        self.depth = 0
        self.second_used = False

    @property
    def value(self) -> Any:
        return self.scopes[0]["_"]

    def fill(self, text: str, **parts: str) -> tuple[str, list[str]]:
        """The text with its slots filled, and the constants that went in."""
        rng = self.rng
        number = str(rng.randint(1, 9))
        if self.second and rng.random() < 0.6:
            number = "y"
        first, other = rng.sample(LETTERS, 2)
        slots = {
            "c": number,
            "k": str(rng.randint(2, 3)),
            "m": str(rng.randint(3, 9)),
            "w": f"'{first}'",
            "u": f"'{other}'",
        }
        used = [slot for name, slot in slots.items() if f"{{{name}}}" in text]
        return text.format(**(slots | parts)), used

    def name(self) -> None:
        """Give the pending expression a variable."""
        if self.pending is None:
            return
        variable = NAMES[len(self.steps)]
        self.steps.append(Step((f"{variable} = {self.pending}",), variable, (repr(self.value),)))
        for scope in self.scopes:
            scope[variable] = scope["_"]
        self.holds, self.pending = variable, None

    def grow(self, op: Op) -> bool:
        """Add an operation, unless it does not work here."""
        helper, constants = "", []
        if op.helper:
            if self.helper:
                return False
            # A helper sees its own parameter and nothing else.
            second, self.second = self.second, False
            inside, constants = self.fill(self.rng.choice(_INSIDE_HELPERS).text, v="n")
            self.second = second
            helper = op.helper.format(e=inside)
        after = NAMES[len(self.steps) + (self.pending is not None)]
        holds = NAMES[len(self.steps)] if self.pending is not None else self.holds
        inline = self._inline(op)
        text, filled = self.fill(op.text, v=inline or holds, n=after)
        result = after if op.block else "_"
        loop = "\nfor " in text or "\nwhile " in text
        probe = f"\n    seen.append(repr({after}))" if op.block and loop else ""
        source = compile(helper + (text + probe if op.block else f"_ = {text}"), "<program>", "exec")
        tried = [scope | {holds: scope["_"], "seen": []} for scope in self.scopes]
        works = [_run(source, scope) and small(scope[result]) for scope in tried]
        if not works[0] or not self._tells(tried, works, result):
            return False
        if not inline:
            self.name()
        history = tuple(tried[0]["seen"]) if op.gives == "int" else ()
        self.scopes = [scope | {"_": scope[result]} for scope, fine in zip(tried, works, strict=True) if fine]
        if op.block:
            self.steps.append(Step(tuple(text.split("\n")), after, history or (repr(self.value),)))
            self.holds = after
        else:
            self.pending = text
        self.second_used |= "y" in filled
        self.helper = self.helper or helper
        self.type = op.gives
        self.ops.append(op.name)
        self.hints.append(" ".join([op.name, *constants, *filled]))
        self.depth += op.depth
        return True

    def _inline(self, op: Op) -> str | None:
        """What is pending, as it stands inside the operation, if it is to."""
        if self.pending is None or op.block or op.text.count("{v}") > 1 or self.rng.random() > INLINE:
            return None
        if len(self.pending) > 32 or " for " in self.pending or " if " in self.pending:
            return None
        # In parentheses, unless it is a plain call or stands between such already.
        call = " " not in self.pending.partition("(")[0] and self.pending.endswith(")")
        return self.pending if call or " " not in self.pending or "({v})" in op.text else f"({self.pending})"

    def _tells(self, tried: Sequence[Mapping[str, Any]], works: Sequence[bool], result: str) -> bool:
        """Whether something changed, and still depends on the input: else the rest of the program would not matter."""
        values = [scope[result] for scope, fine in zip(tried, works, strict=True) if fine]
        before = self.scopes[0]["_"]
        same = type(values[0]) is type(before) and values[0] == before
        return not same and len(values) >= ALIVE and len({repr(value) for value in values}) >= DISTINCT

    def finished(self) -> Program:
        lines = [line for step in self.steps for line in step.lines]
        lines.append(f"return {self.holds if self.pending is None else self.pending}")
        signature = "x, y" if self.second else "x"
        text = self.helper + f"def f({signature}):" + "".join(f"\n    {line}" for line in lines)
        return Program(
            text=text,
            given=self.given,
            output=repr(self.value),
            depth=self.depth,
            ops=tuple(self.ops),
            hints=tuple(self.hints),
            steps=tuple(self.steps),
            takes=self.takes,
            second=self.second,
        )


def grow(depth: int, rng: Random, takes: str | None = None) -> Program:
    """A program of exactly this depth."""
    while True:
        growing = _Growing(takes or rng.choice(TYPES), rng.random() < SECOND, rng)
        failures = 0
        while growing.depth < depth and failures < 12:
            fitting = [op for op in _BY_TYPE[growing.type] if growing.depth + op.depth <= depth]
            failures += not growing.grow(rng.choice(fitting))
        if growing.depth == depth and growing.second_used == growing.second:
            return growing.finished()


def learnable(rng: Random, depth: int) -> Program:
    """A program that the base may learn from."""
    while True:
        program = grow(depth, rng)
        if not program.unseen and not program.has_unseen_pair:
            return program


def examined(rng: Random, depth: int, *, pair: bool) -> Program:
    """A program that the base has never seen: with a pair of operations that is new to it, or without."""
    while True:
        program = grow(depth, rng)
        if (pair and program.has_unseen_pair) or (not pair and program.unseen and not program.has_unseen_pair):
            return program


def other_inputs(program: Program, count: int, rng: Random) -> list[str]:
    """Different inputs that the program takes, its own one first."""
    scope: dict[str, Any] = {}
    assert _run(program.text, scope)
    found = {program.given: None}
    for _ in range(8 * count):
        if len(found) == count:
            break
        given = draw_input(program.takes, program.second, rng)
        if _run(f"_ = f({given})", scope) and small(scope["_"]):
            found.setdefault(given)
    return list(found)


def outputs(program: Program, inputs: Sequence[str]) -> Iterator[str]:
    """What the program returns for each input."""
    scope: dict[str, Any] = {}
    assert _run(program.text, scope)
    for given in inputs:
        assert _run(f"_ = f({given})", scope)
        yield repr(scope["_"])


def with_input(program: Program, given: str) -> Program:
    """The same program, shown with another input. Its steps are those of its own and must not be used."""
    [output] = outputs(program, [given])
    return replace(program, given=given, output=output, steps=())
