"""The arms of the comparison that the paper leaves open, each a few settings away from the population that it is for.

`single` trains one adapter in both roles as each adapter of the population is trained; `single-wide` gives it the
population's tokens in every step, `single-long` in all steps together. The others take one part of the method out.
"""

from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import quote_plus

from redqueen.errors import InputError, did_you_mean
from redqueen.plugins import MATCHMAKERS, name_and_values
from redqueen.population.matchmaking import Maker, count_matches
from redqueen.settings import Config, flat, override
from redqueen.settings.idle import idle

Settings = dict[str, dict[str, Any]]

POPULATION = "population"
"""The arm that changes nothing."""
STUDIED = (POPULATION, "1t1s", "single", "single-wide", "no-evolution", "random-matching", "frozen-teachers")
"""The arms of a study when nobody names any."""


def _single(settings: Settings) -> None:
    settings["population"] |= {"teachers": 1, "students": 1, "single": True}
    settings["match"] |= {"maker": "uniform", "panel": None, "exclude": ()}
    settings["evolution"] |= {"every": 0}


def _single_wide(settings: Settings) -> None:
    matches, panel = _matches_and_panel(settings)
    _single(settings)
    settings["tasks"]["prompts"] *= matches
    settings["tasks"]["attempts"] *= panel


def _single_long(settings: Settings) -> None:
    matches, panel = _matches_and_panel(settings)
    _single(settings)
    settings["run"]["steps"] *= matches
    settings["tasks"]["attempts"] *= panel


def _pair(settings: Settings) -> None:
    settings["population"] |= {"teachers": 1, "students": 1, "single": False}
    settings["match"] |= {"panel": None, "exclude": ()}
    settings["evolution"] |= {"every": 0}


def _full_panel(settings: Settings) -> None:
    settings["match"] |= {"maker": "all", "panel": None}


def _pair_wide(settings: Settings) -> None:
    matches, panel = _matches_and_panel(settings)
    _pair(settings)
    settings["tasks"]["prompts"] *= matches
    settings["tasks"]["attempts"] *= panel


def _set(section: str, **values: Any) -> Callable[[Settings], None]:
    def change(settings: Settings) -> None:
        settings[section] |= values

    return change


ARMS: dict[str, Callable[[Settings], None]] = {
    "single": _single,
    "single-wide": _single_wide,
    "single-long": _single_long,
    "1t1s": _pair,
    "1t1s-wide": _pair_wide,
    "full-panel": _full_panel,
    "frozen-teachers": _set("rl", frozen="teachers"),
    "frozen-students": _set("rl", frozen="students"),
    "no-evolution": _set("evolution", every=0, pull=0.0),
    "random-matching": _set("match", maker="uniform"),
    "shuffled-rewards": _set("rl", shuffle=True),
}


def apply(settings: Config, arm: str | None) -> Config:
    """The settings of an arm; without one, or for the population, as they are. An arm has no settings that it cannot
    use. It may be given further ones: `population rl.share=students`."""
    if arm is None:
        return settings
    name, values = name_and_values(arm)
    if name != POPULATION:
        if name not in ARMS:
            known = [POPULATION, *ARMS]
            raise InputError(f"there is no arm {name}", did_you_mean(name, known, f"the arms are {', '.join(known)}"))
        changed = settings.model_dump()
        ARMS[name](changed)
        settings = _without_use(settings, Config.model_validate(changed))
    return override(settings, values) if values else settings


def refuse_own(arm: str, names: Collection[str], mend: str) -> None:
    """Refuse an arm with a setting of its own among these, which are dotted names or whole sections: it would not be
    heeded, or the arm could not be compared with others. `mend` may have the setting as {}."""
    for name in name_and_values(arm)[1]:
        if any(name == each or name.startswith(f"{each}.") for each in names):
            what = f'the arm "{arm}" cannot have {name} of its own: arms are compared under the same conditions'
            raise InputError(what, mend.format(name))


def folder_name(arm: str) -> str:
    """An arm as the name of a folder, or a part of it."""
    return quote_plus(arm, safe="=+:,")


def _without_use(before: Config, arm: Config) -> Config:
    """The arm's settings, less what has no use in it and had one before: it was asked for where it has."""
    lost = idle(arm).keys() - idle(before).keys()
    return override(arm, {name: str(flat(Config())[name]) for name in lost})


def _matches_and_panel(settings: Settings) -> tuple[int, int]:
    population, match = settings["population"], settings["match"]
    maker: Maker = MATCHMAKERS.get(match["maker"])
    return count_matches(population["teachers"], population["students"], maker, match["panel"])
