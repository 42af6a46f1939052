"""The shape of the house: which room may import which. Every import counts, also those inside functions."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import redqueen

ROOT = Path(redqueen.__file__).parent
FLOORS = (
    {"commands"},
    {"training", "bench"},
    {"loop", "ui"},
    {"phases"},
    {"evals", "evolution", "rl"},
    {"analysis", "cluster"},
    {"runs", "tasks", "resources"},
    {"engine", "verifier", "population", "settings", "console"},
    {"errors", "keys", "open_files", "plugins"},
)
"""From the top: a room imports rooms of floors below its own. The ground floor is single files."""
LEAVES = ("engine", "verifier", "tasks", "population", "rl")
ABOVE_LEAVES = ("settings", "commands", "console", "ui", "resources", "training")
LONGEST_CHAIN = 9

Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """By dotted name, without the package's. What guests run is no part of it: a bare interpreter does."""
    paths = (path for path in ROOT.rglob("*.py") if "guest" not in path.parts)
    names = {path: list(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for path, parts in names.items()}


@cache
def imports() -> Graph:
    """Of every file, the files that it imports."""
    known = modules()
    graph: Graph = {name: set() for name in known}
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "redqueen":
                package = (node.module or "").partition(".")[2]
                inside = {".".join(filter(None, (package, alias.name))) for alias in node.names}
                graph[name] |= {each if each in known else package for each in inside}
            elif isinstance(node, ast.Import):
                graph[name] |= {alias.name.partition(".")[2] for alias in node.names if alias.name[:8] == "redqueen"}
    return graph


def room(module: str) -> str:
    return module.partition(".")[0]


@cache
def arrows() -> Graph:
    """Between rooms. `__main__` and the package's own `__init__`, which has the version, are none."""
    graph: Graph = defaultdict(set)
    for name, others in imports().items():
        if name not in ("", "__main__"):
            graph[room(name)] |= {room(other) for other in others} - {room(name), ""}
    return dict(graph)


def cycle(graph: Graph) -> list[str]:
    """One of them, if there is one."""
    done: set[str] = set()

    def search(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            if found := search(other, [*way, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := search(name, []))), [])


def chain(name: str) -> list[str]:
    """The longest way down from a room."""
    return [name, *max((chain(other) for other in arrows().get(name, ())), key=len, default=[])]


def test_every_room_has_its_floor():
    assert set().union(*FLOORS) == {room(name) for name in modules()} - {"", "__main__"}


@pytest.mark.parametrize("name", sorted(set().union(*FLOORS)))
def test_a_room_imports_only_what_is_below_it(name):
    floor = next(number for number, rooms in enumerate(FLOORS) if name in rooms)
    below = set().union(*FLOORS[floor + 1 :])
    if floor == len(FLOORS) - 1:
        below = {"errors"} - {name}
    assert arrows().get(name, set()) <= below


@pytest.mark.parametrize("name", LEAVES)
def test_leaves_know_nothing_of_settings_commands_and_terminals(name):
    assert not arrows()[name] & set(ABOVE_LEAVES)


def test_no_two_rooms_and_no_two_files_import_each_other():
    assert cycle(arrows()) == []
    # A package and its own files are one: its `__init__` gathers them.
    files = {
        name: {other for other in others if not name.startswith(f"{other}.")} for name, others in imports().items()
    }
    assert cycle(files) == []


def test_the_longest_chain_of_rooms_is_short():
    longest = max((chain(name) for name in arrows()), key=len)
    assert len(longest) <= LONGEST_CHAIN, " -> ".join(longest)


def test_commands_alone_know_the_command_line():
    users = {room(name) for name, path in modules().items() if "import tyro" in path.read_text(encoding="utf-8")}
    assert users == {"commands"}


def test_one_file_alone_imports_ray_and_one_function_alone_imports_that_file():
    users = {
        name
        for name, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "ray" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ray")
    }
    assert users == {"cluster.ray"}
    assert [name for name, others in imports().items() if "cluster.ray" in others] == ["cluster.connect"]
    tree = ast.parse(modules()["cluster.connect"].read_text(encoding="utf-8"))
    assert not any(isinstance(node, ast.ImportFrom) and node.module == "redqueen.cluster.ray" for node in tree.body)


def test_one_file_alone_imports_bitsandbytes_and_only_when_it_is_asked_for():
    users = {
        name: [
            node in tree.body
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom) and "bitsandbytes" in ast.unparse(node)
        ]
        for name, path in modules().items()
        for tree in [ast.parse(path.read_text(encoding="utf-8"))]
    }
    assert {name: at for name, at in users.items() if at} == {"engine.quantised": [False]}


def test_settings_name_no_plug_in():
    assert arrows()["settings"] <= {"errors"}


def test_a_cycle_would_be_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
