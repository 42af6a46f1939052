"""The ruler: every so many steps the bare base attempts the step's tasks, as students do.

Students change from step to step, and with them their solve rate. The base does not: what it solves says how hard tasks
are. It changes nothing of the race, and its tokens and runs are on nobody's account.
"""

from collections.abc import Mapping, Sequence

from redqueen.engine.flow import sample_and_check
from redqueen.engine.protocol import Sample
from redqueen.phases.items import Item
from redqueen.phases.journal import Judged
from redqueen.phases.race import Race
from redqueen.phases.solve import asked, graded
from redqueen.rl.rollout import Rollout
from redqueen.tasks.verdicts import Verdict

SolveRates = Mapping[str, float]
"""By kind; under "" that of all kinds."""


async def ruler(race: Race, step: int, posed: Sequence[Rollout | Item]) -> SolveRates:
    """How much of the step's valid tasks the bare base solves. Attempts at tasks whose own truth fails do not count."""
    tasks = [(one.place, one.entry.task) for one in posed if one.entry is not None]
    size = race.settings.tasks.attempts
    requests = [asked(race, step, task, None, ("ruler", place), size) for place, task in tasks]

    async def check(group: int, samples: Sequence[Sample]) -> Judged[Verdict]:
        return await graded(race, tasks[group][1], samples)

    checked = await (await sample_and_check(race.engine, requests, check)).results()
    race.journal.flush(step)
    right: dict[str, list[bool]] = {}
    for (_, task), (verdicts, _) in zip(tasks, checked, strict=True):
        for kind in ("", task.kind):
            right.setdefault(kind, []).extend(verdict.correct for verdict in verdicts if not verdict.void)
    return {kind: sum(own) / len(own) for kind, own in right.items() if own}
