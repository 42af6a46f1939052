"""What a step leaves: rows for the records, and a summary for whoever watches."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from redqueen.phases.evolve import Evolved
from redqueen.phases.figures import step_metrics
from redqueen.phases.happened import Happened
from redqueen.phases.items import Item
from redqueen.phases.learn import NOTHING_TO_LEARN
from redqueen.phases.measure import Measured
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.phases.timeline import Timeline
from redqueen.phases.view import HardTask, MemberLine, StepSummary
from redqueen.population.members import Role
from redqueen.rl.rollout import NO_MATCH, Rollout
from redqueen.runs import metrics
from redqueen.runs.metrics import RACE
from redqueen.runs.rows import (
    SOURCE,
    AlarmRow,
    AttemptRow,
    EventRow,
    RejectionRow,
    StepRecord,
    TaskRow,
    WorkerEventRow,
)
from redqueen.tasks.guards import set_aside
from redqueen.tasks.verdicts import Reason, Rejection, Verdict

FEW = 8
"""Replacements of a step that are told one by one."""
MANY_NOT_JUDGED = 0.05
"""The share of a step's texts that somebody is told of."""


def rows(race: Race, happened: Happened, seconds: Mapping[str, float], timeline: Timeline) -> StepRecord:
    """Everything that the step leaves in the records."""
    step = happened.step
    return StepRecord(
        step=step,
        matches=happened.meetings,
        tasks=[
            *_task_rows(race, step, happened.rollouts, happened.measured),
            *_item_rows(race, step, happened.items),
        ],
        rejections=[*_rejection_rows(step, happened.rollouts), *_rejected_item_rows(step, happened.items)],
        attempts=attempt_rows(step, happened.rollouts),
        events=_event_rows(happened.evolved),
        alarms=_alarm_rows(happened),
        metrics=step_metrics(race, happened),
        timings=dict(seconds),
        timeline=timeline.as_record(),
        workers=() if race.workers is None else race.workers.rows(step),
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


def _item_rows(race: Race, step: int, items: Sequence[Item]) -> list[TaskRow]:
    oversight, seed = race.settings.oversight.every, race.settings.run.seed
    return [
        TaskRow(
            step=step,
            place=item.place,
            match=NO_MATCH,
            teacher=SOURCE,
            kind=item.kind,
            group_=item.place,
            id=entry.task.id,
            near_key=entry.task.near_key,
            descriptor=entry.task.descriptor,
            record=entry.task.record(),
            text="",
            solved=entry.solved,
            attempts=entry.attempts,
            reward=0.0,
            **asdict(entry.task.complexity),
            answer_chars=entry.task.answer_chars,
            oversight=set_aside(oversight, seed, step, item.place),
        )
        for item in items
        if (entry := item.entry) is not None
    ]


def _rejected_item_rows(step: int, items: Sequence[Item]) -> list[RejectionRow]:
    return [
        RejectionRow(
            step=step,
            place=item.place,
            match=NO_MATCH,
            teacher=SOURCE,
            kind=item.kind,
            group_=item.place,
            reason=str(rejection.reason),
            detail=rejection.detail,
            text="",
            reward=0.0,
        )
        for item in items
        if isinstance(rejection := item.became, Rejection)
    ]


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


def attempt_rows(step: int, rollouts: Sequence[Rollout]) -> list[AttemptRow]:
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
            detail=_detail(attempt, verdict),
            reward=attempt.reward,
            tokens=len(attempt.sample.tokens),
        )
        for attempt in rollouts
        if isinstance(verdict := attempt.became, Verdict)
    ]


def _detail(attempt: Rollout, verdict: Verdict) -> str:
    """What the verdict says, after which task it is of where that is one of an earlier step."""
    replays = "" if attempt.replays is None else f"replays task {attempt.replays[:12]}"
    return "; ".join(filter(None, (replays, verdict.detail)))


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


def _alarm_rows(happened: Happened) -> list[AlarmRow]:
    seen = () if happened.seen is None else happened.seen.alarms
    said = [(skip.member, skip.measure, skip.value, skip.floor, skip.says) for skip in happened.learned.skips]
    said += [
        (recall.member, metrics.ELSEWHERE.name, recall.distance, recall.ceiling, recall.says)
        for recall in happened.recalls
    ]
    said += [(alarm.subject, alarm.measure, alarm.value, alarm.floor, alarm.says) for alarm in seen]
    lost, texts = sum(not rollout.judged for rollout in happened.rollouts), len(happened.rollouts)
    if lost > MANY_NOT_JUDGED * texts:
        says = (
            f"{lost} of {texts} texts could not be judged and count for nobody: the machine failed their programs; "
            "free memory or end other work"
        )
        said.append((RACE, Reason.NOT_JUDGED, lost / texts, MANY_NOT_JUDGED, says))
    return [
        AlarmRow(
            step=happened.step, number=number, subject=subject, measure=measure, value=value, floor=floor, says=says
        )
        for number, (subject, measure, value, floor, says) in enumerate(said)
    ]


