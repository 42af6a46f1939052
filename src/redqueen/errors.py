"""The one exception tree.

Every error that a user can cause or mend derives from `UserError` and carries both what is wrong and
how to mend it; the command line prints it as one line and exits with 2. `Fault` is ours and exits with 1.
"""

import difflib
from collections.abc import Iterable


class RedQueenError(Exception):
    """Anything that Red Queen raises on purpose."""

    exit_status = 1


class Fault(RedQueenError):
    """Something went wrong in Red Queen itself."""


class Interrupted(RedQueenError):
    """A signal has ended it. What was done is saved, and the user has been told."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal
        self.exit_status = 128 + signal


class UserError(RedQueenError):
    """Something that the user can mend: `what` is wrong, `mend` is what to do."""

    exit_status = 2

    def __init__(self, what: str, mend: str) -> None:
        super().__init__(f"{what}; {mend}")
        self.what = what
        self.mend = mend

    def __reduce__(self) -> tuple[type["UserError"], tuple[str, str]]:
        """It may come from another process."""
        return type(self), (self.what, self.mend)


class ConfigError(UserError):
    """A configuration that cannot be used."""


class InputError(UserError):
    """A file or an argument that cannot be used."""


class RunError(UserError):
    """A run directory that cannot be used."""


class IsolationError(UserError):
    """This machine cannot isolate untrusted programs as strongly as was asked."""


class MachineError(UserError):
    """The machine failed us for longer than we wait: no memory, no processes, no time. Nothing is wrong with any
    program, and whatever was under way can be begun again."""


class NotJudged(MachineError):
    """It failed a program for so long: there is no verdict on that one. Others are judged."""


class VerifierFault(Fault):
    """The pool of the verifier cannot go on."""


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The known word that looks like the one that was given, if one does."""
    return next(iter(difflib.get_close_matches(given, list(known), 1)), None)


def did_you_mean(given: str, known: Iterable[str], otherwise: str) -> str:
    """How to mend a word that nobody knows: the known one that looks like it, or else what there is."""
    close = nearest(given, known)
    return otherwise if close is None else f"did you mean {close}?"
