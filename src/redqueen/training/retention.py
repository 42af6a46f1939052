"""The retention test on a member of a run: its children train in the run's own race, and the run is not changed.

A student and its children attempt the tasks of the best teacher; a teacher and its children propose tasks to the best
student. Only those who are tested learn.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from redqueen.analysis import export
from redqueen.analysis.distance import first_alike
from redqueen.console import say
from redqueen.engine.protocol import MemberId
from redqueen.errors import InputError
from redqueen.evolution.retention import RetentionReport, measure
from redqueen.phases.exchange import exchange, settled
from redqueen.phases.judge import judge
from redqueen.phases.learn import learn
from redqueen.phases.propose import askings
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match
from redqueen.population.members import Birth, Member, Role
from redqueen.runs import CONFIG
from redqueen.runs.checkpoints import load as load_checkpoint
from redqueen.runs.checkpoints import population
from redqueen.runs.store import Store
from redqueen.settings import load_run
from redqueen.training.rules import read_rules
from redqueen.training.setup import Start, open_races


def measure_retention(folder: Path, step: int | None, member: str, children: int, updates: int) -> RetentionReport:
    """From the checkpoint of a step of the run in `folder`, or the newest whole one."""
    path, notes = export.find(folder, step, optimisers=True)
    for note in notes:
        say(note)
    settings = load_run(folder / CONFIG)
    if settings.population.single:
        raise InputError(f"{folder} has a single adapter, and no children", "test a run with a population")
    if settings.rl.update == "none":
        raise InputError(f"nobody learns in {folder} (rl.update is none)", "test a run with gradients")
    id, notes = export.named(folder, path, member)
    for note in notes:
        say(note)
    role = population(path).member(id).role  # before a base is loaded
    if settings.rl.frozen == f"{role}s":
        raise InputError(f"no {role} learns in {folder} (rl.frozen)", "name a member of the other role")
    loaded = load_checkpoint(path)
    with _records_until(folder, loaded.step) as records:
        start = Start(settings=settings, rules=read_rules(settings), checkpoint=loaded, records=records)
        with open_races([start]) as stage:
            race, state = _alone(stage.only.race), stage.only.state
            return asyncio.run(_test(race, state, state.population.member(id), children, updates))


@contextmanager
def _records_until(folder: Path, step: int) -> Iterator[Store]:
    """The run's records, without what came after this step: neither tasks nor keys of its future may be known."""
    with Store.read(folder) as records, TemporaryDirectory(prefix="redqueen-") as place:
        last = records.last_step()
        if last < step:
            raise InputError(
                f"the records of {folder} end at step {last}, before that checkpoint", "name an earlier --step"
            )
        if last == step:
            yield records
            return
        records.copy_to(Path(place))
        with Store.open(Path(place)) as past:
            past.drop_after(step)
            yield past


def _alone(race: Race) -> Race:
    """The race with members that learn from nothing but their own attempts at the step's tasks."""
    settings = race.settings
    alone = {
        "rl": settings.rl.model_copy(update={"share": "nobody"}),
        "tasks": settings.tasks.model_copy(update={"replay": 0}),
    }
    return replace(race, settings=settings.model_copy(update=alone))


def _with_children(state: State, parent: Member, members: Sequence[MemberId]) -> State:
    """The state in which all of these but the parent were born to its seat before the next step, as children of a race
    are: they warm up, and have their role's learning rate."""
    born = Birth(state.step + 1)
    children = [Member(id=id, role=parent.role, seat=parent.seat, birth=born) for id in members if id != parent.id]
    return replace(state, population=replace(state.population, members=(*state.population.members, *children)))


async def _test(race: Race, state: State, tested: Member, children: int, updates: int) -> RetentionReport:
    others = [member for member in state.population.of(tested.role) if member.id != tested.id]
    # A child of two that are one says nothing of a crossover.
    first = first_alike({member.id: race.engine.read(member.id) for member in (tested, *others)})
    mates = [member for member in others if first[member.id] != first[tested.id]]
    if others and not mates:
        whose = f"all {tested.role}s have the weights of {tested.id} after step {state.step}"
        say(f"{whose}: crossovers are left out; with --step, test it where members have gone apart")
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
        asked = askings(race, state, step, matches)
        exchanged = await exchange(race, state, step, matches, asked, lambda: None)
        texts = await settled(race, state, step, exchanged)
        rollouts = judge(race, state, step, texts.proposals, texts.attempts)
        own = [rollout for rollout in rollouts if rollout.role is tested.role and rollout.counts]
        learners = [rollout for rollout in own if rollout.member not in frozen]
        await learn(race, _with_children(state, tested, members), step, learners)
        rewards = {id: [rollout.reward for rollout in own if rollout.member == id] for id in members}
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
