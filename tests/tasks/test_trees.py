"""Walks over syntax trees are `ast`'s own."""

import ast
from pathlib import Path

import pytest

import redqueen
from redqueen.tasks.code.trees import children, walk

SOURCES = sorted(Path(redqueen.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("source", SOURCES[::20], ids=lambda source: source.stem)
def test_the_same_nodes_in_the_same_order(source: Path):
    tree = ast.parse(source.read_text(encoding="utf-8"))
    assert walk(tree) == list(ast.walk(tree))
    assert all(children(node) == list(ast.iter_child_nodes(node)) for node in walk(tree))
