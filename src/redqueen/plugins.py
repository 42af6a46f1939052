"""The one door for plug-ins: what there is by name, and how a name becomes the thing itself.

A name is one of the package's own, one that an installed package provides (an entry point), or FILE.py:NAME. Names are
listed and checked without importing anything. Whatever is loaded is code that the user trusts: it runs with all rights.
To ship a plug-in with the package, write its file and name it in its registry below. docs/extending.md has a worked
example of each.
"""

import ast
import hashlib
import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from traceback import walk_tb
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from redqueen.errors import ConfigError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_VALUE = re.compile(r"(?P<name>[a-z_]+(?:\.[a-z_]+)?)=(?P<value>[^=]*)", re.ASCII)
_loaded: set[str] = set()
"""The modules of files and packages that plug-ins were taken from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """Plug-ins that another package has, made by a function of ours that gets what follows the colon."""

    place: str
    """Of the function, as `module:attribute`."""
    package: str
    """Whose version counts."""
    stands_for: str
    """What follows the colon, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """The plug-ins of one sort."""

    noun: str
    """What one of them is called in messages."""
    setting: str
    """The setting that names one or several."""
    group: str
    """The entry points by which installed packages provide theirs."""
    type: str
    """What one of them is, as `module:attribute`: a class, or a function that says whether an object will do. Instead
    of an object there may be a class, which is called."""
    builtins: Mapping[str, str]
    """The package's own by name, as `module:attribute`."""
    suites: tuple[str, ...] = ()
    """Names that stand for several."""
    takes_values: bool = False
    """Numbers may follow a name: `spectral sigma=0.2`."""
    of_files: Mapping[str, str] = field(default_factory=dict)
    """The package's own that may be made of a file of the user's, named as NAME:FILE: the function that makes one of
    its path, as `module:attribute`. It raises an `InputError` for a file that will not do."""
    prefixes: Mapping[str, Prefix] = field(default_factory=dict)
    """Names that begin with one and a colon stand for what another package has: `rg:chain_sum`."""

    def names(self) -> tuple[str, ...]:
        """All that have one: the package's own, then what installed packages provide."""
        return (*self.builtins, *sorted(self.installed().keys() - self.builtins.keys()))

    def installed(self) -> dict[str, "list[EntryPoint]"]:
        """What packages provide, by name."""
        # Importing it takes longer than everything else here, and most commands never need it.
        from importlib.metadata import entry_points

        entries: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=self.group):
            entries.setdefault(entry.name, []).append(entry)
        return entries

    def package(self, name: str) -> str | None:
        """The package that provides it, with its version; None for the package's own, suites and files."""
        if name in (*self.suites, *self.builtins) or self.file_in(name) is not None:
            return None
        if (made := self._prefixed(name)) is not None:
            from importlib.metadata import version

            return f"{made[0].package} {version(made[0].package)}"
        dists = [entry.dist for entry in self.installed().get(name, ())]
        return ", ".join(f"{dist.name} {dist.version}" for dist in dists if dist) or None

    def check(self, text: str) -> None:
        """Refuse, as the value of the setting, what no plug-in can be known by. Nothing is imported: what is wrong with
        a file or a package is said by `get`."""
        name = self.name_in(text)
        if name in (*self.suites, *self.builtins) or self.file_in(name) is not None or self._prefixed(name) is not None:
            return
        if name not in self.installed():
            raise self._unknown(name, f"{self.setting} cannot be {json.dumps(text)}")

    def get(self, name: str) -> Any:
        """The plug-in of this name."""
        if name in self.builtins:
            plugin = _attribute(self.builtins[name])
        elif (place := file_and_name(name)) is not None:
            plugin = self._from_file(*place)
        elif (parts := self._name_and_file(name)) is not None:
            plugin = _attribute(self.of_files[parts[0]])(parts[1])
        elif (made := self._prefixed(name)) is not None:
            return _attribute(made[0].place)(made[1])
        elif name in (installed := self.installed()):
            plugin = self._from_package(installed[name])
        else:
            raise self._unknown(name, f"there is no {self.noun} {name!r}")
        try:
            return plugin() if isinstance(plugin, type) else plugin
        except (Exception, SystemExit) as error:
            what = f"the {self.noun} {name} cannot be made of its class: {one_line(error)}"
            raise ConfigError(what, "mend it where it is defined") from error

    def all(self) -> dict[str, Any]:
        """Every plug-in that has a name, by it."""
        return {name: self.get(name) for name in self.names()}

    def file_in(self, name: str) -> Path | None:
        """The user's file in FILE.py:NAME or NAME:FILE, whose content decides what the name stands for; None for any
        other name."""
        if (place := file_and_name(name)) is not None:
            return place[0]
        parts = self._name_and_file(name)
        return None if parts is None else parts[1]

    def _name_and_file(self, name: str) -> tuple[str, Path] | None:
        own, colon, path = name.partition(":")
        return (own, Path(path).expanduser()) if colon and path and own in self.of_files else None

    def name_in(self, text: str) -> str:
        """The name in a value of the setting, without the numbers that may follow it."""
        return name_and_values(text)[0] if self.takes_values else text

    def _prefixed(self, name: str) -> tuple[Prefix, str] | None:
        """What a name with a prefix stands for; None for any other name."""
        prefix, colon, rest = name.partition(":")
        return (self.prefixes[prefix], rest) if colon and prefix in self.prefixes else None

    def _unknown(self, name: str, what: str) -> ConfigError:
        prefixed = (f"{prefix}:{made.stands_for}" for prefix, made in self.prefixes.items())
        names = (*self.suites, *self.names(), *prefixed)
        close = nearest(name, names)
        taking = "".join(f", {own}:FILE" for own in self.of_files)
        mend = f"use FILE.py:NAME{taking} or one of {', '.join(names)}"
        return ConfigError(what, mend if close is None else f"did you mean {close}? Or {mend}")

    def _from_file(self, path: Path, name: str) -> Any:
        module = _imported(path, self.noun)
        plugin = vars(module).get(name)
        if not self._fits(plugin):
            own = [key for key, value in vars(module).items() if self._fits(value) and _is_own(value, module)]
            raise ConfigError(f"{path} defines no {self._type_name} {name!r}", f"it has {', '.join(own) or 'none'}")
        return plugin

    def _from_package(self, entries: "list[EntryPoint]") -> Any:
        packages = sorted(entry.dist.name if entry.dist else entry.value for entry in entries)
        what = f"the {self.noun} {entries[0].name} of {' and '.join(packages)}"
        if len(entries) > 1:
            raise ConfigError(f"{what}: two packages provide one name", "remove one of them")
        try:
            plugin = entries[0].load()
        except (Exception, SystemExit) as error:
            raise ConfigError(f"{what} cannot be imported: {one_line(error)}", "mend or remove the package") from error
        _loaded.add(entries[0].module)
        if not self._fits(plugin):
            raise ConfigError(f"{what} is no {self._type_name}", "mend or remove the package")
        return plugin

    def _fits(self, plugin: object) -> bool:
        wanted = _attribute(self.type)
        if not isinstance(wanted, type):
            return wanted(plugin)
        return issubclass(plugin if isinstance(plugin, type) else type(plugin), wanted)

    @property
    def _type_name(self) -> str:
        wanted = _attribute(self.type)
        return wanted.__name__ if isinstance(wanted, type) else self.noun


