"""A task that validates is solved by its own truth, and a wrong literal never passes. Programs really run."""

import asyncio

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from redqueen.tasks.code import FAMILY, CodeDraft, CodeTask
from redqueen.tasks.protocol import Attempt
from redqueen.tasks.verdicts import Grade, Reason, Rejection
from redqueen.verifier.guest.literals import encode
from tasks.proposing import fence, grade, pair

KINDS = FAMILY.kinds()


# A small grammar of programs. `x` is any plain number or text, so that some of them fail, and must be rejected.
ATOMS = st.sampled_from(
    ["x", "y", "x", "2", "7", "-3", "0.5", "'ab'", "True", "[x, 1]", "len(str(x))", "g(x)", "None", "1e300"]
)


def _larger(inner):
    pairs = st.tuples(inner, st.sampled_from(["+", "-", "*", "%", "//", "/", "==", "<", "and", "or"]), inner)
    return st.one_of(
        pairs.map(lambda parts: "(" + " ".join(parts) + ")"),
        inner.map("[{0}, {0}]".format),
        inner.map("({},)".format),
        inner.map("{{'k': {}}}".format),
        inner.map("{{{0}, 3}}".format),
        inner.map("str({})".format),
        inner.map("sorted(str({}))".format),
        st.tuples(inner, inner, inner).map("({0[0]} if {0[1]} else {0[2]})".format),
        inner.map("[i * 2 for i in range(4) if i != {}]".format),
        inner.map("float({})".format),
        inner.map("str({}).encode()".format),
        inner.map("set({})".format),
    )


EXPRESSIONS = st.recursive(ATOMS, _larger, max_leaves=6)
PROGRAMS = st.tuples(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS).map(
    "def g(x, y=1):\n    return {0[0]}\n\ndef f(x, y=2):\n    z = {0[1]}\n    return {0[2]} if x else (z, g)[0]".format
).filter(lambda program: "g(x)" not in program.partition("def f")[0])  # fmt: skip
INPUTS = st.one_of(
    st.integers(-99, 99).map(str),
    st.integers(-99, 99).map("x={}, y=5".format),
    st.floats(allow_nan=False, allow_infinity=False, width=16).map(repr),
    st.text(max_size=5).map(ascii),
    st.sampled_from(["True", "None", "[1, 2]", "{'a': 1}", "(1,)", "3, 4", "''", "set()"]),
)


@settings(max_examples=25)
@given(st.lists(st.tuples(PROGRAMS, INPUTS), min_size=12, max_size=12))
def test_what_validates_is_solved_by_its_own_truth(verifier, drafts):
    for name, answer in (("code_o", lambda task: task.outputs[0]), ("code_i", lambda task: task.inputs[0])):
        kind = KINDS[name]
        parsed = [kind.parse_proposal(pair(*draft), {}) for draft in drafts]
        assert all(isinstance(draft, CodeDraft) for draft in parsed)
        became = asyncio.run(kind.validate([*parsed, CodeDraft(name, "def f(x):\n    return [x]", ("1",))], verifier))
        tasks = [task for task in became if isinstance(task, CodeTask)]
        attempts = [Attempt(task, fence(label, answer(task))) for task in tasks for label in ("", "output", "input")]
        assert all(verdict.correct for verdict in asyncio.run(kind.grade(attempts, verifier)))
        assert tasks
        rejections = [task for task in became if isinstance(task, Rejection)]
        expected = {Reason.RAISES, Reason.NOT_FINITE, Reason.NONE_RESULT, Reason.OUTPUT_TOO_LONG, Reason.NOT_PLAIN}
        assert {rejection.reason for rejection in rejections} <= expected | {Reason.NONDETERMINISTIC, Reason.FENCE}


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(PROGRAMS, st.lists(st.integers(-50, 50), min_size=4, max_size=8, unique=True)), min_size=6, max_size=6
    )
)
def test_a_function_task_that_validates_is_solved_by_its_own_program(verifier, drafts):
    kind = KINDS["code_f"]
    parsed = [kind.parse_proposal(fence("inputs", "\n".join(map(str, ins))), {"program": prog}) for prog, ins in drafts]
    tasks = [task for task in asyncio.run(kind.validate(parsed, verifier)) if isinstance(task, CodeTask)]
    attempts = [Attempt(task, fence("python", task.program)) for task in tasks]
    assert all(verdict.correct for verdict in asyncio.run(kind.grade(attempts, verifier)))
    constants = [
        Attempt(task, fence("python", f"def f(x, y=2):\n    return {out}")) for task in tasks for out in task.outputs
    ]
    assert not any(verdict.correct for verdict in asyncio.run(kind.grade(constants, verifier)))


# Plain values without floats: for these, right means exactly the same.
HASHABLE = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab'\\\né", max_size=2) | st.binary(max_size=2),
    lambda inner: st.tuples(inner) | st.tuples(inner, inner),
    max_leaves=3,
)
EXACT = st.recursive(
    HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(HASHABLE, inner, max_size=2)
        | st.sets(HASHABLE, max_size=3)
    ),
    max_leaves=6,
)


