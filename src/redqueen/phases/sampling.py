"""What becomes of texts once they are sampled: they are checked and counted in the order of their places."""

from collections.abc import Sequence

from redqueen.engine.flow import Checked
from redqueen.engine.protocol import MemberId
from redqueen.phases.journal import Judged
from redqueen.phases.race import Race
from redqueen.rl.rollout import ResultT, Rollout
from redqueen.verifier.machine import not_judged

MOST_NOT_JUDGED = 0.5
"""The share of a phase's texts: with more of them a step would say nothing, and the race stops."""
Pending = Checked[Judged[Rollout[ResultT]]]
"""Rollouts by prompt, with the verifier's runs that they took; they may still be checked."""


def check_judged(race: Race, rollouts: Sequence[Rollout]) -> None:
    """Before anything of it is written down: the same command judges all of it again."""
    lost = sum(not rollout.judged for rollout in rollouts)
    if lost > MOST_NOT_JUDGED * len(rollouts):
        race.journal.forget()
        raise not_judged(f"the programs of {lost} of {len(rollouts)} texts", None)


async def settle(
    race: Race, step: int, pending: Pending[ResultT]
) -> tuple[list[Rollout[ResultT]], dict[MemberId, int]]:
    """The rollouts in the order of their requests, and the verifier's runs for each member."""
    groups = await pending.results()
    check_judged(race, [rollout for rollouts, _ in groups for rollout in rollouts])
    race.journal.flush(step)
    return [rollout for rollouts, _ in groups for rollout in rollouts], runs_by_member(groups)


def runs_by_member(groups: Sequence[Judged[Rollout[ResultT]]]) -> dict[MemberId, int]:
    runs: dict[MemberId, int] = {}
    for rollouts, count in groups:
        runs[rollouts[0].member] = runs.get(rollouts[0].member, 0) + count
    return runs
