"""What becomes of a text: why a proposal is no task, what an attempt is worth. Whatever can go wrong with a text has a
`Reason`, so that a run can count it."""

from dataclasses import dataclass
from enum import StrEnum

from redqueen.verifier import Status


class Reason(StrEnum):
    """Why a proposal was rejected, or why an attempt is malformed."""

    # The text is off its contract.
    CUT = "cut"
    """It ends inside a fenced block or a thought, as a completion does that ran into the length limit."""
    TEXT_TOO_LONG = "text_too_long"
    NOT_TEXT = "not_text"
    """It has a lone surrogate or a NUL."""
    NO_PROGRAM = "no_program"
    NO_PUZZLE = "no_puzzle"
    NO_PROOF = "no_proof"
    NO_STORY = "no_story"
    NO_QUESTION = "no_question"
    """It asks for nothing, or for what cannot be read."""
    NO_INPUT = "no_input"
    NO_ANSWER = "no_answer"
    OUTSIDE = "outside"
    """An answer in the right form has a value that the question does not allow."""
    TOO_FEW_INPUTS = "too_few_inputs"
    TOO_MANY_INPUTS = "too_many_inputs"
    PROGRAM_TOO_LONG = "program_too_long"
    INPUT_TOO_LONG = "input_too_long"
    MESSAGE_TOO_LONG = "message_too_long"
    ANSWER_TOO_LONG = "answer_too_long"
    TOO_DEEP = "too_deep"
    """Nested deeper than anything that a person would write."""
    FENCE = "fence"
    """It has three backticks in a row, which would end the block that shows it."""
    NOT_LITERAL = "not_literal"
    """An input or an answer is something else than plain values."""
    OFF_BRIEF = "off_brief"
    """It is about something else than what was asked for."""

    # The program is off its contract.
    SYNTAX = "syntax"
    NO_ENTRY = "no_entry"
    """No function `f` at the top level."""
    NOT_PLAIN_FUNCTION = "not_plain_function"
    """`f` is a coroutine or a generator."""
    NO_PARAMETERS = "no_parameters"
    FORBIDDEN_IMPORT = "forbidden_import"
    FORBIDDEN_NAME = "forbidden_name"
    UNUSED = "unused"
    """It has a function or a class that is defined twice or that nothing uses."""

    INVALID_STEP = "invalid_step"
    """A step of a proof refers to nothing that there is, or what it refers to does not fit."""

    # The program ran and came to nothing that can be asked.
    RAISES = "raises"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASH = "crash"
    VIOLATION = "violation"
    NO_RESULT = "no_result"
    NONDETERMINISTIC = "nondeterministic"
    NOT_PLAIN = "not_plain"
    """The result is not made of plain values alone."""
    NOT_FINITE = "not_finite"
    """A number is infinite or not a number."""
    NONE_RESULT = "none_result"
    OUTPUT_TOO_LONG = "output_too_long"
    CONSTANT = "constant"
    """Every input gives the same output."""
    UNANSWERABLE = "unanswerable"
    """The right answer, written as students are asked to, would not be read as right."""
    SHORTCUT = "shortcut"
    """It can be solved without reasoning, by giving back what is shown for one."""

    # The machine failed whatever would have judged it.
    NOT_JUDGED = "not_judged"
    """Nothing is known of it, and it counts for nobody."""

    # The program is sound, but not wanted.
    HELD_OUT = "held_out"
    """It is, or has in it, a program that is kept for evaluation."""
    DENIED = "denied"
    """One of the user's patterns matches."""
    TOO_COMPLEX = "too_complex"
    """It is over one of the user's caps, or takes more to check than a check may."""
    DUPLICATE = "duplicate"
    """An earlier task has the same program, up to names and layout."""
    GUESSABLE = "guessable"
    """Too many recent tasks of its kind have the same answer, or too many answers are right."""
    TOO_EASY = "too_easy"
    """What it shows is nearly the answer already, or next to nothing in it is needed."""
    JOINED = "joined"
    """It falls into parts that have nothing to do with each other."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a proposal is no task."""

    reason: Reason
    detail: str = ""
    """In our words and ASCII, whatever the model wrote."""
    program: str = ""
    """As far as one was read."""
    runs: tuple[str, ...] = ()
    """What each call of the program gave, in each run that the rejection rests on; none where it was not run. Two runs
    of a nondeterministic program need not give the same, so nothing may depend on it."""

    @property
    def judged(self) -> bool:
        return self.reason is not Reason.NOT_JUDGED

    @property
    def why(self) -> str:
        """In a few words."""
        return f"{self.reason} ({self.detail})" if self.detail else str(self.reason)

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> "Rejection":
        """The same proposal, rejected for what comes before this."""
        return Rejection(reason, detail, self.program, (*self.runs, *runs))


class Grade(StrEnum):
    """What an attempt is worth."""

    CORRECT = "correct"
    WRONG = "wrong"
    MALFORMED = "malformed"
    """Off the answer's contract: nothing was there to be judged."""
    VOID = "void"
    """It counts for nobody: the task's own truth failed beside it, so that the task is no task, or the machine failed
    its judging (`NOT_JUDGED`), which says nothing about the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of an attempt."""

    grade: Grade
    reason: Reason | None = None
    """Why it is malformed or void; why it is wrong where a source's grader fails at it."""
    status: Status | None = None
    """How the run ended that the grade rests on; None when nothing was run."""
    detail: str = ""
    runs: tuple[str, ...] = ()
    """Of a void attempt: what the task's own truth gave, as in `Rejection.runs`."""
    shortcut: bool = False
    """The answer, right or wrong, gives back what is shown."""

    @property
    def correct(self) -> bool:
        return self.grade is Grade.CORRECT

    @property
    def well_formed(self) -> bool:
        return self.grade is not Grade.MALFORMED

    @property
    def void(self) -> bool:
        return self.grade is Grade.VOID

    @property
    def judged(self) -> bool:
        return self.reason is not Reason.NOT_JUDGED


def malformed(rejection: Rejection, status: Status | None = None) -> Verdict:
    """The verdict on an answer that is off its contract, or could not be read for the machine's sake."""
    if not rejection.judged:
        return NOT_JUDGED_ATTEMPT
    return Verdict(grade=Grade.MALFORMED, reason=rejection.reason, status=status, detail=rejection.detail)


NOT_JUDGED_ATTEMPT = Verdict(grade=Grade.VOID, reason=Reason.NOT_JUDGED, status=Status.FAULT)
VOID_ATTEMPT = Verdict(grade=Grade.VOID, reason=Reason.NONDETERMINISTIC, detail="the task's own truth fails now")
CUT_ATTEMPT = malformed(Rejection(Reason.CUT, "stopped at the length limit"))
