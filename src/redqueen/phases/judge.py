"""What tasks and attempts were worth, and who won the matches."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from redqueen.engine.protocol import MemberId
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.population.matchmaking import Match
from redqueen.population.members import Role
from redqueen.population.play import KindOutcome, MatchOutcome
from redqueen.population.results import TaskScore
from redqueen.rl.rewards import INVALID, student_reward, teacher_reward
from redqueen.rl.rollout import Proposal, Rollout
from redqueen.tasks.archive import Entry
from redqueen.tasks.guards import mark_trivial
from redqueen.tasks.protocol import Task
from redqueen.tasks.verdicts import VOID_ATTEMPT, Reason, Rejection, Verdict


def judge(
    race: Race, state: State, step: int, proposals: Sequence[Proposal], attempts: Sequence[Rollout[Verdict]]
) -> list[Rollout]:
    """Every text of the step with its reward: the teachers' in the order of the places, then the students'."""
    proposals, attempts = _withdraw(proposals, attempts)
    made = Counter(attempt.place for attempt in attempts if attempt.counts)
    proposals = [_with_a_rate(proposal, made[proposal.place]) for proposal in proposals]
    solved = Counter(attempt.place for attempt in attempts if attempt.became.correct)
    entries = [
        Entry(
            task=proposal.became,
            step=step,
            teacher=proposal.member,
            solved=solved[proposal.place],
            attempts=made[proposal.place],
        )
        for proposal in proposals
        if isinstance(proposal.became, Task)
    ]
    marked = iter(mark_trivial(entries, state.archive, race.guards.duplicates))
    return [
        *(_paid(race, proposal, next(marked) if isinstance(proposal.became, Task) else None) for proposal in proposals),
        *(replace(attempt, reward=student_reward(attempt.became.grade)) for attempt in attempts),
    ]


def _withdraw(
    proposals: Sequence[Proposal], attempts: Sequence[Rollout[Verdict]]
) -> tuple[list[Proposal], list[Rollout[Verdict]]]:
    """Tasks whose own truth failed beside somebody's attempt are rejected after all, and all attempts at them are void:
    nobody learns from these, wins by them or loses by them."""
    void: dict[int, Verdict] = {}
    for attempt in attempts:
        if attempt.became.void and attempt.judged:
            void.setdefault(attempt.place, attempt.became)
    why = Reason.NONDETERMINISTIC, "its own truth failed when attempts were graded"
    return (
        [
            replace(proposal, became=proposal.became.rejected(*why, void[proposal.place].runs))
            if proposal.place in void
            else proposal
            for proposal in proposals
        ],
        [replace(rollout, became=VOID_ATTEMPT) if rollout.place in void else rollout for rollout in attempts],
    )


def _with_a_rate(proposal: Proposal, attempts: int) -> Proposal:
    """A task without an attempt that could be judged has no solve rate: it could not be judged either."""
    if isinstance(proposal.became, Task) and not attempts:
        rejection = proposal.became.rejected(Reason.NOT_JUDGED, "no attempt at it could be judged")
        return replace(proposal, became=rejection)
    return proposal


def _paid(race: Race, proposal: Proposal, entry: Entry | None) -> Proposal:
    if entry is None:
        return replace(proposal, reward=refused(race, proposal.became) if proposal.counts else 0.0)
    reward = teacher_reward(race.reward, entry.solved, entry.attempts, entry.trivial is None)
    return replace(proposal, entry=entry, reward=reward)


def refused(race: Race, became: Task | Rejection) -> float:
    """What a proposal pays that is no task."""
    duplicate = isinstance(became, Rejection) and became.reason is Reason.DUPLICATE
    return 0.0 if duplicate and race.guards.duplicates == "unpaid" else INVALID


def outcomes(matches: Sequence[Match], rollouts: Sequence[Rollout]) -> list[MatchOutcome]:
    """One for every teacher and student who met, with all valid tasks; by our rule those whose difficulty does not
    count decide no match. What could not be judged is left out, and with it a match of nothing else."""
    right: Counter[tuple[int, MemberId]] = Counter()
    rewards: dict[tuple[int, MemberId], list[float]] = defaultdict(list)
    lost: set[tuple[int, MemberId]] = set()
    for attempt in rollouts:
        if isinstance(attempt.became, Verdict) and attempt.counts:
            right[attempt.place, attempt.member] += attempt.became.correct
            rewards[attempt.place, attempt.member].append(attempt.reward)
        elif not attempt.judged:
            lost.add((attempt.place, attempt.member))
    lost -= rewards.keys()
    meetings: list[MatchOutcome] = []
    for number, match in enumerate(matches):
        proposals = [
            rollout
            for rollout in rollouts
            if rollout.role is Role.TEACHER and rollout.match == number and rollout.counts
        ]
        for student in match.students:
            kinds: dict[str, KindOutcome] = {}
            for kind in dict.fromkeys(proposal.kind for proposal in proposals):
                of_kind = [proposal for proposal in proposals if proposal.kind == kind]
                entries = {proposal.place: proposal.entry for proposal in of_kind if proposal.entry is not None}
                judged = {place: entry for place, entry in entries.items() if (place, student) not in lost}
                if entries and not judged:
                    continue
                scores = tuple(
                    TaskScore(
                        right[place, student],
                        len(rewards[place, student]),
                        entry.solved - right[place, student],
                        entry.trivial is None,
                    )
                    for place, entry in judged.items()
                )
                own = [reward for proposal in of_kind for reward in rewards[proposal.place, student]]
                mean_reward = fmean(proposal.reward for proposal in of_kind)
                kinds[kind] = KindOutcome(scores, mean_reward, fmean(own) if own else None)
            if kinds:
                meetings.append(MatchOutcome(match.teacher, student, kinds))
    return meetings
