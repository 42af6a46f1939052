"""Every figure of a step: of the race, of both roles, of each member, where it applies by kind."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import NamedTuple, TypeVar

from redqueen.analysis.account import Usage
from redqueen.engine.flops import Passage
from redqueen.engine.protocol import MemberId
from redqueen.phases.happened import Happened
from redqueen.phases.learn import entropy, sound
from redqueen.phases.pull import pulled_roles
from redqueen.phases.race import Race
from redqueen.population.board import Meeting
from redqueen.population.members import Population, Role
from redqueen.rl.rollout import Rollout
from redqueen.runs import metrics
from redqueen.runs.metrics import BASE, RACE, Metric
from redqueen.runs.rows import MetricRow
from redqueen.tasks.protocol import NO_COMPLEXITY, Complexity
from redqueen.tasks.verdicts import Reason, Rejection, Verdict


class Figure(NamedTuple):
    metric: Metric
    subject: str
    value: float
    kind: str = ""


class AtItem(NamedTuple):
    kind: str
    student: MemberId
    attempts: int
    solved: int


def step_metrics(race: Race, happened: Happened) -> list[MetricRow]:
    rollouts = [rollout for rollout in happened.rollouts if rollout.counts]
    proposals = [rollout for rollout in rollouts if rollout.role is Role.TEACHER]
    figures = chain(
        _of_texts(happened.population, rollouts),
        _of_attempts(happened.population, [rollout for rollout in rollouts if rollout.role is Role.STUDENT]),
        _of_play(happened, rated=race.rated),
        _of_compute(race, happened),
        _of_updates(happened),
        _of_proposals(happened, proposals),
        _of_measures(happened),
        _of_kinds(race, happened) if race.other_families else (),
        _of_diversity(happened),
        (Figure(metrics.TRIAL, member, value) for member, value in happened.evolved.trials.values.items()),
        (
            Figure(metrics.PULL, role, race.settings.evolution.pull)
            for role in pulled_roles(race, happened.step, happened.population)
        ),
        (Figure(metrics.TRIAL_TASKS, member, count) for member, count in happened.evolved.trials.tasks.items()),
    )
    # Where two are of the same name, the later one counts.
    rows = {
        (figure.subject, figure.kind, figure.metric.name): MetricRow(
            step=happened.step,
            subject=figure.subject,
            kind=figure.kind,
            name=figure.metric.name,
            value=float(figure.value),
        )
        for figure in figures
    }
    return list(rows.values())


def _of_texts(population: Population, rollouts: Sequence[Rollout]) -> Iterator[Figure]:
    for subject, own in _subjects(population, rollouts):
        for kind, some in _by_kind(own):
            yield Figure(metrics.REWARD, subject, fmean(rollout.reward for rollout in some), kind)
            yield Figure(metrics.VALID, subject, sound(some), kind)
            yield Figure(metrics.LENGTH, subject, fmean(len(rollout.sample.tokens) for rollout in some), kind)
            yield Figure(metrics.ENTROPY, subject, entropy(some), kind)


def _of_attempts(population: Population, attempts: Sequence[Rollout]) -> Iterator[Figure]:
    own = {
        student.id: [attempt for attempt in attempts if attempt.member == student.id] for student in population.students
    }
    for subject, some in {RACE: attempts, **own}.items():
        for kind, of_kind in _by_kind(some):
            yield Figure(metrics.COPIES, subject, fmean(attempt.became.shortcut for attempt in of_kind), kind)


def _of_play(happened: Happened, *, rated: bool) -> Iterator[Figure]:
    at_items = _at_items(happened)
    for subject, played in _played(happened.population, happened.meetings):
        own = [tried for tried in at_items if subject in (RACE, tried.student)]
        for kind, some in _by_kind([*played, *own]):
            attempts = sum(each.attempts for each in some)
            if attempts:
                yield Figure(metrics.SOLVE_RATE, subject, sum(each.solved for each in some) / attempts, kind)
    for member in happened.population.members if rated else ():
        yield Figure(metrics.MU, member.id, member.rating.mu)
        yield Figure(metrics.SIGMA, member.id, member.rating.sigma)


def _at_items(happened: Happened) -> list[AtItem]:
    """What students came to at items, which are in no match."""
    kinds = {item.place: item.kind for item in happened.items if item.entry is not None}
    return [
        AtItem(kinds[rollout.place], rollout.member, 1, int(rollout.became.correct))
        for rollout in happened.rollouts
        if rollout.place in kinds and isinstance(rollout.became, Verdict) and rollout.counts
    ]


def _of_compute(race: Race, happened: Happened) -> Iterator[Figure]:
    used = _usage(happened, race)
    total = sum(used.values(), Usage(verifier_runs=happened.verifier_runs.get(RACE, 0)))
    for subject, usage in {**used, RACE: total}.items():
        for metric in metrics.COMPUTE:
            yield Figure(metric, subject, getattr(usage, metric.name))


def _of_updates(happened: Happened) -> Iterator[Figure]:
    learned = happened.learned
    for adapter, stats in learned.stats.items():
        for metric in metrics.UPDATE:
            yield Figure(metric, adapter, getattr(stats, metric.name))
        yield Figure(metrics.UPDATED, adapter, not stats.skipped)
    for skip in learned.skips:
        yield Figure(metrics.UPDATED, skip.member, 0)
    for adapter, lr in learned.lrs.items():
        yield Figure(metrics.LR, adapter, lr)


def _of_proposals(happened: Happened, proposals: Sequence[Rollout]) -> Iterator[Figure]:
    rejections = [proposal.became for proposal in proposals if isinstance(proposal.became, Rejection)]
    duplicates = sum(rejection.reason is Reason.DUPLICATE for rejection in rejections)
    if proposals:
        yield Figure(metrics.DUPLICATES, RACE, duplicates / len(proposals))
    complexity = happened.measured.complexity
    for subject, own in _with_programs(happened.population, proposals, complexity):
        for kind, some in _by_kind(own):
            for metric in metrics.COMPLEXITY:
                yield Figure(
                    metric, subject, fmean(getattr(complexity[proposal.place], metric.name) for proposal in some), kind
                )


def _of_measures(happened: Happened) -> Iterator[Figure]:
    measured = happened.measured
    yield Figure(metrics.COVERAGE, RACE, len(measured.cells))
    yield Figure(metrics.NEW_CELLS, RACE, measured.new_cells)
    yield Figure(metrics.BEHAVIOURS, RACE, len(measured.seen))
    if measured.semantic_distance is not None:
        yield Figure(metrics.SEMANTIC_DISTANCE, RACE, measured.semantic_distance)
    for kind, rate in happened.ruled.items():
        yield Figure(metrics.RULER, RACE, rate, kind)
    for (subject, benchmark), right in happened.evaluated.items():
        yield Figure(metrics.BENCHMARK, subject, right, benchmark)


def _of_kinds(race: Race, happened: Happened) -> Iterator[Figure]:
    measured = happened.measured
    filled = Counter(cell.partition("/")[0] for cell in measured.cells.cells)
    for kind in race.kinds:
        yield Figure(metrics.COVERAGE, RACE, filled[kind], kind)
    for kind, rate in measured.guess_rates.items():
        yield Figure(metrics.GUESS_RATE, RACE, rate, kind)


def _of_diversity(happened: Happened) -> Iterator[Figure]:
    drift, elsewhere, seen = happened.drift, happened.elsewhere, happened.seen
    if drift is not None:
        for adapter, distance in drift.from_base.items():
            yield Figure(metrics.DRIFT, adapter, distance)
        for role, distance in drift.within_role.items():
            yield Figure(metrics.FUNCTION_DISTANCE, str(role), distance)
    if elsewhere is not None:
        for adapter, distance in elsewhere.distance.items():
            yield Figure(metrics.ELSEWHERE, adapter, distance)
        for metric, values in (
            (metrics.ELSEWHERE_LENGTH, elsewhere.length),
            (metrics.ELSEWHERE_ENTROPY, elsewhere.entropy),
        ):
            for subject, value in values.items():
                yield Figure(metric, subject or BASE, value)
    if seen is not None:
        for role, spread in seen.diversity.roles.items():
            yield Figure(metrics.EFFECTIVE_SIZE, str(role), spread.effective_size)
            yield Figure(metrics.WEIGHT_DISTANCE, str(role), spread.weight_distance)
        for teacher, variety in seen.diversity.teachers.items():
            yield Figure(metrics.KINDS_BITS, teacher, variety.kinds_bits)
            yield Figure(metrics.DESCRIPTORS_BITS, teacher, variety.descriptors_bits)


def _usage(happened: Happened, race: Race) -> dict[MemberId, Usage]:
    """By adapter: what it sampled, void attempts included, was trained on, and had the verifier do."""
    texts: dict[MemberId, list[tuple[tuple[int, ...], int]]] = defaultdict(list)
    verified: dict[MemberId, int] = defaultdict(int)
    for rollout in (*happened.rollouts, *happened.spare, *happened.evolved.trials.rollouts):
        texts[race.adapter(rollout.member)].append((rollout.request.prompt, len(rollout.sample.tokens)))
    for member, count in happened.verifier_runs.items():
        if member != RACE:
            verified[race.adapter(member)] += count
    learned, size = happened.learned, race.size
    used: dict[MemberId, Usage] = {}
    for id in dict.fromkeys((*texts, *learned.stats, *verified)):
        sampled, trained, stats = Passage.of(texts[id]), learned.passages.get(id, Passage()), learned.stats.get(id)
        # The price of being unlike the base takes the base's own log-probabilities.
        scored = size.forward(trained, adapted=False) if race.settings.rl.kl else 0
        used[id] = Usage(
            sampled_tokens=sampled.completion_tokens,
            prompt_tokens=sampled.prompt_tokens,
            trained_tokens=0 if stats is None or stats.skipped else stats.trained_tokens,
            update_tokens=trained.tokens,
            verifier_runs=verified[id],
            flops=size.forward(sampled) + size.training(trained) + scored,
        )
    return used


OfKind = TypeVar("OfKind", Rollout, Meeting, Meeting | AtItem)


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
