"""What a step leaves: rows for the records, and a summary for whoever watches."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from redqueen.analysis.account import Usage
from redqueen.analysis.complexity import Complexity
from redqueen.engine.protocol import MemberId
from redqueen.phases.evaluate import Accuracies
from redqueen.phases.evolve import Evolved
from redqueen.phases.judge import Scored
from redqueen.phases.learn import NOTHING_TO_LEARN, Learned, Lesson, entropy, sound
from redqueen.phases.measure import Measured
from redqueen.phases.race import Proposal, Race, Try
from redqueen.phases.state import State
from redqueen.phases.view import HardTask, MemberLine, StepSummary
from redqueen.population.board import Meeting
from redqueen.population.members import Population, Role
from redqueen.rl.rewards import student_reward
from redqueen.runs import metrics
from redqueen.runs.metrics import RACE, Metric
from redqueen.runs.rows import AlarmRow, AttemptRow, EventRow, MetricRow, RejectionRow, StepRecord, TaskRow
from redqueen.tasks.protocol import Reason, Rejection


@dataclass(frozen=True, slots=True)
class Happened:
    """One step, as its phases leave it."""

    step: int
    population: Population
    """With the ratings after the step, before evolution."""
    meetings: Sequence[Meeting]
    scored: Sequence[Scored]
    tries: Sequence[Try]
    lessons: Sequence[Lesson]
    learned: Learned
    evolved: Evolved
    verifier_runs: Mapping[str, int]
    """By member; those of the race are nobody's: measures."""
    measured: Measured
    evaluated: Accuracies


def rows(race: Race, happened: Happened, seconds: Mapping[str, float]) -> StepRecord:
    """Everything that the step leaves in the records."""
    step = happened.step
    return StepRecord(
        step=step,
        matches=happened.meetings,
        tasks=_task_rows(step, happened.scored, happened.measured.complexity, happened.measured.behaviours),
        rejections=_rejection_rows(step, happened.scored),
        attempts=_attempt_rows(step, happened.tries),
        events=_event_rows(happened.evolved),
        alarms=_alarm_rows(step, happened.learned, happened.evolved),
        metrics=_metrics(race, happened),
        timings=dict(seconds),
    )


def _task_rows(
    step: int, scored: Sequence[Scored], figures: Mapping[int, Complexity | None], behaviours: Mapping[int, str | None]
) -> list[TaskRow]:
    """`figures` and `behaviours` by place."""
    rows: list[TaskRow] = []
    for each in scored:
        proposal, entry = each.posed.proposal, each.entry
        if entry is None:
            continue
        measured = figures[proposal.place] or Complexity(0, 0, 0, 0)
        rows.append(
            TaskRow(
                step=step,
                place=proposal.place,
                match=proposal.match,
                teacher=proposal.teacher,
                kind=proposal.kind,
                group_=proposal.group,
                id=entry.task.id,
                near_key=entry.task.near_key,
                descriptor=entry.task.descriptor,
                record=entry.task.record(),
                text=proposal.sample.text,
                solved=entry.solved,
                attempts=entry.attempts,
                reward=each.reward,
                depth=measured.depth,
                cyclomatic=measured.cyclomatic,
                lines=measured.lines,
                variables=measured.variables,
                answer_chars=entry.task.answer_chars,
                behaviour=behaviours.get(proposal.place),
                trivial=entry.trivial,
                oversight=each.posed.aside,
            )
        )
    return rows


def _rejection_rows(step: int, scored: Sequence[Scored]) -> list[RejectionRow]:
    rows: list[RejectionRow] = []
    for each in scored:
        proposal, rejection = each.posed.proposal, each.posed.task
        if isinstance(rejection, Rejection):
            rows.append(
                RejectionRow(
                    step, proposal.place, proposal.match, proposal.teacher, proposal.kind, proposal.group,
                    str(rejection.reason), rejection.detail, proposal.sample.text, each.reward,
                    rejection.program or None, rejection.runs if rejection.program else None,
                )
            )  # fmt: skip
    return rows


