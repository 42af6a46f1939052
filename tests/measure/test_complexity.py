"""The figures of a program are those that it is known by, and radon's and Python's own where those count the same.

REDQUEEN_BENCH names a folder with the solutions of HumanEval+ and MBPP+ (humaneval_plus/test.jsonl.gz, ...).
"""

import ast
import gzip
import json
import os
import symtable
from pathlib import Path
from textwrap import indent

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from radon.complexity import add_inner_blocks
from radon.raw import analyze
from radon.visitors import Class, ComplexityVisitor

from redqueen.errors import Fault
from redqueen.tasks.code.complexity import complexity, cyclomatic, depth, variables
from redqueen.tasks.code.examples import PROPOSALS
from redqueen.tasks.code.pairs import parse_pair
from redqueen.tasks.code.program import MAX_PROGRAM_CHARS, parse_source
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.protocol import Complexity, Task
from redqueen.tasks.verdicts import Rejection

BENCH = os.environ.get("REDQUEEN_BENCH")
HOSTILE = Path(__file__).parents[1] / "hostile"


def radon_cyclomatic(source: str) -> int:
    """One more than the decisions of all of radon's blocks, functions inside functions included."""
    visitor = ComplexityVisitor.from_code(source)
    total = visitor.complexity
    for block in add_inner_blocks(visitor.blocks):
        if isinstance(block, Class):
            total += block.real_complexity - 1 - sum(method.complexity for method in block.methods)
        else:
            total += block.complexity - 1
    return total


def python_variables(source: str) -> int:
    """By the tables that Python's own compiler makes."""
    count, pending = 0, [symtable.symtable(source, "program", "exec")]
    while pending:
        table = pending.pop()
        pending += table.get_children()
        for symbol in table.get_symbols():
            bound = symbol.is_assigned() or symbol.is_parameter()
            other = symbol.is_namespace() or symbol.is_imported() or symbol.is_declared_global() or symbol.is_nonlocal()
            count += bound and not other and not symbol.get_name().startswith(".")
    return count


def check(source: str) -> None:
    found = complexity(source)
    assert found.cyclomatic == radon_cyclomatic(source)
    assert found.lines == analyze(source).sloc
    assert found.variables == python_variables(source)
    if not has_inner_functions(ast.parse(source)):
        assert found.cyclomatic == ComplexityVisitor.from_code(source).total_complexity


def has_inner_functions(tree: ast.Module) -> bool:
    outer = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    return any(inner in outer for each in outer for inner in ast.walk(each) if inner is not each)


# Equal to radon's and Python's own


EXAMPLES = [parse_pair(each.kind, each.text) for each in PROPOSALS if each.kind != "code_f"]


@pytest.mark.parametrize("source", [seed.program for seed in SEEDS])
def test_seeds_have_radons_figures(source):
    check(source)


def test_examples_have_radons_figures():
    sources = [draft.program for draft in EXAMPLES if not isinstance(draft, Rejection)]
    assert len(sources) > 5
    for source in sources:
        check(source)


SIMPLE = st.sampled_from(
    [
        "x = 1", "y += x", "a, *b = 1, 2", "assert x", "print(x)", "import math", "pass", "x.y = z[0] = 3",
        "# comment", "", "    ", '"""standing alone"""', '"""over\n\n# lines\n"""', "'one'; u = 2",
        "z = [i for i in range(3) if i if i > 1]", "s = {k: v for k, v in () for w in v}",
        "w = lambda q, *r, t=1: q and r",
        "v = (1 if x else 2) and x or y", "t = '''one\n\n# two\n'''", "n = (m := 3)",
        "call(\n    1,\n\n    2,\n)", "long = 1 + \\\n    2", "note: int = 3", "c = 'é'  # comment",
    ]
)  # fmt: skip
HEADERS = st.sampled_from(
    [
        "if x:", "if x and y or z:", "for i, j in x:", "while x:", "with x as opened:", "def g(p, /, q, *r, k=1, **o):",
        "async def g(p): # comment", "@decorated\ndef g():", "try:", "match x:",
    ]
)  # fmt: skip


@st.composite
def programs(draw: st.DrawFn, depth: int = 2, classes: bool = True) -> str:
    """radon forgets classes inside functions, so those stand at the top only."""
    statements = []
    for _ in range(draw(st.integers(0, 3))):
        if not depth or draw(st.booleans()):
            statements.append(draw(SIMPLE))
            continue

        def body() -> str:
            return indented(draw(programs(depth - 1, False)))

        header = draw(HEADERS | st.just("class C(D):")) if classes else draw(HEADERS)
        if header == "match x:":
            last = draw(st.sampled_from(["_", "rest", "int()"]))
            cases = ("case [first, *others]:", "case {'a': value, **more}:", f"case {last}:")
            statements.append("match x:\n" + "\n".join(indent(f"{case}\n{body()}", "    ") for case in cases))
            continue
        parts = [header, body()]
        if header == "try:":
            parts += ["except ValueError as error:", body(), "except KeyError:", body()]
        if header.startswith(("if", "for", "while", "try")) and draw(st.booleans()):
            parts += ["else:", body()]
        statements.append("\n".join(parts))
    return "\n".join(statements)


