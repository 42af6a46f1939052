"""Walks over syntax trees are `ast`'s own."""

import ast
import sys
from pathlib import Path

import pytest

import redqueen
from redqueen.tasks.code.trees import children, nodes_and_depth, walk

SOURCES = [source.read_text(encoding="utf-8") for source in sorted(Path(redqueen.__file__).parent.rglob("*.py"))[::20]]
RARE = """
import os.path as p
from . import a as b, c
async def g(x, /, y: int = 1, *z, k, l=2, **w) -> None:
    global q
    async with p as (r, s), b: await x
    async for t in y: nonlocal_ = [u async for u in v if u for _ in u]
    yield (yield from x)
def h():
    r = 0
    def i():
        nonlocal r
        del r, x[1:2, ...], x.y
    match r:
        case {"a": 1, **rest} | [1, *_, -2j] as whole if rest: ...
        case K(1, two=None): pass
        case str(name) | None: raise name from r
try: assert f"{x!r:>{width}} {y=}", b"z"
except* (A, B) as e: x @= ~e; x: int
else: lambda *, m=3: (m := 4)
finally: x = y = {1: 2, **z} if not {3} else {n: o for n, o in x} or x < y <= z is not w
while x: break
@decorated
class K(base, metaclass=M): x: "text" = 1
"""
if sys.version_info >= (3, 12):
    RARE += "type Pair[T: int, *Ts, **P] = tuple[T]\ndef first[T](x: T) -> T: return x\n"


def depth(node: ast.AST) -> int:
    return 1 + max(map(depth, ast.iter_child_nodes(node)), default=0)


@pytest.mark.parametrize("source", [*SOURCES, RARE])
def test_the_same_nodes_in_the_same_order(source: str):
    tree = ast.parse(source)
    assert walk(tree) == nodes_and_depth(tree)[0] == list(ast.walk(tree))
    assert all(children(node) == list(ast.iter_child_nodes(node)) for node in walk(tree))
    assert nodes_and_depth(tree)[1] == depth(tree)
