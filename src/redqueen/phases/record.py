"""What a step leaves: rows for the records, and a summary for whoever watches."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from redqueen.analysis.account import Usage
from redqueen.engine.protocol import MemberId
from redqueen.phases.drift import Drift
from redqueen.phases.evaluate import Accuracies
from redqueen.phases.evolve import Evolved
from redqueen.phases.learn import NOTHING_TO_LEARN, Learned, entropy, sound
from redqueen.phases.measure import Measured
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.phases.view import HardTask, MemberLine, StepSummary
from redqueen.population.board import Meeting
from redqueen.population.members import Population, Role
from redqueen.rl.rollout import Rollout
from redqueen.runs import metrics
from redqueen.runs.metrics import RACE, Metric
from redqueen.runs.rows import AlarmRow, AttemptRow, EventRow, MetricRow, RejectionRow, StepRecord, TaskRow
from redqueen.tasks.guards import set_aside
from redqueen.tasks.protocol import NO_COMPLEXITY, Complexity, Reason, Rejection, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """One step, as its phases leave it."""

    step: int
    population: Population
    """With the ratings after the step, before evolution."""
    meetings: Sequence[Meeting]
    rollouts: Sequence[Rollout]
    learned: Learned
    evolved: Evolved
    verifier_runs: Mapping[str, int]
    """By member; those of the race are nobody's: measures."""
    measured: Measured
    drift: Drift | None
    """Measured every so many steps."""
    evaluated: Accuracies


def rows(race: Race, happened: Happened, seconds: Mapping[str, float]) -> StepRecord:
    """Everything that the step leaves in the records."""
    step = happened.step
    return StepRecord(
        step=step,
        matches=happened.meetings,
        tasks=_task_rows(race, step, happened.rollouts, happened.measured),
        rejections=_rejection_rows(step, happened.rollouts),
        attempts=_attempt_rows(step, happened.rollouts),
        events=_event_rows(happened.evolved),
        alarms=_alarm_rows(step, happened.learned, happened.evolved),
        metrics=_metrics(race, happened),
        timings=dict(seconds),
    )


def _task_rows(race: Race, step: int, rollouts: Sequence[Rollout], measured: Measured) -> list[TaskRow]:
    oversight, seed = race.settings.oversight.every, race.settings.run.seed
    rows: list[TaskRow] = []
    for proposal in rollouts:
        entry = proposal.entry
        if entry is None:
            continue
        complexity = measured.complexity[proposal.place]
        rows.append(
            TaskRow(
                step=step,
                place=proposal.place,
                match=proposal.match,
                teacher=proposal.member,
                kind=proposal.kind,
                group_=proposal.group,
                id=entry.task.id,
                near_key=entry.task.near_key,
                descriptor=entry.task.descriptor,
                record=entry.task.record(),
                text=proposal.sample.text,
                solved=entry.solved,
                attempts=entry.attempts,
                reward=proposal.reward,
                depth=complexity.depth,
                cyclomatic=complexity.cyclomatic,
                lines=complexity.lines,
                variables=complexity.variables,
                answer_chars=entry.task.answer_chars,
                behaviour=measured.behaviours.get(proposal.place),
                trivial=entry.trivial,
                oversight=set_aside(oversight, seed, step, proposal.place),
            )
        )
    return rows


def _rejection_rows(step: int, rollouts: Sequence[Rollout]) -> list[RejectionRow]:
    return [
        RejectionRow(
            step=step,
            place=proposal.place,
            match=proposal.match,
            teacher=proposal.member,
            kind=proposal.kind,
            group_=proposal.group,
            reason=str(rejection.reason),
            detail=rejection.detail,
            text=proposal.sample.text,
            reward=proposal.reward,
            program=rejection.program or None,
            runs=rejection.runs if rejection.program else None,
        )
        for proposal in rollouts
        if isinstance(rejection := proposal.became, Rejection)
    ]


def _attempt_rows(step: int, rollouts: Sequence[Rollout]) -> list[AttemptRow]:
    return [
        AttemptRow(
            step=step,
            place=attempt.place,
            student=attempt.member,
            number=attempt.number,
            text=attempt.sample.text,
            grade=str(verdict.grade),
            reason=None if verdict.reason is None else str(verdict.reason),
            status=None if verdict.status is None else str(verdict.status),
            detail=verdict.detail,
            reward=attempt.reward,
            tokens=len(attempt.sample.tokens),
        )
        for attempt in rollouts
        if isinstance(verdict := attempt.became, Verdict)
    ]


def _event_rows(evolved: Evolved) -> list[EventRow]:
    return [
        EventRow(
            step=event.step,
            role=str(event.role),
            seat=event.seat,
            dead=event.dead,
            child=event.child.id,
            operator=event.child.birth.operator,
            parents=event.parents,
            seed=str(event.seed),
        )
        for event in evolved.events
    ]