def _attempt_rows(step: int, tries: Sequence[Try]) -> list[AttemptRow]:
    return [
        AttemptRow(
            step, each.place, each.student, each.number, each.sample.text, str(each.verdict.grade),
            None if each.verdict.reason is None else str(each.verdict.reason),
            None if each.verdict.status is None else str(each.verdict.status),
            each.verdict.detail, student_reward(each.verdict.grade), len(each.sample.tokens),
        )
        for each in tries
    ]  # fmt: skip


def _event_rows(evolved: Evolved) -> list[EventRow]:
    return [
        EventRow(
            event.step, str(event.role), event.seat, event.dead, event.child.id, event.child.birth.operator,
            event.parents, str(event.seed),
        )
        for event in evolved.events
    ]  # fmt: skip


def _alarm_rows(step: int, learned: Learned, evolved: Evolved) -> list[AlarmRow]:
    said = [(skip.member, skip.measure, skip.value, skip.floor, skip.says) for skip in learned.skips]
    said += [(alarm.subject, alarm.measure, alarm.value, alarm.floor, alarm.says) for alarm in evolved.alarms]
    return [AlarmRow(step, number, *each) for number, each in enumerate(said)]


def _usage(happened: Happened, race: Race) -> dict[MemberId, Usage]:
    """By adapter: what it sampled, void attempts included, was trained on, and had the verifier do."""
    sampled: dict[MemberId, int] = defaultdict(int)
    verified: dict[MemberId, int] = defaultdict(int)
    for proposal in (each.posed.proposal for each in happened.scored):
        sampled[race.adapter(proposal.teacher)] += len(proposal.sample.tokens)
    for attempt in happened.tries:
        sampled[race.adapter(attempt.student)] += len(attempt.sample.tokens)
    for member, count in happened.verifier_runs.items():
        if member != RACE:
            verified[race.adapter(member)] += count
    stats_of = happened.learned.stats
    trained = {id: 0 if stats.skipped else stats.trained_tokens for id, stats in stats_of.items()}
    ids = dict.fromkeys((*sampled, *trained, *verified))
    return {id: Usage(sampled[id], trained.get(id, 0), verified[id]) for id in ids}


def _metrics(race: Race, happened: Happened) -> list[MetricRow]:
    """Every figure of the step: of the race, of both roles, of each member, where it applies by kind."""
    population, scored, measured, learned = happened.population, happened.scored, happened.measured, happened.learned
    diversity, used = happened.evolved.diversity, _usage(happened, race)
    figures: dict[tuple[str, str, str], MetricRow] = {}

    def add(metric: Metric, subject: str, value: float, kind: str = "") -> None:
        figures[subject, kind, metric.name] = MetricRow(happened.step, subject, kind, metric.name, float(value))

    for subject, own in _texts(population, happened.lessons):
        for kind, some in _by_kind(own):
            add(metrics.REWARD, subject, fmean(lesson.reward for lesson in some), kind)
            add(metrics.VALID, subject, sound(some), kind)
            add(metrics.LENGTH, subject, fmean(len(lesson.sample.tokens) for lesson in some), kind)
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
    rejections = [each.posed.task for each in scored if isinstance(each.posed.task, Rejection)]
    duplicates = sum(rejection.reason is Reason.DUPLICATE for rejection in rejections)
    add(metrics.DUPLICATES, RACE, duplicates / len(scored))
    for subject, proposals in _with_programs(population, scored, measured.complexity):
        for kind, some in _by_kind(proposals):
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
    if diversity is not None:
        for role, spread in diversity.roles.items():
            add(metrics.EFFECTIVE_SIZE, str(role), spread.effective_size)
            add(metrics.WEIGHT_DISTANCE, str(role), spread.weight_distance)
        for teacher, variety in diversity.teachers.items():
            add(metrics.KINDS_BITS, teacher, variety.kinds_bits)
            add(metrics.DESCRIPTORS_BITS, teacher, variety.descriptors_bits)
    return list(figures.values())


