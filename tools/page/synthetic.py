"""A run that nobody trained, of any size, to look at: `python tools/page/synthetic.py FOLDER --tasks 100000`.

Its records are written as a race writes them, step by step, with figures that move as a race's do. What is in them
means nothing.
"""

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redqueen.phases.clock import STREAM
from redqueen.phases.timeline import Timeline
from redqueen.population.board import Meeting
from redqueen.population.ratings import MatchResult
from redqueen.runs.rows import AlarmRow, AttemptRow, EventRow, MetricRow, RejectionRow, StepRecord, TaskRow
from redqueen.runs.store import Store
from redqueen.settings import dump, load

KINDS = ("code_o", "code_i", "code_f")
REASONS = ("duplicate", "syntax", "raises", "timeout", "not_literal")
OPERATORS = ("linear", "ties", "dare", "slerp", "mutate")
ATTEMPTS = 4
PROGRAMS = (
    "def f(x):\n    # the digits of a number, from behind\n    out = []\n    while x > 0:\n        out.append(x % 10)\n"
    "        x //= 10\n    return out",
    "def f(words, n=3):\n    seen = {}\n    for word in words:\n        seen[word[:n]] = seen.get(word[:n], 0) + 1\n"
    "    return sorted(seen.items())",
    "def f(a, b):\n    def gcd(p, q):\n        return p if q == 0 else gcd(q, p % q)\n"
    '    return f"{a // gcd(a, b)}/{b // gcd(a, b)}"',
    "def f(rows):\n    return [sum(column) for column in zip(*rows)]",
)


@dataclass
class Seat:
    """A place, and who holds it."""

    name: str
    role: str
    skill: float
    held: int = 0
    mu: float = 25.0

    @property
    def member(self) -> str:
        return f"{self.name}.{self.held}" if self.held else self.name


@dataclass
class Race:
    """What goes on from step to step."""

    seats: Sequence[Seat]
    numbers: random.Random
    cells: int = 0
    sigma: float = 8.3
    programs: Sequence[str] = PROGRAMS

    def of(self, role: str) -> list[Seat]:
        return [seat for seat in self.seats if seat.role == role]