def _alarm_rows(step: int, learned: Learned, evolved: Evolved) -> list[AlarmRow]:
    said = [(skip.member, skip.measure, skip.value, skip.floor, skip.says) for skip in learned.skips]
    said += [(alarm.subject, alarm.measure, alarm.value, alarm.floor, alarm.says) for alarm in evolved.alarms]
    return [
        AlarmRow(step=step, number=number, subject=subject, measure=measure, value=value, floor=floor, says=says)
        for number, (subject, measure, value, floor, says) in enumerate(said)
    ]


def _usage(happened: Happened, race: Race) -> dict[MemberId, Usage]:
    """By adapter: what it sampled, void attempts included, was trained on, and had the verifier do."""
    sampled: dict[MemberId, int] = defaultdict(int)
    verified: dict[MemberId, int] = defaultdict(int)
    for rollout in happened.rollouts:
        sampled[race.adapter(rollout.member)] += len(rollout.sample.tokens)
    for member, count in happened.verifier_runs.items():
        if member != RACE:
            verified[race.adapter(member)] += count
    stats_of = happened.learned.stats
    trained = {id: 0 if stats.skipped else stats.trained_tokens for id, stats in stats_of.items()}
    ids = dict.fromkeys((*sampled, *trained, *verified))
    return {id: Usage(sampled[id], trained.get(id, 0), verified[id]) for id in ids}


def _metrics(race: Race, happened: Happened) -> list[MetricRow]:
    """Every figure of the step: of the race, of both roles, of each member, where it applies by kind."""
    population, rollouts = happened.population, [rollout for rollout in happened.rollouts if rollout.counts]
    proposals = [rollout for rollout in rollouts if rollout.role is Role.TEACHER]
    measured, learned = happened.measured, happened.learned
    diversity, used = happened.evolved.diversity, _usage(happened, race)
    figures: dict[tuple[str, str, str], MetricRow] = {}

    def add(metric: Metric, subject: str, value: float, kind: str = "") -> None:
        figures[subject, kind, metric.name] = MetricRow(
            step=happened.step, subject=subject, kind=kind, name=metric.name, value=float(value)
        )

    for subject, own in _subjects(population, rollouts):
        for kind, some in _by_kind(own):
            add(metrics.REWARD, subject, fmean(rollout.reward for rollout in some), kind)
            add(metrics.VALID, subject, sound(some), kind)
            add(metrics.LENGTH, subject, fmean(len(rollout.sample.tokens) for rollout in some), kind)
            add(metrics.ENTROPY, subject, entropy(some), kind)
    for subject, played in _played(population, happened.meetings):
        for kind, some in _by_kind(played):
            attempts = sum(meeting.attempts for meeting in some)
            if attempts:
                add(metrics.SOLVE_RATE, subject, sum(meeting.solved for meeting in some) / attempts, kind)
    if not race.settings.population.single:
        for member in population.members:
            add(metrics.MU, member.id, member.rating.mu)
            add(metrics.SIGMA, member.id, member.rating.sigma)
    total = sum(used.values(), Usage(verifier_runs=happened.verifier_runs.get(RACE, 0)))
    for subject, usage in {**used, RACE: total}.items():
        for metric in metrics.COMPUTE:
            add(metric, subject, getattr(usage, metric.name))
    for adapter, stats in learned.stats.items():
        for metric in metrics.UPDATE:
            add(metric, adapter, getattr(stats, metric.name))
        add(metrics.UPDATED, adapter, not stats.skipped)
    for skip in learned.skips:
        add(metrics.UPDATED, skip.member, 0)
    add(metrics.LR, RACE, learned.lr)
    rejections = [proposal.became for proposal in proposals if isinstance(proposal.became, Rejection)]
    duplicates = sum(rejection.reason is Reason.DUPLICATE for rejection in rejections)
    add(metrics.DUPLICATES, RACE, duplicates / len(proposals))
    for subject, own in _with_programs(population, proposals, measured.complexity):
        for kind, some in _by_kind(own):
            for metric in metrics.COMPLEXITY:
                values = (getattr(measured.complexity[proposal.place], metric.name) for proposal in some)
                add(metric, subject, fmean(values), kind)
    add(metrics.COVERAGE, RACE, len(measured.cells))
    add(metrics.NEW_CELLS, RACE, measured.new_cells)
    add(metrics.BEHAVIOURS, RACE, len(measured.seen))
    if measured.semantic_distance is not None:
        add(metrics.SEMANTIC_DISTANCE, RACE, measured.semantic_distance)
    for (subject, benchmark), right in happened.evaluated.items():
        add(metrics.BENCHMARK, subject, right, benchmark)
    if happened.drift is not None:
        for adapter, distance in happened.drift.from_base.items():
            add(metrics.DRIFT, adapter, distance)
        for role, distance in happened.drift.within_role.items():
            add(metrics.FUNCTION_DISTANCE, str(role), distance)
    if diversity is not None:
        for role, spread in diversity.roles.items():
            add(metrics.EFFECTIVE_SIZE, str(role), spread.effective_size)
            add(metrics.WEIGHT_DISTANCE, str(role), spread.weight_distance)
        for teacher, variety in diversity.teachers.items():
            add(metrics.KINDS_BITS, teacher, variety.kinds_bits)
            add(metrics.DESCRIPTORS_BITS, teacher, variety.descriptors_bits)
    return list(figures.values())


