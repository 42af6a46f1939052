"""What a step leaves: rows for the records, and a summary for whoever watches."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from redqueen.analysis.account import Usage
from redqueen.analysis.complexity import Complexity
from redqueen.engine.protocol import MemberId
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
from redqueen.runs.rows import AlarmRow, AttemptRow, EventRow, Metric, RejectionRow, StepRecord, TaskRow
from redqueen.tasks.guards import set_aside
from redqueen.tasks.protocol import Reason, Rejection, Verdict

BENCHMARK = "benchmark"
"""The metric of right answers to a slice of a benchmark, whose name stands in the place of the kind."""
RACE = "race"
"""The subject of figures that are nobody's own."""


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
        figures = measured.complexity[proposal.place] or Complexity(0, 0, 0, 0)
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
                depth=figures.depth,
                cyclomatic=figures.cyclomatic,
                lines=figures.lines,
                variables=figures.variables,
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


def _metrics(race: Race, happened: Happened) -> list[Metric]:
    """Every figure of the step: of the race, of both roles, of each member, where it applies by kind."""
    population, rollouts = happened.population, [each for each in happened.rollouts if each.counts]
    proposals = [each for each in rollouts if each.role is Role.TEACHER]
    learned, meetings, figures = happened.learned, happened.meetings, happened.measured.complexity
    used = _usage(happened, race)
    named = _Figures(happened.step)
    for subject, own in _subjects(population, rollouts):
        for kind, some in _by_kind(own):
            named.add(subject, kind, "reward", fmean(rollout.reward for rollout in some))
            named.add(subject, kind, "valid", sound(some))
            named.add(subject, kind, "length", fmean(len(rollout.sample.tokens) for rollout in some))
            named.add(subject, kind, "entropy", entropy(some))
    for subject, own in _played(population, meetings):
        for kind in ("", *dict.fromkeys(each.kind for each in own)):
            some = [each for each in own if kind in ("", each.kind)]
            attempts = sum(each.attempts for each in some)
            if attempts:
                named.add(subject, kind, "solve_rate", sum(each.solved for each in some) / attempts)
    for member in population.members:
        if not race.settings.population.single:
            named.add(member.id, "", "mu", member.rating.mu)
            named.add(member.id, "", "sigma", member.rating.sigma)
    for adapter, one in used.items():
        named.usage(adapter, one)
    named.usage(RACE, sum(used.values(), Usage(verifier_runs=happened.verifier_runs.get(RACE, 0))))
    for adapter, stats in learned.stats.items():
        for name in ("grad_norm", "kl", "ratio_mean", "ratio_max", "loss"):
            named.add(adapter, "", name, getattr(stats, name))
        named.add(adapter, "", "updated", float(not stats.skipped))
    for skip in learned.skips:
        named.add(skip.member, "", "updated", 0.0)
    named.add(RACE, "", "lr", learned.lr)
    duplicates = sum(
        isinstance(each.became, Rejection) and each.became.reason is Reason.DUPLICATE for each in proposals
    )
    named.add(RACE, "", "duplicates", duplicates / len(proposals))
    named.complexity(RACE, proposals, figures)
    for teacher in population.teachers:
        named.complexity(teacher.id, [each for each in proposals if each.member == teacher.id], figures)
    named.add(RACE, "", "coverage", len(happened.measured.cells))
    named.add(RACE, "", "new_cells", happened.measured.new_cells)
    named.add(RACE, "", "behaviours", len(happened.measured.seen))
    if happened.measured.semantic_distance is not None:
        named.add(RACE, "", "semantic_distance", happened.measured.semantic_distance)
    for (subject, benchmark), right in happened.evaluated.items():
        named.add(subject, benchmark, BENCHMARK, right)
    diversity = happened.evolved.diversity
    if diversity is not None:
        for role, spread in diversity.roles.items():
            named.add(str(role), "", "effective_size", spread.effective_size)
            named.add(str(role), "", "weight_distance", spread.weight_distance)
        for teacher, variety in diversity.teachers.items():
            named.add(teacher, "", "kinds_bits", variety.kinds_bits)
            named.add(teacher, "", "descriptors_bits", variety.descriptors_bits)
    return named.rows


