"""Who is meant by the best student or teacher: whoever did best in what all of them were measured by, or is rated best
where nothing was measured."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from redqueen.errors import InputError
from redqueen.population.members import Member, Population, Role
from redqueen.runs import benchmarks, exams


def best(run: Path, population: Population, step: int, role: Role) -> tuple[str, str]:
    """The member's id, and by what it was chosen, of the population as it was after this step."""
    rated = population.best(role)
    members = population.of(role)
    ids = {member.id for member in members}
    if len(ids) == 1:
        return rated.id, f"{rated.id} is the only {role}"
    try:
        for what, values in chain(_exams(run, step), _benchmarks(run, step)):
            if ids <= values.keys():
                first = max(members, key=lambda member: (values[member.id], member.rating.lower))
                return first.id, f"{first.id} is the best {role} by {what}: {100 * values[first.id]:.1f} %"
        more = _hint(run, role, members)
    except InputError as error:
        more = f", since {error.what}"
    return rated.id, f"{rated.id} is the best {role} by its rating{more}"


def _hint(run: Path, role: Role, members: Sequence[Member]) -> str:
    if role is Role.TEACHER:
        return ""
    return f"; after `redqueen exam {run}` it is the best of the {len(members)} at that exam"


def _exams(run: Path, step: int) -> Iterator[tuple[str, Mapping[str, float]]]:
    """What each exam found after this step, by member, the newest exam first."""
    results = [result for result in exams.read(run) if result.step == step]
    for paper in dict.fromkeys(result.paper for result in reversed(results)):
        of_paper = [result for result in results if result.paper == paper]
        for figure in ("sampled", "greedy"):
            measured = {result.subject: result.figures[figure] for result in of_paper if figure in result.figures}
            yield f"the exam {of_paper[0].title}, {figure}", measured


def _benchmarks(run: Path, step: int) -> Iterator[tuple[str, Mapping[str, float]]]:
    """The mean of all benchmarks that a member was asked after this step, of those who were asked most."""
    by_member: dict[str, dict[str, float]] = {}
    for result in benchmarks.read(run):
        if result.member is not None and result.step == step:
            by_member.setdefault(result.member, {})[result.asked] = result.value
    asked = max(map(frozenset, by_member.values()), key=len, default=frozenset[str]())
    if asked:
        means = {
            member: statistics.fmean(found[name] for name in asked)
            for member, found in by_member.items()
            if asked <= found.keys()
        }
        yield f"the mean of {len(asked)} benchmark figures", means