def file_and_name(name: str) -> tuple[Path, str] | None:
    """The two parts of FILE.py:NAME; None for any other name."""
    path, colon, inside = name.rpartition(":")
    return (Path(path).expanduser(), inside) if colon and path.endswith(".py") else None


def name_and_values(text: str) -> tuple[str, dict[str, str]]:
    """The parts of `NAME key=value key=value`. The name may have spaces, as a path may."""
    words = text.split(" ")
    values: dict[str, str] = {}
    while len(words) > 1 and (match := _VALUE.fullmatch(words[-1])):
        values[match["name"]] = match["value"]
        words.pop()
    return " ".join(words), dict(reversed(values.items()))


def about(place: str) -> str:
    """The first line of the docstring of `module:attribute`, or else of its module's: read, not imported."""
    module, _, name = place.partition(":")
    path = Path(__file__).parent.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [ast.get_docstring(tree)]
    for node, after in pairwise([*tree.body, tree]):
        match node, after:
            case ast.FunctionDef() | ast.ClassDef(), _ if node.name == name:
                texts.append(ast.get_docstring(node))
            case ast.Assign([ast.Name(target)]), ast.Expr(ast.Constant(str(text))) if target == name:
                texts.append(text)
    return next(filter(None, reversed(texts)), "").partition("\n")[0]


def any_loaded() -> bool:
    """Whether some plug-in came from a file or another package."""
    return bool(_loaded)


def at_fault(error: BaseException) -> str | None:
    """The plug-in in which an error was raised, or in what it called: its file and line; None where it was none."""
    frames = [(frame.f_globals.get("__name__", ""), frame, line) for frame, line in walk_tb(error.__traceback__)]
    own = [entry for entry in frames if entry[0] in _loaded or entry[0].partition(".")[0] == "redqueen"]
    if not own or own[-1][0] not in _loaded:
        return None
    _, frame, line = own[-1]
    return f"{frame.f_code.co_filename}, line {line}"


