"""What type of problem a program is: a coarse label, for counting how varied a teacher's tasks are.

The label joins the program's strongest way of control with the data that it works on, as far as the syntax tree shows
them: `list+loop`, `recursion+str`. Finer labels would be a new one for nearly every program, and a teacher that writes
one type of problem over and over would look varied. Names, layout, annotations and the values of constants do not
matter. What cannot be told without running (the type of a parameter) is not guessed.
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from redqueen.tasks.code.trees import walk

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_CONTROL: tuple[tuple[str, tuple[type[ast.AST], ...]], ...] = (
    ("while", (ast.While,)),
    ("loop", (ast.For, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)),
    ("branch", (ast.If, ast.IfExp, ast.Match)),
)
"""Behind `class` and `recursion`: what comes first is what the program is known by."""
_RARE = ("dict", "float", "set", "str")
_COMMON = ("list", "tuple", "int")
"""Data that most programs touch in passing: named only where there is nothing rarer."""
_DISPLAYS: tuple[tuple[str, tuple[type[ast.AST], ...]], ...] = (
    ("list", (ast.List, ast.ListComp)),
    ("dict", (ast.Dict, ast.DictComp)),
    ("set", (ast.Set, ast.SetComp)),
    ("str", (ast.JoinedStr,)),
    ("float", (ast.Div,)),
)
_CALLED = {
    "chr": "str", "dict": "dict", "float": "float", "frozenset": "set", "list": "list", "ord": "str", "repr": "str",
    "set": "set", "sorted": "list", "str": "str", "tuple": "tuple",
    "collections.Counter": "dict", "collections.OrderedDict": "dict", "collections.defaultdict": "dict",
    "collections.deque": "list", "collections.namedtuple": "tuple", "decimal.Decimal": "float",
    "fractions.Fraction": "float", "math.sqrt": "float",
}  # fmt: skip
"""What the name of a function or a type says about the data."""
_METHODS = {
    "append": "list", "extend": "list", "insert": "list", "reverse": "list", "sort": "list",
    "get": "dict", "items": "dict", "keys": "dict", "setdefault": "dict", "values": "dict",
    "add": "set", "difference": "set", "discard": "set", "intersection": "set", "issubset": "set", "issuperset": "set",
    "symmetric_difference": "set", "union": "set",
    "capitalize": "str", "endswith": "str", "find": "str", "format": "str", "isalnum": "str", "isalpha": "str",
    "isdigit": "str", "islower": "str", "isspace": "str", "isupper": "str", "join": "str", "ljust": "str",
    "lower": "str", "lstrip": "str", "replace": "str", "rfind": "str", "rjust": "str", "rstrip": "str", "split": "str",
    "splitlines": "str", "startswith": "str", "strip": "str", "swapcase": "str", "title": "str", "translate": "str",
    "upper": "str", "zfill": "str",
}  # fmt: skip
"""Methods that one built-in type has, or one above all; `pop`, `index`, `count` and `update` say too little."""
_CONSTANTS: dict[type, str] = {int: "int", str: "str", bytes: "str", float: "float", complex: "float"}
_ANNOTATIONS = ("annotation", "returns", "type_comment", "type_params")


def descriptor(tree: ast.Module) -> str:
    """The label of a program whose tree `parse_source` gave."""
    nodes = list(_nodes(tree))
    parts = sorted([*_control(nodes), *_main(set(_data(nodes)))])
    return "+".join(parts) or "plain"


def _control(nodes: Sequence[ast.AST]) -> list[str]:
    if any(isinstance(node, ast.ClassDef) for node in nodes):
        return ["class"]
    if _recursive([node for node in nodes if isinstance(node, _Function)]):
        return ["recursion"]
    return [name for name, kinds in _CONTROL if any(isinstance(node, kinds) for node in nodes)][:1]


def _main(data: Collection[str]) -> list[str]:
    return [kind for kind in _RARE if kind in data] or [kind for kind in _COMMON if kind in data][:1]


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """All that matters: without annotations, and without strings that stand alone."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name not in _ANNOTATIONS:
                inner = value if isinstance(value, list) else [value]
                pending += [child for child in inner if isinstance(child, ast.AST) and not _is_text(child)]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _data(nodes: Sequence[ast.AST]) -> Iterator[str]:
    own, attributes = set(_own_names(nodes)), set(_own_attributes(nodes))
    imported = dict(_imported(nodes))
    # `a, b = b, a` and `grid[row, column]` make no tuple that the problem would be about.
    passing = {id(node.slice) for node in nodes if isinstance(node, ast.Subscript)}
    passing |= {id(n.value) for n in nodes if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple)}
    for node in nodes:
        yield from (kind for kind, displays in _DISPLAYS if isinstance(node, displays))
        match node:
            case ast.Constant() if type(node.value) in _CONSTANTS:
                yield _CONSTANTS[type(node.value)]
            case ast.Tuple(ctx=ast.Load()) if id(node) not in passing:
                yield "tuple"
            case ast.Name(ctx=ast.Load()) if node.id in imported or node.id not in own:
                yield from _known(imported.get(node.id, node.id))
            case ast.Attribute(value=ast.Name(id=module)) if module in imported:
                yield from _known(f"{imported[module]}.{node.attr}")
            case ast.Attribute(ctx=ast.Load()) if node.attr in _METHODS and node.attr not in attributes:
                yield _METHODS[node.attr]


def _known(name: str) -> list[str]:
    return [_CALLED[name]] if name in _CALLED else []


def _own_names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                yield node.id
            case ast.arg():
                yield node.arg
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def _own_attributes(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            yield from _own_names(node.body)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _imported(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _recursive(functions: Sequence[_Function]) -> bool:
    """Whether some function comes back to itself, by way of others or not."""
    calls: dict[str, set[str]] = {}
    for function in functions:
        called = (node.func for node in walk(function) if isinstance(node, ast.Call))
        calls.setdefault(function.name, set()).update(func.id for func in called if isinstance(func, ast.Name))
    return any(name in _reached(name, calls) for name in calls)


def _reached(start: str, calls: Mapping[str, Collection[str]]) -> set[str]:
    reached: set[str] = set()
    pending = list(calls[start])
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += calls.get(name, ())
    return reached