OfKind = TypeVar("OfKind", Lesson, Meeting, Proposal)


def _by_kind(items: Sequence[OfKind]) -> Iterator[tuple[str, Sequence[OfKind]]]:
    """All of them, then those of each kind; nothing where there are none."""
    if items:
        yield "", items
    for kind in dict.fromkeys(each.kind for each in items):
        yield kind, [each for each in items if each.kind == kind]


def _texts(population: Population, lessons: Sequence[Lesson]) -> Iterator[tuple[str, list[Lesson]]]:
    for role in Role:
        yield str(role), [lesson for lesson in lessons if lesson.role is role]
    for member in population.members:
        yield member.id, [lesson for lesson in lessons if lesson.member == member.id]


def _played(population: Population, meetings: Sequence[Meeting]) -> Iterator[tuple[str, Sequence[Meeting]]]:
    yield RACE, meetings
    for member in population.members:
        yield member.id, [each for each in meetings if member.id in (each.teacher, each.student)]


def _with_programs(
    population: Population, scored: Sequence[Scored], complexity: Mapping[int, Complexity | None]
) -> Iterator[tuple[str, list[Proposal]]]:
    """Proposals that became tasks with a program."""
    proposals = [each.posed.proposal for each in scored if complexity.get(each.posed.proposal.place) is not None]
    yield RACE, proposals
    for teacher in population.teachers:
        yield teacher.id, [proposal for proposal in proposals if proposal.teacher == teacher.id]


def soundness(race: Race, lessons: Sequence[Lesson]) -> dict[MemberId, float]:
    """By adapter, the share of its texts that came to anything."""
    own: dict[MemberId, list[Lesson]] = defaultdict(list)
    for lesson in lessons:
        own[race.adapter(lesson.member)].append(lesson)
    return {adapter: sound(some) for adapter, some in own.items()}


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
        hard_task=None if hard is None else _hard(hard),
        # That there was nothing to learn is in the records; it happens whenever everybody agrees.
        alarms=[alarm.says for alarm in rows.alarms if alarm.measure != NOTHING_TO_LEARN],
        events=[*map(_event, rows.events), *_evaluated(rows)],
    )


def _by_difficulty(tasks: Sequence[TaskRow]) -> list[TaskRow]:
    """Those that somebody solved and whose difficulty counts, the hardest last."""
    counted = [row for row in tasks if row.solved and row.trivial is None]
    return sorted(counted, key=lambda row: -row.solved / row.attempts)


def _hard(row: TaskRow) -> HardTask:
    inputs, outputs = row.record.get("inputs", ()), row.record.get("outputs", ())
    asked = {
        "code_o": lambda: f"what is f({inputs[0]})?",
        "code_i": lambda: f"for which input is it {outputs[0]}?",
        "code_f": lambda: f"write it, from {row.record['shown']} of {len(inputs)} examples",
    }
    return HardTask(
        kind=row.kind,
        teacher=row.teacher,
        solve_rate=row.solved / row.attempts,
        program=row.record.get("program", ""),
        asked=asked[row.kind]() if row.kind in asked else "",
    )


def _evaluated(rows: StepRecord) -> list[str]:
    """What students answered of benchmarks, if they were evaluated."""
    return [
        f"students answer {100 * each.value:.1f} % of the slice of {each.kind}"
        for each in rows.metrics
        if each.name == metrics.BENCHMARK.name and each.subject == Role.STUDENT
    ]


def _event(event: EventRow) -> str:
    came = f"{event.operator} of {' and '.join(event.parents)}" if event.operator else "fresh"
    return f"{event.dead} was replaced by {event.child} ({came})"
