"""Who is or was in a race, as its records have it: births and deaths, and whom an export would take."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from redqueen.analysis.best import best
from redqueen.analysis.summary import origin
from redqueen.population.lineage import everybody, generations
from redqueen.population.members import Birth, Grave, Member, Population, Role
from redqueen.population.ratings import Rating
from redqueen.runs import metrics
from redqueen.runs.rows import EventRow
from redqueen.runs.store import Store


def population(store: Store, events: Sequence[EventRow], step: int) -> Population:
    """As it was after this step, with the ratings of then. Who has none keeps the one that all begin with."""
    ratings = _ratings(store, step)
    happened = [event for event in events if event.step <= step]
    born = {event.child for event in events}
    founders = [id for id in (*store.players(), *ratings, *(event.dead for event in happened)) if id not in born]
    everyone = {id: Member(id=id, role=_role(id), seat=id.partition(".")[0]) for id in founders}
    for event in happened:
        birth = Birth(event.step, event.operator, event.parents)
        everyone[event.child] = Member(id=event.child, role=Role(event.role), seat=event.seat, birth=birth)
    everyone = {id: replace(member, rating=ratings.get(id, member.rating)) for id, member in everyone.items()}
    deaths = {event.dead: event.step for event in happened}
    living = sorted(
        (member for id, member in everyone.items() if id not in deaths),
        key=lambda member: (member.role is Role.STUDENT, member.seat_number),
    )
    return Population(tuple(living), tuple(Grave(everyone[id], died) for id, died in deaths.items()))


def members(store: Store, events: Sequence[EventRow], step: int) -> list[dict[str, Any]]:
    """Everybody in the order of their births, those born together by role and seat."""
    all_members = everybody(population(store, events, step))
    ages = generations({id: member.birth.parents for id, member in all_members.items()})
    deaths = {event.dead: event.step for event in events}
    return [
        {
            "id": id,
            "role": str(member.role),
            "seat": member.seat,
            "born": member.birth.step,
            "died": deaths.get(id),
            "operator": member.birth.operator,
            "parents": list(member.birth.parents),
            "from": origin(member.birth, ages[id]),
        }
        for id, member in all_members.items()
    ]


def exported(folder: Path, store: Store, events: Sequence[EventRow]) -> list[dict[str, Any]]:
    """Whom `export --member student` and `teacher` take from the newest checkpoint, and why."""
    step = store.saved()
    if not step:
        return []
    there = population(store, events, step)
    chosen = ((role, best(folder, there, step, role)) for role in Role if there.of(role))
    return [{"role": str(role), "id": id, "why": why, "step": step} for role, (id, why) in chosen]


def _role(founder: str) -> Role:
    return next(role for role in Role if role[0] == founder[0])


def _ratings(store: Store, step: int) -> Mapping[str, Rating]:
    """Those after this step."""
    mu, sigma = (
        {who: value for who, _, at, value in store.figures(metric, step - 1, metrics.RACE) if at == step and value}
        for metric in (metrics.MU, metrics.SIGMA)
    )
    return {id: Rating(mu[id], sigma[id]) for id in mu.keys() & sigma.keys()}
