"""What tasks and attempts were worth, and who won the matches."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from redqueen.engine.protocol import MemberId
from redqueen.phases.race import Posed, Race, Try
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match
from redqueen.population.play import KindOutcome, MatchOutcome
from redqueen.population.results import TaskScore
from redqueen.rl.rewards import INVALID, student_reward, teacher_reward
from redqueen.tasks.archive import Entry
from redqueen.tasks.guards import mark_trivial
from redqueen.tasks.protocol import VOID_ATTEMPT, Reason, Task, Verdict


@dataclass(frozen=True, slots=True)
class Scored:
    """A proposal and what it was worth to its teacher."""

    posed: Posed
    entry: Entry | None
    """How its task fared, for the archive; None for a rejection."""
    reward: float


def withdraw(posed: Sequence[Posed], tries: Sequence[Try]) -> tuple[list[Posed], list[Try]]:
    """Tasks whose own truth failed beside somebody's attempt are rejected after all, and all attempts at them are void:
    nobody learns from these, wins by them or loses by them."""
    void: dict[int, Verdict] = {}
    for each in tries:
        if each.verdict.void:
            void.setdefault(each.place, each.verdict)
    return (
        [_withdrawn(each, void[each.proposal.place]) if each.proposal.place in void else each for each in posed],
        [replace(each, verdict=VOID_ATTEMPT) if each.place in void else each for each in tries],
    )


def _withdrawn(posed: Posed, first: Verdict) -> Posed:
    why = Reason.NONDETERMINISTIC, "its own truth failed when attempts were graded"
    return replace(posed, task=posed.task.rejected(*why, first.runs), aside=False)


def score(race: Race, state: State, step: int, posed: Sequence[Posed], tries: Sequence[Try]) -> list[Scored]:
    """The teachers' side, in the order of the places."""
    attempts = Counter(each.place for each in tries)
    solved = Counter(each.place for each in tries if each.verdict.correct)
    entries = {
        each.proposal.place: Entry(
            each.task, step, each.proposal.teacher, solved[each.proposal.place], attempts[each.proposal.place]
        )
        for each in posed
        if isinstance(each.task, Task)
    }
    marked = mark_trivial(list(entries.values()), state.archive, race.guards.duplicates)
    entries = dict(zip(entries, marked, strict=True))
    return [_scored(race, each, entries.get(each.proposal.place)) for each in posed]


def _scored(race: Race, posed: Posed, entry: Entry | None) -> Scored:
    if entry is None:
        return Scored(posed, None, INVALID)
    reward = teacher_reward(race.settings.rl.reward, entry.solved, entry.attempts, entry.trivial is None)
    return Scored(posed, entry, reward)


def outcomes(matches: Sequence[Match], scored: Sequence[Scored], tries: Sequence[Try]) -> list[MatchOutcome]:
    """One for every teacher and student who met, with all valid tasks; by our rule those whose difficulty does not
    count decide no match."""
    right: Counter[tuple[int, MemberId]] = Counter()
    made: Counter[tuple[int, MemberId]] = Counter()
    rewards: dict[tuple[int, MemberId], list[float]] = {}
    for each in tries:
        if each.verdict.void:
            continue
        sitting = each.place, each.student
        made[sitting] += 1
        right[sitting] += each.verdict.correct
        rewards.setdefault(sitting, []).append(student_reward(each.verdict.grade))
    found: list[MatchOutcome] = []
    for number, match in enumerate(matches):
        ours = [each for each in scored if each.posed.proposal.match == number]
        for student in match.students:
            kinds: dict[str, KindOutcome] = {}
            for kind in dict.fromkeys(each.posed.proposal.kind for each in ours):
                of_kind = [each for each in ours if each.posed.proposal.kind == kind]
                places = [each.posed.proposal.place for each in of_kind]
                scores = tuple(
                    TaskScore(
                        right[place, student],
                        made[place, student],
                        entry.solved - right[place, student],
                        entry.trivial is None,
                    )
                    for place, entry in zip(places, (each.entry for each in of_kind), strict=True)
                    if entry is not None
                )
                own = [reward for place in places for reward in rewards.get((place, student), [])]
                kinds[kind] = KindOutcome(scores, fmean(each.reward for each in of_kind), fmean(own) if own else None)
            found.append(MatchOutcome(match.teacher, student, kinds))
    return found