def indented(body: str) -> str:
    return "\n".join("    " + row for row in f"{body}\npass".split("\n"))


@given(programs())
@settings(max_examples=100)
def test_random_programs_have_radons_figures(source):
    assume(len(source) <= MAX_PROGRAM_CHARS)
    check(source)


@pytest.mark.skipif(not BENCH, reason="REDQUEEN_BENCH names no folder with the solutions of HumanEval+ and MBPP+")
def test_all_canonical_solutions_have_radons_figures():
    count = 0
    for name in ("humaneval_plus", "mbpp_plus"):
        with gzip.open(Path(BENCH or "") / name / "test.jsonl.gz", "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                check(row["prompt"] + row["canonical_solution"])
                count += 1
    assert count == 164 + 378


# By hand


@pytest.mark.parametrize(
    ("source", "nodes"),
    [
        ("", 1),  # Module
        ("x = 1", 3),  # Module Assign Name
        ("x = -1", 4),  # Module Assign UnaryOp Constant: the minus itself is not counted
        ("def f(x):\n    return [y + 1 for y in x]", 6),  # Module FunctionDef Return ListComp BinOp Name
    ],
)
def test_depth_is_the_longest_path_without_operators_and_contexts(source, nodes):
    assert depth(ast.parse(source)) == nodes


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(x):\n    x = y = x\n    return x", 2),
        ("def f(x):\n    def g(x):\n        return x\n    return g(x)", 2),  # one name in two scopes
        ("import math\ndef f(a, /, b, *c, d=1, **e):\n    math.pi = 3\n    b.g = 4", 5),
        ("n = 0\ndef f(x):\n    global n\n    n += x", 2),
        ("def f(x):\n    n = 0\n    def g():\n        nonlocal n\n        n += x\n    g()", 2),
        ("def f(x):\n    global n\n    n = x", 2),
        ("def f(x):\n    y = 0\n    return [y for x in x if (y := x)]", 3),  # `:=` binds in f
        ("def f(x):\n    return [y for y in [z for z in x]]", 3),
        ("class A:\n    size: int = 0\n    def grow(self):\n        self.size += 1", 2),
    ],
)
def test_variables_are_names_bound_scope_by_scope(source, count):
    assert variables(ast.parse(source)) == count


def test_decisions_count_wherever_they_stand():
    inside = "def f(x):\n    def g(y):\n        return 1 if y else 2\n    return g(x)"
    apart = "def g(y):\n    return 1 if y else 2\ndef f(x):\n    return g(x)"
    method = "class A:\n    def g(self, y):\n        return 1 if y else 2\ndef f(x):\n    return A().g(x)"
    assert [cyclomatic(ast.parse(source)) for source in (inside, apart, method)] == [2, 2, 2]


def test_comments_between_brackets_are_no_code():
    assert complexity("x = [\n    1,\n    # two\n    3,\n]\n").lines == 4


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["# note", "    # x = 1", "", "  \t", "\x0c"]))))
def test_what_is_no_code_changes_no_figure(extra):
    rows = SEEDS[1].program.split("\n")
    before = complexity("\n".join(rows))
    for place, row in extra:
        rows.insert(place, row)
    assert complexity("\n".join(rows)) == before


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_python_ends_them(end):
    assert complexity(end.join(["x = '\x0c\x1c\u2028'", "", "# comment", "y = 1"])).lines == 2


@pytest.mark.parametrize("source", ["if 1:\n    x = 1\n\\\n    y = 2", "\\\n\\\nx = 1", "x = 1\\\r\n"])
def test_programs_that_puzzle_a_tokenizer_are_measured(source):
    assert not isinstance(parse_source(source), Rejection)
    assert complexity(source).cyclomatic in (1, 2)


def test_every_hostile_program_that_can_be_read_is_measured():
    sources = [file.read_bytes().decode("utf-8", "replace") for file in sorted(HOSTILE.glob("*.py"))]
    found = [complexity(source) for source in sources if not isinstance(parse_source(source), Rejection)]
    assert len(found) > 500
    assert all(each.depth >= 1 and each.cyclomatic >= 1 for each in found)


# Tasks


def test_a_task_has_the_figures_of_its_program():
    seed = SEEDS[0]
    assert complexity(seed.program) == Complexity(depth=7, cyclomatic=3, lines=3, variables=3)
    assert seed.complexity == Complexity(7, 3, 3, 3)


def test_a_task_without_a_program_has_no_figures():
    assert Task("riddle").complexity == Complexity()


def test_a_program_that_cannot_be_read_is_a_fault():
    with pytest.raises(Fault, match="syntax"):
        complexity("def f(:")
