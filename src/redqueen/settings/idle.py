"""Settings that do nothing beside the others."""

from typing import Any

from redqueen.settings.models import Config
from redqueen.settings.reading import flat


def in_force(settings: Config) -> dict[str, Any]:
    """Every setting by its dotted name; one that does nothing has its default, whatever was asked for."""
    defaults = flat(Config())
    return flat(settings) | {name: defaults[name] for name in idle(settings)}


def idle(settings: Config) -> dict[str, str]:
    """The settings that ask for something and would do nothing beside the others, each with the reason."""
    population, evolution, rl = settings.population, settings.evolution, settings.rl
    off = Config().evolution
    counts = {"teachers": population.teachers, "students": population.students}
    several = {role for role, count in counts.items() if count > 1 and rl.frozen != role}
    gradients = rl.update != "none"
    shared = set(counts) if rl.share == "everybody" else {rl.share}
    found: dict[str, str] = {}
    if rl.share != "nobody" and not (gradients and shared & several):
        found["rl.share"] = "there are no two members of such a role that learn"
    if rl.teacher_lr is not None and (
        population.single or not population.teachers or not gradients or rl.frozen == "teachers"
    ):
        single = "one adapter in both roles has one learning rate"
        found["rl.teacher_lr"] = single if population.single else "no teacher learns"
    if rl.full_rows and not gradients:
        found["rl.full_rows"] = "nobody learns"
    if rl.half_life and not gradients:
        found["rl.half_life"] = "nobody learns"
    if settings.tasks.replay and (not gradients or rl.frozen == "students"):
        found["tasks.replay"] = "no student learns"
    if evolution.trial and not (evolution.every and several):
        found["evolution.trial"] = "nobody is ever replaced"
    if evolution.inject and not (evolution.every and several):
        found["evolution.inject"] = "nobody is ever replaced"
    if evolution.scatter != off.scatter and gradients:
        found["evolution.scatter"] = "with gradients members begin as the base"
    if evolution.pull and not (gradients and several):
        found["evolution.pull"] = "no role has two members that learn"
    if evolution.pull_rate != 1 and (not evolution.pull or "evolution.pull" in found):
        found["evolution.pull_rate"] = "nobody is pulled"
    if evolution.inject and evolution.pull:
        found["evolution.inject"] = "members that are pulled are meant to be alike"
    return found
