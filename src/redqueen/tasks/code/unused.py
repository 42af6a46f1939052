"""Functions and classes of a program that nothing uses.

What is defined and then defined again, or never called, does nothing when a program runs, and much to whoever reads
it: a teacher that is paid for difficulty learns to write four functions `f`, of which the last one counts. Methods are
not looked at, since Python calls some of them by itself.
"""

import ast
from collections.abc import Sequence

from redqueen.tasks.code.trees import walk

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def unused(tree: ast.Module) -> str | None:
    """What is there for nothing, in words."""
    return _in_body(tree.body, entry="f")


def _in_body(body: Sequence[ast.stmt], entry: str | None = None) -> str | None:
    """Among the statements of a module or a function; `entry` is called from outside."""
    definitions: dict[str, _Definition] = {}
    for statement in body:
        if isinstance(statement, _Definition):
            if statement.name in definitions:
                return f"{statement.name} is defined twice"
            definitions[statement.name] = statement
    reached: set[str] = set()
    pending = [entry] if entry in definitions else []
    pending += _names([statement for statement in body if not isinstance(statement, _Definition)])
    while pending:
        name = pending.pop()
        if name in definitions and name not in reached:
            reached.add(name)
            pending += _names([definitions[name]])
    for name, definition in definitions.items():
        if name not in reached:
            return f"{name} is never used"
        if not isinstance(definition, ast.ClassDef) and (inner := _in_body(definition.body)):
            return inner
    return None


def _names(nodes: Sequence[ast.AST]) -> list[str]:
    """That these read."""
    return [
        inner.id
        for node in nodes
        for inner in walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
    ]