def exactly(value):
    """A key that is equal for the same values only; independent of the code under test."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind, frozenset((exactly(key), exactly(item)) for key, item in value.items())
    if isinstance(value, set):
        return kind, frozenset(map(exactly, value))
    if isinstance(value, list | tuple):
        return kind, tuple(map(exactly, value))
    return kind, value


def mutants(value):
    """Values close to this one."""
    yield from ([value], (value,), str(value), None, True, 1, 1.0, 0, False, "", b"", [], (), {}, set())
    if isinstance(value, list | tuple):
        yield from (value[:-1], value * 2, value[::-1], list(value), tuple(value), type(value)([*value, None]))
        for place, item in enumerate(value):
            yield from (
                type(value)([*value[:place], other, *value[place + 1 :]]) for other in (not item, str(item), [item])
            )
    elif isinstance(value, dict):
        yield from (
            list(value),
            list(value.items()),
            {**value, "extra": None},
            {str(key): item for key, item in value.items()},
        )
        yield from ({**value, key: [item]} for key, item in value.items())
    elif isinstance(value, set):
        yield from (sorted(value, key=repr), value | {"extra"}, {str(item) for item in value}, dict.fromkeys(value))
    elif isinstance(value, int):
        yield from (int(value) + 1, -value, float(value), complex(value), bool(value), int(value))
    elif isinstance(value, str | bytes):
        yield from (value * 2, value + value[:1], value[:-1], value.swapcase(), repr(value), list(value))


@settings(max_examples=60)
@given(EXACT, st.lists(EXACT, max_size=3))
@example(1, [])
@example(True, [])
@example({1: [True], "a": (0, 0)}, [])
@example({(1,), (True, 2)}, [])
def test_a_wrong_literal_never_passes(verifier, truth, others):
    task = CodeTask(
        "code_o", program="def f(x):\n    return x", inputs=(encode(truth, 10**6),), outputs=(encode(truth, 10**6),)
    )
    candidates = [truth, *mutants(truth), *others]
    verdicts = grade(KINDS["code_o"], verifier, task, *(fence("output", repr(value)) for value in candidates))
    assert [v.correct for v in verdicts] == [exactly(value) == exactly(truth) for value in candidates]
    assert all(verdict.well_formed for verdict in verdicts)


@settings(max_examples=30)
@given(EXACT, st.lists(EXACT, max_size=3))
@example(1, [])
def test_an_input_passes_only_if_it_gives_the_output(verifier, truth, others):
    given = encode(truth, 10**6)
    assume(len(given) < 900)
    task = CodeTask("code_i", program="def f(x):\n    return [x]", inputs=(given,), outputs=(f"[{given}]",))
    candidates = [truth, *mutants(truth), *others]
    verdicts = grade(KINDS["code_i"], verifier, task, *(fence("input", f"x={value!r}") for value in candidates))
    assert [v.correct for v in verdicts] == [exactly(value) == exactly(truth) for value in candidates]


@settings(max_examples=30)
@given(st.lists(EXACT, min_size=4, max_size=6), EXACT, st.data())
def test_a_function_that_is_wrong_once_is_wrong(verifier, outputs, other, data):
    place = data.draw(st.integers(0, len(outputs) - 1))
    task = CodeTask(
        "code_f",
        program=f"def f(x):\n    return {outputs!r}[x]",
        inputs=tuple(map(str, range(len(outputs)))),
        outputs=tuple(encode(output, 10**6) for output in outputs),
        shown=len(outputs) // 2,
    )
    changed = [*outputs[:place], other, *outputs[place + 1 :]]
    answers = [fence("python", f"def f(x):\n    return {table!r}[x]") for table in (outputs, changed)]
    assume(all(len(answer) < 3_500 for answer in answers))
    first, second = grade(KINDS["code_f"], verifier, task, *answers)
    assert first.grade is Grade.CORRECT
    assert second.correct == (exactly(other) == exactly(outputs[place]))


@settings(max_examples=40)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([1e-3, 1e-5, -1e-4, 0.5]))
@example(0.1 + 0.2, 1e-5)
def test_floats_are_compared_within_a_tolerance_and_not_beyond(verifier, truth, off):
    assume(1e-6 < abs(truth) < 1e300)
    assume(not truth.is_integer() or abs(truth) >= 2**53)  # these are equal or not
    task = CodeTask(
        "code_o", program="def f(x):\n    return x", inputs=(repr(truth),), outputs=(encode({"a": [truth]}, 1_000),)
    )
    near, far = truth * (1 + 1e-10), truth * (1 + off)
    answers = [f"{{'a': [{value}]}}" for value in (repr(near), f"{truth:.15g}", repr(far), int(truth), f"{truth!r}j")]
    verdicts = grade(KINDS["code_o"], verifier, task, *answers)
    assert [verdict.correct for verdict in verdicts] == [
        True,
        "." in answers[1] or "e" in answers[1],
        False,
        False,
        False,
    ]


@settings(max_examples=40)
@given(st.lists(st.text(st.characters(codec=None, exclude_categories=()), max_size=60), min_size=5, max_size=5))
def test_grading_never_raises_on_any_text(verifier, texts):
    for kind, program in (("code_o", ""), ("code_i", ""), ("code_f", "def f(x):\n    return ")):
        task = CodeTask(
            kind,
            program="def f(x):\n    return {'no such text': 'nor this one', 2: 3}[x]",
            inputs=("'no such text'", "2"),
            outputs=("'nor this one'", "3"),
            shown=1,
        )
        label = {"code_o": "output", "code_i": "input", "code_f": "python"}[kind]
        answers = [*texts, *(fence(label, program + text.replace("\n", " ")) for text in texts)]
        assert not any(verdict.correct for verdict in grade(KINDS[kind], verifier, task, *answers))