def tracked(rows: StepRecord, seconds: Mapping[str, float]) -> dict[str, float]:
    """The figures of the step under names for trackers: `race/coverage`, `t0/reward`, `race/solve_rate/code_o`."""
    named = {"/".join(filter(None, (m.subject, m.name, m.kind))): m.value for m in rows.metrics}
    return named | {f"seconds/{phase}": value for phase, value in seconds.items()}


def summary(
    race: Race,
    state: State,
    rows: StepRecord,
    seconds: Mapping[str, float],
    worker_events: Sequence[WorkerEventRow],
) -> StepSummary:
    """The step for the terminal."""
    hard = next((row for row in reversed(_by_difficulty(rows.tasks)) if row.solved < row.attempts), None)
    return StepSummary(
        step=rows.step,
        steps=race.settings.run.steps,
        steps_left=race.settings.run.steps_left(state.step, state.flops),
        seconds=sum(seconds.values()),
        phases=dict(seconds),
        sampled_tokens=int(rows.figures()[metrics.SAMPLED_TOKENS]),
        members=[
            MemberLine(id=member.id, role=str(member.role), born=member.birth.step, figures=rows.figures(member.id))
            for member in state.population.members
        ],
        solve_rates={kind: rows.figures(kind=kind).get(metrics.SOLVE_RATE) for kind in race.kinds},
        proposals=len(rows.tasks) + len(rows.rejections),
        tasks=len(rows.tasks),
        hard_task=None if hard is None else _hard(race, hard),
        # That there was nothing to learn is in the records; it happens whenever everybody agrees.
        alarms=[alarm.says for alarm in rows.alarms if alarm.measure != NOTHING_TO_LEARN],
        workers=rows.workers,
        worker_events=worker_events,
        events=[*_replaced(race, state, rows), *_pulled(rows), *_elsewhere(race, rows), *_evaluated(rows)],
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


def _pulled(rows: StepRecord) -> list[str]:
    ways = {role: way for role in Role if (way := rows.figures(role).get(metrics.PULL)) is not None}
    return [
        f"the {role}s " + ("are averaged" if way == 1 else f"moved {way:.2g} of the way to their mean")
        for role, way in ways.items()
    ]


def _elsewhere(race: Race, rows: StepRecord) -> list[str]:
    """Who has gone furthest from the base at requests of other kinds, if somebody looked."""
    distances = {row.subject: row.value for row in rows.metrics if row.name == metrics.ELSEWHERE.name}
    if not distances:
        return []
    furthest = max(distances, key=lambda id: distances[id])
    ceiling = race.settings.guard.drift_ceiling
    limit = f"; {ceiling:g} is the ceiling" if ceiling else ""
    return [f"furthest from the base elsewhere is {furthest}, {distances[furthest]:.2g} nats a token{limit}"]


def _evaluated(rows: StepRecord) -> list[str]:
    """What students answered of benchmarks, if they were evaluated."""
    return [
        f"students answer {100 * row.value:.1f} % of the slice of {row.kind}"
        for row in rows.metrics
        if row.name == metrics.BENCHMARK.name and row.subject == Role.STUDENT
    ]


def _replaced(race: Race, state: State, rows: StepRecord) -> list[str]:
    """Who was replaced: one by one, or of many how many in each role."""
    if len(rows.events) <= FEW:
        return [_event(event) for event in rows.events]
    counts = Counter(event.role for event in rows.events)
    says = f"{' and '.join(f'{count} {role}s' for role, count in sorted(counts.items(), reverse=True))} were replaced"
    if race.settings.rl.update != "none":
        return [says]
    return [f"generation {1 + len({grave.step for grave in state.population.graves})}: {says}"]


def _event(event: EventRow) -> str:
    came = f"{event.operator} of {' and '.join(event.parents)}" if event.operator else "fresh"
    return f"{event.dead} was replaced by {event.child} ({came})"
