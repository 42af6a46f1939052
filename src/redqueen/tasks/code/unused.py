"""Functions and classes of a program that are defined twice, or that nothing uses by name.

They do nothing when a program runs, and much to whoever reads it: a teacher that is paid for difficulty learns to write
four functions `f`, of which the last one counts. Methods may be there for nothing, since Python calls some of them by
itself. What only a decorator or a subclass puts to use is refused too; code that is never reached is not found.
"""

import symtable
import warnings

from redqueen.tasks.code.names import shown


def unused(program: str) -> str | None:
    """What is there for nothing in a program that parses, in words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = symtable.symtable(program, "program", "exec")
    except SyntaxError:
        return None  # `nonlocal` without a function around it: no guest compiles that either
    return _in_scope(table, entry="f")


def _in_scope(scope: symtable.SymbolTable, entry: str = "") -> str | None:
    """Among the definitions of a scope, wherever they stand in it; `entry` is called from outside."""
    defined: dict[str, symtable.SymbolTable] = {}
    for inner in _definitions(scope):
        name = inner.get_name()
        if name in defined and scope.get_type() != "class":
            return f"{shown(name)} is defined twice"
        defined[name] = inner
    reached = set(defined) if scope.get_type() == "class" else _reached(scope, defined, entry)
    for name, inner in defined.items():
        if name not in reached:
            return f"{shown(name)} is never used"
        if found := _in_scope(inner):
            return found
    return None


def _definitions(scope: symtable.SymbolTable) -> list[symtable.SymbolTable]:
    """The functions and classes, without lambdas and comprehensions."""
    named = {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_namespace()}
    return [inner for inner in scope.get_children() if inner.get_name() in named]


def _reached(scope: symtable.SymbolTable, defined: dict[str, symtable.SymbolTable], entry: str) -> set[str]:
    """Those that the scope itself reads, and those that these read."""
    of_module = scope.get_type() == "module"
    beside = [inner for inner in scope.get_children() if inner not in defined.values()]
    reached: set[str] = set()
    pending = [symbol.get_name() for symbol in scope.get_symbols() if symbol.is_referenced()] + [entry]
    pending += [name for inner in beside for name in _reads(inner, of_module)]
    while pending:
        name = pending.pop()
        if name in defined and name not in reached:
            reached.add(name)
            pending += _reads(defined[name], of_module)
    return reached


def _reads(scope: symtable.SymbolTable, of_module: bool) -> list[str]:
    """The names of an outer scope that a scope reads, or the scopes in it: of the module, or of a function around."""
    own = [
        symbol.get_name()
        for symbol in scope.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() if of_module else symbol.is_free())
    ]
    return own + [name for inner in scope.get_children() for name in _reads(inner, of_module)]
