"""Trials before a replacement: all members of a role on the same tasks, so that chance decides less about who dies.

Matches give every student other tasks and other luck. In a trial all students attempt the same recent tasks with the
same random numbers: two that differ little mostly write the same, so what is left is what they differ in. Teachers
write to the same prompts, with the same random numbers too, and all students attempt what they propose.

Nobody learns from a trial, and nothing of it enters the archive.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from redqueen.engine.protocol import MemberId
from redqueen.phases.judge import refused
from redqueen.phases.propose import Asking, ask, prompts_of, screen, shared_out
from redqueen.phases.race import Race
from redqueen.phases.sampling import settle
from redqueen.phases.solve import Sitting, sit, sometimes_solved
from redqueen.phases.state import State
from redqueen.population.members import Role
from redqueen.rl.rewards import teacher_reward
from redqueen.rl.rollout import Proposal, Rollout
from redqueen.settings import Config
from redqueen.tasks.protocol import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """What members were worth, and what it took to find out."""

    values: Mapping[MemberId, float] = field(default_factory=dict)
    """A student's solve rate, a teacher's mean reward."""
    tasks: Mapping[MemberId, int] = field(default_factory=dict)
    """How many tasks a student was judged by, how many proposals a teacher; there may be fewer than were asked for."""
    rollouts: tuple[Rollout, ...] = ()
    verifier_runs: Mapping[MemberId, int] = field(default_factory=dict)


NO_TRIALS = Trials()


def trial_sizes(settings: Config) -> dict[Role, int]:
    """The roles that hold trials, with the most tasks that a student attempts there, and the proposals that a teacher
    writes, which are those of whole prompts. A role of which nobody can be replaced holds none."""
    population, size, proposals = settings.population, settings.evolution.trial, settings.tasks.proposals
    texts = {
        Role.STUDENT: (population.students, size),
        Role.TEACHER: (population.teachers, math.ceil(size / proposals) * proposals),
    }
    return {
        role: most
        for role, (members, most) in texts.items()
        if most and members > 1 and settings.evolution.every and settings.rl.frozen != f"{role}s"
    }


async def hold_trials(race: Race, state: State, step: int) -> Trials:
    """Before a step, of the roles that hold them."""
    values: dict[MemberId, float] = {}
    tasks: dict[MemberId, int] = {}
    rollouts: list[Rollout] = []
    runs: Counter[MemberId] = Counter()
    for role, size in trial_sizes(race.settings).items():
        trials = await (_students if role is Role.STUDENT else _teachers)(race, state, step, size)
        values |= trials.values
        tasks |= trials.tasks
        rollouts += trials.rollouts
        runs.update(trials.verifier_runs)
    return Trials(values=values, tasks=tasks, rollouts=tuple(rollouts), verifier_runs=runs)


async def _students(race: Race, state: State, step: int, size: int) -> Trials:
    fit = sometimes_solved(race, state, step - race.settings.evolution.every)
    tasks = race.numbers(step, "trial").sample(fit, min(size, len(fit)))
    sittings = [
        Sitting(task=task, student=student.id, key=("trial", task.id), place=place)
        for place, task in enumerate(tasks)
        for student in state.population.students
    ]
    if not sittings:
        return Trials(tasks={student.id: 0 for student in state.population.students})
    attempts, runs = await settle(race, step, await sit(race, step, sittings, race.settings.tasks.attempts))
    counted = [attempt for attempt in attempts if attempt.counts]
    grades: dict[MemberId, list[bool]] = defaultdict(list)
    for attempt in counted:
        grades[attempt.member].append(attempt.became.correct)
    judged_by = Counter(student for student, _ in {(attempt.member, attempt.place) for attempt in counted})
    return Trials(
        values={student: fmean(right) for student, right in grades.items()},
        tasks={student.id: judged_by[student.id] for student in state.population.students},
        rollouts=tuple(attempts),
        verifier_runs=runs,
    )


async def _teachers(race: Race, state: State, step: int, size: int) -> Trials:
    teachers, students = state.population.teachers, state.population.students
    kinds = shared_out(
        race.shares_of(race.proposed), size // race.settings.tasks.proposals, race.numbers(step, "kinds", "trial")
    )
    prompts = prompts_of(race, state, step, "trial", kinds)
    askings = [
        Asking(teacher=teacher.id, kind=kind, prompt=prompt, key=("trial", number))
        for teacher in teachers
        for number, (kind, prompt) in enumerate(prompts)
    ]
    written, teacher_runs = await settle(race, step, await ask(race, step, askings))
    proposals: list[Proposal] = []
    for teacher in teachers:
        # One by one: that two of them write the same is neither's fault.
        own = [proposal for proposal in written if proposal.member == teacher.id]
        proposals += await screen(race, state, own)
    sittings = [
        Sitting(task=task, student=student.id, key=("trial", task.id), place=proposal.place)
        for proposal in proposals
        if isinstance(task := proposal.became, Task)
        for student in students
    ]
    # Enough attempts at a task for a rate: of one nobody can tell whether it is hard.
    each = max(1, math.ceil(race.settings.tasks.attempts / len(students)))
    attempts, student_runs = await settle(race, step, await sit(race, step, sittings, each))
    counted = [attempt for attempt in attempts if attempt.counts]
    made = Counter(attempt.place for attempt in counted)
    solved = Counter(attempt.place for attempt in counted if attempt.became.correct)
    rewards: dict[MemberId, list[float]] = defaultdict(list)
    for proposal in proposals:
        if made[proposal.place]:
            reward = teacher_reward(race.reward, solved[proposal.place], made[proposal.place], counts=True)
            rewards[proposal.member].append(reward)
        elif proposal.counts and not isinstance(proposal.became, Task):
            rewards[proposal.member].append(refused(race, proposal.became))
    return Trials(
        values={teacher: fmean(own) for teacher, own in rewards.items()},
        tasks={teacher.id: len(rewards.get(teacher.id, ())) for teacher in teachers},
        rollouts=(*proposals, *attempts),
        verifier_runs={**teacher_runs, **student_runs},
    )