class _Figures:
    """Metrics of one step as they come."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._rows: dict[tuple[str, str, str], Metric] = {}

    @property
    def rows(self) -> list[Metric]:
        return list(self._rows.values())

    def add(self, subject: str, kind: str, name: str, value: float) -> None:
        self._rows[subject, kind, name] = Metric(
            step=self._step, subject=subject, kind=kind, name=name, value=float(value)
        )

    def usage(self, subject: str, used: Usage) -> None:
        self.add(subject, "", "sampled_tokens", used.sampled_tokens)
        self.add(subject, "", "trained_tokens", used.trained_tokens)
        self.add(subject, "", "verifier_runs", used.verifier_runs)

    def complexity(self, subject: str, proposals: Sequence[Rollout], figures: Mapping[int, Complexity | None]) -> None:
        kinds = dict.fromkeys(each.kind for each in proposals)
        for kind in ("", *kinds):
            own = [
                measured
                for each in proposals
                if kind in ("", each.kind) and (measured := figures.get(each.place)) is not None
            ]
            if own:
                for name in ("depth", "cyclomatic", "lines", "variables"):
                    self.add(subject, kind, name, fmean(getattr(each, name) for each in own))


def _subjects(population: Population, rollouts: Sequence[Rollout]) -> Iterator[tuple[str, list[Rollout]]]:
    for role in Role:
        yield str(role), [rollout for rollout in rollouts if rollout.role is role]
    for member in population.members:
        yield member.id, [rollout for rollout in rollouts if rollout.member == member.id]


def _by_kind(rollouts: Sequence[Rollout]) -> Iterator[tuple[str, list[Rollout]]]:
    if rollouts:
        yield "", list(rollouts)
    for kind in dict.fromkeys(rollout.kind for rollout in rollouts):
        yield kind, [rollout for rollout in rollouts if rollout.kind == kind]


def _played(population: Population, meetings: Sequence[Meeting]) -> Iterable[tuple[str, list[Meeting]]]:
    yield RACE, list(meetings)
    for member in population.members:
        yield member.id, [each for each in meetings if member.id in (each.teacher, each.student)]


def tracked(rows: StepRecord, seconds: Mapping[str, float]) -> dict[str, float]:
    """The figures of the step under names for trackers: `race/coverage`, `t0/reward`, `race/solve_rate/code_o`."""
    named = {"/".join(filter(None, (m.subject, m.name, m.kind))): m.value for m in rows.metrics}
    return named | {f"seconds/{phase}": value for phase, value in seconds.items()}


def summary(race: Race, state: State, rows: StepRecord, seconds: Mapping[str, float]) -> StepSummary:
    """The step for the terminal."""
    figures = {(each.subject, each.kind, each.name): each.value for each in rows.metrics}
    living = {member.id for member in state.population.members}
    gone = [grave.member for grave in state.population.graves if grave.step == rows.step]
    played = [member for member in (*state.population.members, *gone) if member.birth.step < rows.step]
    hard = next((row for row in reversed(_by_difficulty(rows.tasks)) if row.solved < row.attempts), None)
    return StepSummary(
        step=rows.step,
        steps=race.settings.run.steps,
        seconds=sum(seconds.values()),
        phases=dict(seconds),
        sampled_tokens=int(figures[RACE, "", "sampled_tokens"]),
        trained_tokens=int(figures[RACE, "", "trained_tokens"]),
        members=[
            MemberLine(
                id=member.id,
                role=str(member.role),
                mu=figures.get((member.id, "", "mu")),
                sigma=figures.get((member.id, "", "sigma")),
                reward=figures.get((member.id, "", "reward")),
                valid=figures.get((member.id, "", "valid")),
                solve_rate=figures.get((member.id, "", "solve_rate")),
                entropy=figures.get((member.id, "", "entropy")),
                born=member.birth.step,
            )
            for member in played
            if member.id in living
        ],
        solve_rates={kind: figures.get((RACE, kind, "solve_rate")) for kind in race.kinds},
        valid=figures.get(("teacher", "", "valid")),
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
        if each.name == BENCHMARK and each.subject == str(Role.STUDENT)
    ]


def _event(event: EventRow) -> str:
    came = f"{event.operator} of {' and '.join(event.parents)}" if event.operator else "fresh"
    return f"{event.dead} was replaced by {event.child} ({came})"
