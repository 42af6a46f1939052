"""The retention test on a run's member: its children practise in the run's own race, and the run is left as it is.

A student and its children all attempt the tasks of the best teacher; a teacher and its children write tasks for the
best student. Only those who are tested learn.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from redqueen.engine.protocol import MemberId
from redqueen.errors import InputError
from redqueen.evolution.retention import Retention, measure
from redqueen.phases.judge import judge
from redqueen.phases.learn import learn
from redqueen.phases.propose import propose, verify
from redqueen.phases.race import Race
from redqueen.phases.sampling import settle
from redqueen.phases.solve import solve
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match
from redqueen.population.members import Member, Role
from redqueen.runs import CHECKPOINTS, CONFIG
from redqueen.runs.checkpoints import load as load_checkpoint
from redqueen.runs.checkpoints import newest
from redqueen.runs.store import Store
from redqueen.settings import load
from redqueen.training.rules import read_rules
from redqueen.training.setup import Start, open_races


def examine(folder: Path, member: str, children: int, updates: int) -> Retention:
    """From the newest whole checkpoint of the run in `folder`."""
    with Store.read(folder) as records:
        path, _ = newest(folder / CHECKPOINTS, records.last_step())
        if path is None:
            raise InputError(f"{folder} has no whole checkpoint yet", "wait for its first one")
        settings = load(str(folder / CONFIG))
        if settings.population.single:
            raise InputError(f"{folder} has one adapter, and nobody to breed", "test a run with a population")
        start = Start(settings=settings, rules=read_rules(settings), checkpoint=load_checkpoint(path), records=records)
        with open_races([start]) as stage:
            race, state = stage.only.race, stage.only.state
            tested = state.population.member(member)
            return asyncio.run(_measured(race, state, tested, children, updates))


async def _measured(race: Race, state: State, tested: Member, children: int, updates: int) -> Retention:
    mates = [each for each in state.population.of(tested.role) if each.id != tested.id]
    mate = max(mates, key=lambda each: each.rating.lower, default=None)
    opponent = state.population.best(Role.STUDENT if tested.role is Role.TEACHER else Role.TEACHER)

    async def practice(
        members: Sequence[MemberId], frozen: Sequence[MemberId], update: int
    ) -> Mapping[MemberId, float]:
        print(f"redqueen: {len(members)} members practise, update {update + 1} of {updates}", file=sys.stderr)
        step = state.step + 1 + update
        # Of equal programs the first one counts: nobody is always first.
        members = [*members[update % len(members) :], *members[: update % len(members)]]
        if tested.role is Role.STUDENT:
            matches = [Match(opponent.id, tuple(members))]
        else:
            matches = [Match(member, (opponent.id,)) for member in members]
        proposals, _ = await verify(race, state, step, await propose(race, state, step, matches))
        attempts, _ = await settle(race, step, await solve(race, step, matches, proposals))
        rollouts = judge(race, state, step, proposals, attempts)
        own = [rollout for rollout in rollouts if rollout.role is tested.role and rollout.counts]
        await learn(race, state, step, [rollout for rollout in own if rollout.member not in frozen])
        rewards = {id: [rollout.reward for rollout in own if rollout.member == id] for id in members}
        # Without a valid task nobody has shown anything: the worst that could be.
        return {id: fmean(own) if own else -1.0 for id, own in rewards.items()}

    return await measure(
        race.engine,
        tested.id,
        None if mate is None else mate.id,
        list(race.operators.values()),
        practice,
        seeds=children,
        updates=updates,
        run_seed=race.settings.run.seed,
    )
