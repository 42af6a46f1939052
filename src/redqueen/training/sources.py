"""Fixed sources are checked before students are trained on them: whatever is wrong with one, a race would teach.

The check that decides is `redqueen check`'s, on a few items, with the source's own settings and in the version that is
installed: a list of sound ones would say nothing of either. What passed is noted in the run, so that a run that is
resumed with the same version does not wait for it again.
"""

from collections.abc import Mapping

from redqueen import __version__
from redqueen.console import say
from redqueen.errors import ConfigError
from redqueen.plugins import FAMILIES, file_and_name
from redqueen.runs.store import Store
from redqueen.settings import Config
from redqueen.tasks.families import Families
from redqueen.tasks.sources import Source
from redqueen.verifier import OpenVerifier


async def refuse_unsound(
    settings: Config, versions: Mapping[str, str], verifier: OpenVerifier, records: Store | None
) -> None:
    """Refuse the sources of a race that fail a check that decides. What a run notes as passed is not checked again."""
    if settings.guard.sources == "allow":
        return
    passed = {} if records is None else records.facts()
    for name in settings.tasks.families:
        if not isinstance(Families.of([name]).families[0], Source):
            continue
        reading = ", answers read unfenced" if settings.tasks.unfenced else ""
        fact, of = f"checked {name}", f"{_version(name, versions)}, redqueen {__version__}{reading}"
        if passed.get(fact) == of:
            continue
        await _refuse_unsound(name, verifier, settings.tasks.unfenced)
        if records is not None:
            records.set_facts({fact: of})


async def _refuse_unsound(name: str, verifier: OpenVerifier, unfenced: bool) -> None:
    # Nobody else needs it, and it takes long to import.
    from redqueen.tasks.soundness import DECISIVE_ITEMS, check_source

    say(f"checking {name} on {DECISIVE_ITEMS} items, once")
    failures = (await check_source(name, verifier, unfenced=unfenced)).failures
    if failures:
        first = failures[0]
        what = f"{name} fails the check {first.check}: {first.finding.what}"
        mend = f"see `redqueen check '{name}'`, or train on it nevertheless with guard.sources = \"allow\""
        raise ConfigError(what, mend)


def _version(name: str, versions: Mapping[str, str]) -> str:
    place = file_and_name(name)
    return versions.get(f"{FAMILIES.setting} {name if place is None else place[0]}", "")
