"""How a command goes on with a run that is there: with which settings, and which others are refused. Nothing heavy is
imported: a mistake is told before a base is loaded."""

from pathlib import Path

from redqueen.cluster.asked import refuse_unnumbered
from redqueen.runs import CONFIG
from redqueen.runs.records_file import RECORDS
from redqueen.runs.settled import settled
from redqueen.runs.store import Store
from redqueen.settings import Affects, Config, affecting, dump, flat, load_run, override, unwritten
from redqueen.settings.idle import idle


def as_begun(settings: Config, folder: Path) -> Config:
    """The settings with which the run in `folder` stays the race that it was: what its version had no setting for goes
    on as it did. Without a run there, as they are."""
    refuse_unnumbered(settings.cluster)
    if not is_run(folder):
        return _sharded(settings, settings.cluster.workers)
    asked, usual = flat(settings), flat(Config())
    settings = override(
        settings, {key: old for key, old in unwritten(folder / CONFIG).items() if asked[key] == usual[key]}
    )
    return _sharded(settings, load_run(folder / CONFIG).cluster.shards)


def _sharded(settings: Config, shards: int | None) -> Config:
    """With so many, where nothing else is asked for: a run keeps its shards, whatever workers it goes on with."""
    if settings.cluster.shards is not None or shards is None:
        return settings
    return override(settings, {"cluster.shards": str(shards)})


def is_run(folder: Path) -> bool:
    """Whether there is one to go on with."""
    return (folder / CONFIG).is_file() and (folder / RECORDS).is_file()


def at_least_done(settings: Config, folder: Path) -> Config:
    """The settings with no fewer steps than the run in `folder` has: those stay."""
    if not is_run(folder):
        return settings
    with Store.read(folder) as records:
        return at_least(settings, records.saved())


def at_least(settings: Config, steps: int) -> Config:
    return override(settings, {"run.steps": str(steps)}) if steps > settings.run.steps else settings


def unsaid(settings: Config, folder: Path) -> list[str]:
    """The settings that the run's version did not have and that are as that version behaved."""
    asked, began = flat(settings), flat(load_run(folder / CONFIG))
    return [key for key in unwritten(folder / CONFIG) if asked[key] == began[key]]


def kept(settings: Config, folder: Path) -> tuple[str, set[str]]:
    """The settings as a run has them in its file, and those that may be others the next time."""
    older = is_run(folder)
    doing_nothing = idle(settings).keys() | (idle(load_run(folder / CONFIG)).keys() if older else set())
    # A run goes on without the settings that its version did not have, so that the next time is as this one. Another
    # value than it had is one that it was not begun with.
    text = dump(settings, without=unsaid(settings, folder) if older else ())
    return text, {*affecting(Affects.NOTHING, Affects.LENGTH), *doing_nothing}


def refuse_others(settings: Config, folder: Path) -> None:
    """Refuse settings that no run goes on with, or none that has a checkpoint like the one in `folder`."""
    refuse_unnumbered(settings.cluster)
    if not is_run(folder):
        return
    with Store.read(folder) as records:
        saved = records.saved()
    if saved:
        text, free = kept(as_begun(settings, folder), folder)
        settled(folder / CONFIG, text, free)
