"""`redqueen plugins`: the names that settings may have."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redqueen.commands.command import Reporting
from redqueen.console import printable
from redqueen.plugins import REGISTRIES, Registry, about

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, kw_only=True)
class PluginsCommand(Reporting):
    """List what settings may name: task families, matchmakers, estimators, reward shapes, operators, benchmarks."""

    def report(self) -> "PluginList":
        return PluginList()


class PluginList:
    def as_json(self) -> dict[str, Any]:
        rows = [
            {"setting": registry.setting, "noun": registry.noun, "group": registry.group, "name": name, "about": line}
            for registry in REGISTRIES
            for name, line in _lines(registry).items()
        ]
        return {"plugins": rows}

    def render(self, console: "Console") -> None:
        for registry in REGISTRIES:
            head = f"{registry.setting} (entry points: {registry.group})"
            console.print(head, style="bold", soft_wrap=True, highlight=False)
            for name, line in _lines(registry).items():
                console.print(printable(f"  {name:<17} {line}"), soft_wrap=True, highlight=False, markup=False)
        console.print(
            "FILE.py:NAME is one of your own, and packages can provide more (docs/extending.md). All of them are code "
            "that you trust: it runs with all your rights.",
            soft_wrap=True,
        )


def _lines(registry: Registry) -> dict[str, str]:
    """A line about each, by name."""
    packages = {
        name: ", ".join(sorted(entry.dist.name for entry in entries if entry.dist))
        for name, entries in registry.installed().items()
    }
    lines = {name: about(place) for name, place in registry.builtins.items()}
    for prefix, made in registry.prefixes.items():
        lines[f"{prefix}:{made.stands_for}"] = about(made.place.partition(":")[0]).partition(": ")[2]
    for name in sorted(packages):
        if name in (*registry.suites, *registry.builtins):
            line = lines.get(name, "a suite")
            lines[name] = f"{line} (another one, of the package {packages[name]}, cannot be reached by this name)"
        else:
            lines[name] = f"of the package {packages[name]}"
    return lines