OfKind = TypeVar("OfKind", Rollout, Meeting)


def _by_kind(items: Sequence[OfKind]) -> Iterator[tuple[str, Sequence[OfKind]]]:
    """All of them, then those of each kind; nothing where there are none."""
    if items:
        yield "", items
    for kind in dict.fromkeys(item.kind for item in items):
        yield kind, [item for item in items if item.kind == kind]


def _subjects(population: Population, rollouts: Sequence[Rollout]) -> Iterator[tuple[str, list[Rollout]]]:
    for role in Role:
        yield str(role), [rollout for rollout in rollouts if rollout.role is role]
    for member in population.members:
        yield member.id, [rollout for rollout in rollouts if rollout.member == member.id]


def _played(population: Population, meetings: Sequence[Meeting]) -> Iterator[tuple[str, Sequence[Meeting]]]:
    yield RACE, meetings
    for member in population.members:
        yield member.id, [meeting for meeting in meetings if member.id in (meeting.teacher, meeting.student)]


def _with_programs(
    population: Population, proposals: Sequence[Rollout], complexity: Mapping[int, Complexity]
) -> Iterator[tuple[str, list[Rollout]]]:
    """Proposals that became tasks with a program, or with what stands for one."""
    own = [proposal for proposal in proposals if complexity.get(proposal.place, NO_COMPLEXITY) != NO_COMPLEXITY]
    yield RACE, own
    for teacher in population.teachers:
        yield teacher.id, [proposal for proposal in own if proposal.member == teacher.id]


def tracked(rows: StepRecord, seconds: Mapping[str, float]) -> dict[str, float]:
    """The figures of the step under names for trackers: `race/coverage`, `t0/reward`, `race/solve_rate/code_o`."""
    named = {"/".join(filter(None, (m.subject, m.name, m.kind))): m.value for m in rows.metrics}
    return named | {f"seconds/{phase}": value for phase, value in seconds.items()}


def summary(race: Race, state: State, rows: StepRecord, seconds: Mapping[str, float]) -> StepSummary:
    """The step for the terminal."""
    hard = next((row for row in reversed(_by_difficulty(rows.tasks)) if row.solved < row.attempts), None)
    return StepSummary(
        step=rows.step,
        steps=race.settings.run.steps,
        seconds=sum(seconds.values()),
        phases=dict(seconds),
        sampled_tokens=int(rows.figures()[metrics.SAMPLED_TOKENS]),
        members=[
            MemberLine(id=member.id, role=str(member.role), born=member.birth.step, figures=rows.figures(member.id))
            for member in state.population.members
            if member.birth.step < rows.step
        ],
        solve_rates={kind: rows.figures(kind=kind).get(metrics.SOLVE_RATE) for kind in race.kinds},
        proposals=len(rows.tasks) + len(rows.rejections),
        tasks=len(rows.tasks),
        hard_task=None if hard is None else _hard(race, hard),
        # That there was nothing to learn is in the records; it happens whenever everybody agrees.
        alarms=[alarm.says for alarm in rows.alarms if alarm.measure != NOTHING_TO_LEARN],
        events=[*map(_event, rows.events), *_evaluated(rows)],
    )


def _by_difficulty(tasks: Sequence[TaskRow]) -> list[TaskRow]:
    """Those that somebody solved and whose difficulty counts, the hardest last."""
    counted = [row for row in tasks if row.solved and row.trivial is None]
    return sorted(counted, key=lambda row: -row.solved / row.attempts)


def _hard(race: Race, row: TaskRow) -> HardTask:
    task = race.families.restore(row.record)
    return HardTask(
        kind=row.kind,
        teacher=row.teacher,
        solve_rate=row.solved / row.attempts,
        text=task.body or race.kinds[row.kind].solve_prompt(task).messages[-1]["content"],
        asked=task.question,
    )


def _evaluated(rows: StepRecord) -> list[str]:
    """What students answered of benchmarks, if they were evaluated."""
    return [
        f"students answer {100 * row.value:.1f} % of the slice of {row.kind}"
        for row in rows.metrics
        if row.name == metrics.BENCHMARK.name and row.subject == Role.STUDENT
    ]


def _event(event: EventRow) -> str:
    came = f"{event.operator} of {' and '.join(event.parents)}" if event.operator else "fresh"
    return f"{event.dead} was replaced by {event.child} ({came})"