def make(
    folder: Path, *, steps: int, members: int, tasks: int, seed: int = 0, wanted: int | None = None,
    overrides: Sequence[tuple[str, str]] = (), programs: Sequence[str] = PROGRAMS,
) -> None:  # fmt: skip
    """A run of so many steps, members and tasks; `wanted` steps are asked for, by default as many as it has."""
    half = str(members // 2)
    own = [("population.teachers", half), ("population.students", half), ("run.steps", str(wanted or steps))]
    settings = load("demo", [*own, ("run.seed", str(seed)), *overrides])
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(dump(settings), encoding="utf-8")
    with Store.create(folder) as store:
        store.set_facts({"base": "none", "device": "none: this run was made up", "isolation": "full", "redqueen": "0"})
        for record in records(steps, members, tasks, seed, programs):
            store.write(record)


def records(
    steps: int, members: int, tasks: int, seed: int = 0, programs: Sequence[str] = PROGRAMS
) -> Iterator[StepRecord]:
    numbers = random.Random(seed)
    seats = [
        Seat(f"{role[0]}{place}", role, numbers.uniform(-1, 1))
        for role in ("teacher", "student")
        for place in range(members // 2)
    ]
    race = Race(seats, numbers, programs=programs)
    for step in range(1, steps + 1):
        count = tasks * step // steps - tasks * (step - 1) // steps
        yield _step(race, step, step / steps, count)


def _step(race: Race, step: int, progress: float, count: int) -> StepRecord:
    numbers = race.numbers
    teachers, students = race.of("teacher"), race.of("student")
    numbers.shuffle(students)
    race.sigma = max(1.2, 0.97 * race.sigma)
    kinds = {(match, kind): _Counted() for match in range(len(teachers)) for kind in KINDS}
    tasks: list[TaskRow] = []
    attempts: list[AttemptRow] = []
    rejections: list[RejectionRow] = []
    for place in range(count + count // 5):
        match = place % len(teachers)
        teacher, student, kind = teachers[match], students[match], KINDS[place // len(teachers) % 3]
        if place % 6 == 5:
            reason = REASONS[place // 6 % len(REASONS)]
            text = numbers.choice(race.programs)
            rejections.append(
                RejectionRow(
                    step=step,
                    place=place,
                    match=match,
                    teacher=teacher.member,
                    kind=kind,
                    group_=place // 4,
                    reason=reason,
                    detail="",
                    text=f"```python\n{text}\n```",
                    reward=-1.0,
                    program=text,
                    runs=("when validated, f(1): exc:ValueError in each run",) if reason == "raises" else (),
                )
            )
            continue
        row, tried = _task(race, step, place, match, teacher.member, student, kind, progress)
        tasks.append(row)
        attempts += tried
        kinds[match, kind].add(row)
    matches = [
        each.meeting(step, match, kind, teachers[match].member, students[match].member)
        for (match, kind), each in kinds.items()
    ]
    events = [_event(race, step)] if step % 8 == 0 else []
    return StepRecord(
        step=step,
        matches=matches,
        tasks=tasks,
        rejections=rejections,
        attempts=attempts,
        events=events,
        alarms=[
            AlarmRow(
                step=step,
                number=0,
                subject="teacher",
                measure="effective_size",
                value=1.2,
                floor=1.5,
                says="teachers become alike",
            )
        ]
        if step % 40 == 0
        else [],
        metrics=list(_metrics(race, step, progress, tasks, matches)),
        timings={name: share * numbers.uniform(0.8, 1.2) for name, share in _PHASES.items()},
        timeline=_timeline().as_record(),
    )


def _timeline() -> Timeline:
    """A step of 96 proposals, some much longer than others, whose tasks are attempted as they come."""
    proposals = [(0.1, 0.6 + 0.01 * number) for number in range(96)]
    attempts = [(ended + 0.1, ended + 0.5) for _, ended in proposals for _ in range(ATTEMPTS)]
    phases = [("evolve", (0.0, 0.1)), (STREAM, (0.1, 2.2)), ("grade", (2.2, 2.25)), ("update", (2.25, 3.1))]
    checks = {"code_o": (90, 0.2), "code_i": (80, 0.25), "code_f": (40, 0.3)}
    return Timeline.of(phases, proposals, attempts, checks)


_PHASES = {"match": 0.001, "propose": 1.6, "verify": 0.2, "solve": 1.3, "grade": 0.1, "update": 1.1, "record": 0.02}


@dataclass
class _Counted:
    tasks: int = 0
    unsolved: int = 0
    solved: int = 0

    def add(self, row: TaskRow) -> None:
        self.tasks += 1
        self.unsolved += row.solved == 0
        self.solved += row.solved

    def meeting(self, step: int, match: int, kind: str, teacher: str, student: str) -> Meeting:
        attempts = self.tasks * ATTEMPTS
        rate = self.solved / attempts if attempts else 0.5
        won = MatchResult.STUDENT if rate > 0.55 else MatchResult.TEACHER if rate < 0.45 else MatchResult.DRAW
        return Meeting(
            step=step,
            match=match,
            teacher=teacher,
            student=student,
            kind=kind,
            tasks=self.tasks,
            unsolved=self.unsolved,
            attempts=attempts,
            unsolved_attempts=self.unsolved * ATTEMPTS,
            solved=self.solved,
            foretold=0.5,
            result=won,
            match_result=won,
            teacher_reward=0.1,
            student_reward=0.2,
        )


def _task(
    race: Race, step: int, place: int, match: int, teacher: str, student: Seat, kind: str, progress: float
) -> tuple[TaskRow, list[AttemptRow]]:
    numbers = race.numbers
    chance = min(0.95, max(0.05, 0.45 + 0.1 * student.skill + 0.15 * progress + numbers.uniform(-0.4, 0.3)))
    right = [numbers.random() < chance for _ in range(ATTEMPTS)]
    program = numbers.choice(race.programs)
    row = TaskRow(
        step=step, place=place, match=match, teacher=teacher, kind=kind, group_=place // 4, id=f"{step}-{place}",
        near_key=f"{step}-{place}", descriptor=numbers.choice(("loops", "strings", "recursion")),
        record={"kind": kind, "program": program, "inputs": ["[3, 1, 2]"], "outputs": ["[2, 1, 3]"], "message": ""},
        text=f"```python\n{program}\n```\n```input\n[3, 1, 2]\n```", solved=sum(right), attempts=ATTEMPTS,
        reward=1 - sum(right) / ATTEMPTS, depth=int(5 + 4 * progress + numbers.random() * 3),
        cyclomatic=int(1 + 2 * progress + numbers.random() * 2), lines=int(3 + 5 * progress + numbers.random() * 3),
        variables=int(2 + 2 * progress + numbers.random() * 2), answer_chars=9,
        trivial="copies a reference" if place % 50 == 0 else None, oversight=place % 97 == 0,
    )  # fmt: skip
    tried = [
        AttemptRow(
            step=step,
            place=place,
            student=student.member,
            number=number,
            text=f"```output\n[2, 1, {3 if good else 4}]\n```",
            grade="correct" if good else "wrong",
            reason=None,
            status="ok",
            detail="",
            reward=1.0 if good else -0.5,
            tokens=12,
        )
        for number, good in enumerate(right)
    ]
    return row, tried


def _event(race: Race, step: int) -> EventRow:
    role = ("teacher", "student")[step // 8 % 2]
    worst, *others = sorted(race.of(role), key=lambda seat: seat.mu)
    parents = tuple(seat.member for seat in others[-2:])
    dead, operator = worst.member, OPERATORS[step // 8 % len(OPERATORS)]
    worst.held += 1
    worst.mu = 25.0
    return EventRow(
        step=step,
        role=role,
        seat=worst.name,
        dead=dead,
        child=worst.member,
        operator=operator,
        parents=parents,
        seed=str(step),
    )


def _metrics(
    race: Race, step: int, progress: float, tasks: Sequence[TaskRow], matches: Sequence[Meeting]
) -> Iterator[MetricRow]:
    numbers = race.numbers
    race.cells += int(6 * (1 - progress)) + numbers.randrange(3)
    by_kind: Mapping[str, list[TaskRow]] = {
        kind: [row for row in tasks if kind in ("", row.kind)] for kind in ("", *KINDS)
    }
    for kind, rows in by_kind.items():
        if rows:
            yield MetricRow(
                step=step,
                subject="race",
                kind=kind,
                name="solve_rate",
                value=sum(row.solved for row in rows) / (ATTEMPTS * len(rows)),
            )
            yield MetricRow(step=step, subject="race", kind=kind, name="ruler", value=0.6 - 0.3 * progress)
            yield MetricRow(step=step, subject="race", kind=kind, name="copies", value=0.1 * (1 - progress))
            for name in ("depth", "cyclomatic", "lines", "variables"):
                yield MetricRow(
                    step=step,
                    subject="race",
                    kind=kind,
                    name=name,
                    value=sum(getattr(row, name) for row in rows) / len(rows),
                )
    sampled = 40.0 * len(tasks) * ATTEMPTS
    for name, value in (
        ("coverage", race.cells), ("behaviours", 2 * race.cells), ("new_cells", 3), ("duplicates", 0.1), ("lr", 1e-3),
        ("sampled_tokens", sampled), ("trained_tokens", 0.8 * sampled), ("verifier_runs", 6.0 * len(tasks)),
        ("prompt_tokens", 2 * sampled), ("update_tokens", 2.4 * sampled), ("flops", 1e7 * sampled),
    ):  # fmt: skip
        yield MetricRow(step=step, subject="race", kind="", name=name, value=value)
    for role in ("teacher", "student"):
        yield from _figures(numbers, step, role, progress)
        if step % 10 == 0:
            yield MetricRow(step=step, subject=role, kind="", name="pull", value=1.0)
    for seat in race.seats:
        if step % 8 or seat.mu != 25.0:
            seat.mu += 0.2 * (25 + 4 * seat.skill - seat.mu) + numbers.uniform(-1, 1)
        dead = seat.member
        yield MetricRow(step=step, subject=dead, kind="", name="mu", value=seat.mu)
        yield MetricRow(step=step, subject=dead, kind="", name="sigma", value=race.sigma)
        played = [each for each in matches if seat.name in (each.teacher.split(".")[0], each.student.split(".")[0])]
        tried = sum(each.attempts for each in played)
        if tried:
            yield MetricRow(
                step=step, subject=dead, kind="", name="solve_rate", value=sum(each.solved for each in played) / tried
            )
        yield from _figures(numbers, step, dead, progress)
        for name in ("sampled_tokens", "trained_tokens", "verifier_runs", "prompt_tokens", "update_tokens", "flops"):
            yield MetricRow(step=step, subject=dead, kind="", name=name, value=sampled / len(race.seats))


def _figures(numbers: random.Random, step: int, subject: str, progress: float) -> Iterator[MetricRow]:
    for kind in ("", *KINDS):
        yield MetricRow(
            step=step,
            subject=subject,
            kind=kind,
            name="reward",
            value=0.1 + 0.3 * progress + numbers.uniform(-0.1, 0.1),
        )
        yield MetricRow(
            step=step,
            subject=subject,
            kind=kind,
            name="valid",
            value=min(1.0, 0.75 + 0.2 * progress + numbers.uniform(-0.05, 0.05)),
        )
        yield MetricRow(
            step=step,
            subject=subject,
            kind=kind,
            name="entropy",
            value=0.9 - 0.4 * progress + numbers.uniform(-0.05, 0.05),
        )
        yield MetricRow(
            step=step, subject=subject, kind=kind, name="length", value=30 + 25 * progress + numbers.uniform(-3, 3)
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    make(given.folder, steps=given.steps, members=given.members, tasks=given.tasks, seed=given.seed)


if __name__ == "__main__":
    main()
