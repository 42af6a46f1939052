"""The retention test on a member of a run: its children train in the run's own race, and the run is not changed.

A student and its children attempt the tasks of the best teacher; a teacher and its children propose tasks to the best
student. Only those who are tested learn.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from redqueen.console import say
from redqueen.engine.protocol import MemberId
from redqueen.errors import InputError
from redqueen.evolution.retention import RetentionReport, measure
from redqueen.phases.judge import score, withdraw
from redqueen.phases.learn import learn, lessons
from redqueen.phases.propose import propose, verify
from redqueen.phases.race import Race
from redqueen.phases.solve import grade, solve
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match
from redqueen.population.members import Member, Role
from redqueen.runs.checkpoints import load as load_checkpoint
from redqueen.runs.checkpoints import newest
from redqueen.runs.run import CHECKPOINTS, CONFIG
from redqueen.runs.store import Store
from redqueen.settings import load
from redqueen.training.rules import read_rules
from redqueen.training.setup import Start, open_races


def measure_retention(folder: Path, member: str, children: int, updates: int) -> RetentionReport:
    """From the newest complete checkpoint of the run in `folder`."""
    with Store.read(folder) as records:
        path, _ = newest(folder / CHECKPOINTS, records.last_step())
        if path is None:
            raise InputError(f"{folder} has no complete checkpoint yet", "wait for its first one")
        settings = load(str(folder / CONFIG))
        if settings.population.single:
            raise InputError(f"{folder} has a single adapter, and no children", "test a run with a population")
        start = Start(settings=settings, rules=read_rules(settings), checkpoint=load_checkpoint(path), records=records)
        with open_races([start]) as stage:
            race, state = stage.only.race, stage.only.state
            return asyncio.run(_test(race, state, state.population.member(member), children, updates))


async def _test(race: Race, state: State, tested: Member, children: int, updates: int) -> RetentionReport:
    mates = [member for member in state.population.of(tested.role) if member.id != tested.id]
    mate = max(mates, key=lambda member: member.rating.lower, default=None)
    opponent = state.population.best(Role.STUDENT if tested.role is Role.TEACHER else Role.TEACHER)

    async def practice(
        members: Sequence[MemberId], frozen: Sequence[MemberId], update: int
    ) -> Mapping[MemberId, float]:
        say(f"{len(members)} members train, update {update + 1} of {updates}")
        step = state.step + 1 + update
        # Of equal programs the first one counts, so members take turns to be first.
        members = [*members[update % len(members) :], *members[: update % len(members)]]
        if tested.role is Role.STUDENT:
            matches = [Match(opponent.id, tuple(members))]
        else:
            matches = [Match(member, (opponent.id,)) for member in members]
        posed, _ = await verify(race, state, step, await propose(race, state, step, matches))
        tries, _ = await grade(race, step, await solve(race, step, matches, posed))
        posed, tries = withdraw(posed, tries)
        scored = lessons(race, score(race, state, step, posed, tries), tries)
        own = [lesson for lesson in scored if lesson.role is tested.role]
        await learn(race, state, step, [lesson for lesson in own if lesson.member not in frozen])
        rewards = {id: [lesson.reward for lesson in own if lesson.member == id] for id in members}
        # Without a valid task there is no reward: the worst that could be.
        return {id: fmean(values) if values else -1.0 for id, values in rewards.items()}

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