def _attribute(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _imported(path: Path, noun: str) -> ModuleType:
    """The module of a file, the same one however often it is named: what changes in it meanwhile is for the next
    process."""
    name = f"redqueen_plugin_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        mend = f"give the path of the file that defines the {noun}, or go to the folder that its path starts from"
        raise ConfigError(
            f"there is no file {path} in {Path.cwd()}" if not path.is_absolute() else f"there is no file {path}", mend
        )
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, "its name ends with .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _loaded.add(name)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"{path} fails when it is imported: {one_line(error)}", "mend it there") from error
    return module


def _is_own(value: object, module: ModuleType) -> bool:
    """Whether the module made it, and did not import it; only functions and classes say so."""
    return not isinstance(value, FunctionType | type) or value.__module__ == module.__name__


def one_line(error: BaseException) -> str:
    """Its type and what it says, for the line that a user is told."""
    return " ".join(f"{type(error).__name__}: {error}".split())


FAMILIES = Registry(
    noun="task family",
    setting="tasks.families",
    group="redqueen.families",
    type="redqueen.tasks.protocol:Family",
    builtins={
        "code": "redqueen.tasks.code:FAMILY",
        "logic": "redqueen.tasks.logic:FAMILY",
        "math": "redqueen.tasks.math:FAMILY",
        "proof": "redqueen.tasks.proof:FAMILY",
    },
    of_files={"proof": "redqueen.tasks.proof:of_file"},
    prefixes={
        "rg": Prefix(place="redqueen.tasks.sources.gym:named", package="reasoning-gym", stands_for="GENERATOR"),
        "vf": Prefix(place="redqueen.tasks.sources.environments:named", package="verifiers", stands_for="TASKSET"),
    },
)
"""They bring the task kinds."""
MATCHMAKERS = Registry(
    noun="matchmaker",
    setting="match.maker",
    group="redqueen.matchmakers",
    type="redqueen.population.matchmaking:Maker",
    builtins={
        "pfsp": "redqueen.population.matchmaking.pfsp:MAKER",
        "uniform": "redqueen.population.matchmaking.uniform:MAKER",
        "round_robin": "redqueen.population.matchmaking.round_robin:MAKER",
        "all": "redqueen.population.matchmaking.everybody:MAKER",
    },
)
ESTIMATORS = Registry(
    noun="estimator",
    setting="rl.estimator",
    group="redqueen.estimators",
    type="redqueen.rl.advantages:Estimator",
    builtins={
        "reinforce++": "redqueen.rl.advantages.reinforce_pp:ESTIMATOR",
        "trr++": "redqueen.rl.advantages.trr_pp:ESTIMATOR",
        "grpo": "redqueen.rl.advantages.grpo:ESTIMATOR",
        "rloo": "redqueen.rl.advantages.rloo:ESTIMATOR",
        "dr_grpo": "redqueen.rl.advantages.dr_grpo:ESTIMATOR",
    },
)
REWARDS = Registry(
    noun="reward shape",
    setting="rl.reward",
    group="redqueen.rewards",
    type="builtins:callable",
    builtins={name: f"redqueen.rl.rewards:{name}" for name in ("paper", "azr", "learnability")},
)
FITNESS = Registry(
    noun="fitness",
    setting="evolution.fitness",
    group="redqueen.fitness",
    type="builtins:callable",
    builtins={name: f"redqueen.evolution.fitness:{name}" for name in ("rating", "reward", "rate")},
)
SELECTIONS = Registry(
    noun="selection",
    setting="evolution.selection",
    group="redqueen.selections",
    type="redqueen.evolution.selection:Selection",
    builtins={name: f"redqueen.evolution.selection:{name.upper()}" for name in ("truncation", "tournament", "sharing")},
)
OPERATORS = Registry(
    noun="operator",
    setting="evolution.operators",
    group="redqueen.operators",
    type="redqueen.evolution.variation.operator:Operator",
    builtins={
        name: f"redqueen.evolution.variation.{name}:{name}"
        for name in (
            "spectral", "slot_noise", "component_mask", "full_noise", "input_noise", "rank_perturbation", "dare",
            "layer_wise", "svd_subspace", "extrapolation", "linear", "ties", "della", "slerp", "fisher", "copy_parent",
            "linear_0_5", "mean",
        )
    },
    takes_values=True,
)  # fmt: skip
BENCHMARKS = Registry(
    noun="benchmark",
    setting="evals.suite",
    group="redqueen.benchmarks",
    type="redqueen.evals.protocol:Published",
    builtins={
        name.lower(): f"redqueen.evals.benchmarks.{name.lower()}:{name.replace('_', '')}"
        for name in (
            "HumanEval_Plus", "Mbpp_Plus", "LiveCodeBench", "Aime24", "Aime25", "Amc23", "Math500", "Minerva_Math",
            "Gsm8k", "OlympiadBench", "Mmlu", "CruxEval_O", "CruxEval_O_Cot", "CruxEval_I", "CruxEval_I_Cot",
            "CruxEval_O_Long", "CruxEval_O_Direct", "CruxEval_I_Long", "CruxEval_I_Direct",
        )
    },
    suites=("code", "math", "all"),
)  # fmt: skip
REGISTRIES = (FAMILIES, MATCHMAKERS, ESTIMATORS, REWARDS, FITNESS, SELECTIONS, OPERATORS, BENCHMARKS)
