"""Rules that a reader of the code relies on, held for every file of the package."""

import ast
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

import pytest

import redqueen

ROOT = Path(redqueen.__file__).parent
FILES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py"))}
MOST = 4
"""Fields that may be given by their place."""
CHANGEABLE = {"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter"}


def options(node: ast.AST) -> dict[str, bool] | None:
    """What a class's decorator says, if it is a dataclass."""
    for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
        named, given = (decorator.func, decorator.keywords) if isinstance(decorator, ast.Call) else (decorator, [])
        if ast.unparse(named).rpartition(".")[2] == "dataclass":
            return {each.arg or "": isinstance(each.value, ast.Constant) and bool(each.value.value) for each in given}
    return None


def dataclasses(source: str) -> Iterator[tuple[str, dict[str, bool], dict[str, ast.expr]]]:
    """Their names, options, and fields with their types."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and (given := options(node)) is not None:
            fields = {
                ast.unparse(each.target): each.annotation
                for each in node.body
                if isinstance(each, ast.AnnAssign) and not ast.unparse(each.annotation).startswith("ClassVar")
            }
            yield node.name, given, fields


def wide(source: str) -> list[str]:
    """Dataclasses of many fields that may be given by their place."""
    return [
        name
        for name, given, fields in dataclasses(source)
        if not given.get("kw_only", False) and len(list(takewhile(lambda field: field != "_", fields))) > MOST
    ]


def changeable(source: str) -> list[str]:
    """Fields of frozen dataclasses whose types say that they may be changed."""
    return [
        f"{name}.{field}"
        for name, given, fields in dataclasses(source)
        if given.get("frozen", False)
        for field, type in fields.items()
        if any(ast.unparse(each).partition("[")[0] in CHANGEABLE for each in alternatives(type))
    ]


def alternatives(type: ast.expr) -> list[ast.expr]:
    """Those of a union."""
    if isinstance(type, ast.BinOp):
        return [*alternatives(type.left), *alternatives(type.right)]
    if isinstance(type, ast.Constant) and isinstance(type.value, str):
        return alternatives(ast.parse(type.value, mode="eval").body)
    return [type]


def forced(source: str) -> list[str]:
    """Functions that write to what is frozen."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name != "__post_init__"
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute) and ast.unparse(inner) == "object.__setattr__"
    ]


@pytest.mark.parametrize("rule", [wide, changeable, forced])
def test_the_package_keeps_the_rule(rule: Callable[[str], list[str]]):
    """More than four fields are given by name; nothing frozen is changed, nor does its type allow it."""
    broken = {name: found for name, path in FILES.items() if (found := rule(path.read_text(encoding="utf-8")))}
    assert broken == {}


def test_what_breaks_a_rule_is_found():
    fields = "\n".join(f"    {name}: int = 0" for name in "abcd")
    assert wide(f"@dataclass(frozen=True)\nclass Few:\n{fields}\n    e: ClassVar[int] = 0") == []
    assert wide(f"@dataclass\nclass Many:\n{fields}\n    e: int = 0") == ["Many"]
    assert wide(f"@dataclasses.dataclass(kw_only=False)\nclass Many:\n{fields}\n    e: int = 0") == ["Many"]
    assert wide(f"@dataclass(kw_only=True)\nclass Many:\n{fields}\n    e: int = 0") == []
    types = ("tuple[int, ...]", "int | list[int]", "'None | dict[str, int]'", "Mapping[str, list[int]]")
    held = "\n".join(["class Held:", *(f"    {name}: {type}" for name, type in zip("abcd", types, strict=True))])
    assert changeable(f"@dataclass(frozen=True)\n{held}") == ["Held.b", "Held.c"]
    assert changeable(f"@dataclass\n{held}") == []
    assert forced("def change(one):\n    object.__setattr__(one, 'a', 1)") == ["change"]
    assert forced("def __post_init__(self):\n    object.__setattr__(self, 'a', 1)") == []
