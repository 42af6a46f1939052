"""How long somebody elsewhere may say nothing, and how often it is tried again."""

BEAT_S = 1.0
"""How often workers are asked whether they are there, at least."""
START_S = 300.0
"""How long a worker may say nothing until it is open: a process starts, the cluster may have to make room for it, and a
base is loaded."""
AGAIN_S = 5.0
"""Between a worker that could not be opened and the next in its place."""
MANY = 8
"""Times the longest call so far for each thing that it is about, after which one is not waited for any more."""
MOST_LOSSES = 5
"""Workers that one call may cost: after that it is the call's fault."""


def beat_s(patience_s: float) -> float:
    """How often workers are asked whether they are there."""
    return min(BEAT_S, patience_s / 4)


def is_silent(asked: float, now: float, patience_s: float) -> bool:
    """Whether a worker that was asked then is to be taken for dead. It may have stopped a beat before it was asked, and
    is looked at once in a beat: so that is noticed within the patience."""
    return now - asked > patience_s - 2 * beat_s(patience_s)
