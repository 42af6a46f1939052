"""Tasks that need no reasoning are refused, and answers that give back what is shown are counted."""

import asyncio
import gzip
import json
import os
from pathlib import Path

import pytest

from redqueen.tasks.archive import Archive, Entry
from redqueen.tasks.code import FAMILY, CodeTask
from redqueen.tasks.guards import ENOUGH_ALIKE, ENOUGH_TASKS, WINDOW, Guards
from redqueen.tasks.protocol import Family, Task
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import Verifier
from redqueen.verifier.guest import literals
from tasks.proposing import CODE, Recorder, fence, grade

KINDS = FAMILY.kinds()
CRUXEVAL = Path(os.environ.get("REDQUEEN_BENCH", "")) / "cruxeval" / "test.jsonl.gz"


def way(verifier: Verifier, *tasks: Task) -> list[str | None]:
    return asyncio.run(CODE.shortcuts(tasks, verifier))


def asked(kind: str, body: str, given: str, output: str, parameters: str = "x") -> CodeTask:
    return CodeTask(kind, program=f"def f({parameters}):\n    {body}", inputs=(given,), outputs=(output,))


@pytest.mark.parametrize(
    ("body", "given", "output", "parameters", "name"),
    [
        ("return x.strip()", "' ab '", "'ab'", "x", "copy"),
        ("return sorted(x)", "[2, 1, 3]", "[1, 2, 3]", "x", "copy"),
        ("return ''.join(x)", "['a', 'b', 'c']", "'abc'", "x", "copy"),
        ("return x[0] * len(x)", "[5]", "5", "x", "wrapped"),
        ("return max(x)", "[5, 7, 3]", "7", "x", "wrapped"),
        ("return [x * x]", "0", "[0]", "x", "unwrapped"),
        ("return [str(x)]", "'ab'", "['ab']", "x", "unwrapped"),
        ("return (a, b)", "3, 'x'", "(3, 'x')", "a, b", "unwrapped"),
        ("return x % 2 == 0", "38", "True", "x", "constant"),
        ("return len(x) * [5]", "{}", "[]", "x", "copy"),
        ("return str(x) * 2", "[0]", "'[0][0]'", "x", "constant"),
        ("return a + b", "3, 4", "7", "a, b", "copy"),
        ("return a.replace(b, '')", "'banana', 'n'", "'baaa'", "a, b", "copy"),
        ("return b[a:]", "1, b='xyz'", "'yz'", "a, *, b", "copy"),
        ("return a * b * c", "3, 4, 5", "60", "a, b, c", "copy"),
        ("return a * b * c + 1", "3, 4, 5", "61", "a, b, c", None),
        ("return sum(int(c) for c in str(x * x + 7))", "12", "10", "x", None),
        ("return [x, x + 1]", "41", "[41, 42]", "x", None),
        ("return a + b", "3, 4", "7", "a, b=4", None),
    ],
)
def test_an_input_that_nobody_needs_the_program_for_is_found(verifier, body, given, output, parameters, name):
    assert way(verifier, asked("code_i", body, given, output, parameters)) == [name]


@pytest.mark.parametrize(
    ("given", "output", "name"),
    [
        ("[1, 2], 7", "7", "argument"),
        ("n=7", "7", "argument"),
        ("[5, 2, 9]", "5", "first"),
        ("'abc'", "'c'", "last"),
        ("3, (4, 5.5)", "5.5", "last"),
        ("12", "True", "constant"),
        ("'abc'", "''", "constant"),
        ("'abc'", "0", "constant"),
        ("[5, 2, 9]", "2", None),
        ("7", "7.0", None),
        ("''", "'a'", None),
        ("{5: 2}", "5", None),
        ("1", "2", None),
    ],
)
def test_an_output_that_stands_in_the_input_or_goes_without_saying_is_found_without_a_run(
    recorder, given, output, name
):
    assert way(recorder, asked("code_o", "return x", given, output)) == [name]
    assert recorder.jobs == []


def pairs(inputs: str, outputs: str, shown: int = 2) -> CodeTask:
    program = "def f(x, y=0):\n    return x"
    return CodeTask(
        "code_f", program=program, inputs=tuple(inputs.split("; ")), outputs=tuple(outputs.split("; ")), shown=shown
    )


def test_a_function_that_returns_an_argument_or_the_end_of_one_is_found_without_a_run(recorder):
    tasks = [
        pairs("1; 2; 3; 4", "1; 2; 3; 4"),
        pairs("1, 5; 2, 6; 3, 7; 4, 8", "5; 6; 7; 8"),
        pairs("'ab'; [1, 2]; 'cd'; (3,)", "'a'; 1; 'c'; 3"),
        pairs("'ab'; [1, 2]; 'cd'; (3,)", "'b'; 2; 'd'; 3"),
        pairs("-1; -2; 3; 4", "1; 2; 3; 4"),  # abs: what is shown in a table, all others as they are
        pairs("1; 2; 3; -4", "1; 2; 3; 4"),
        pairs("1; 2; 3; 4", "2; 3; 4; 5"),
        pairs("'a'; 'b'; ''; 'c'", "'a'; 'b'; ''; 'cc'"),
    ]
    assert way(recorder, *tasks) == ["argument", "argument", "first", "last", "argument", None, None, None]
    assert recorder.jobs == []


def test_all_inputs_of_a_task_are_tried_in_one_run(recorder: Recorder):
    tasks = [asked("code_i", "return x + 1", "4", "5"), asked("code_i", "return x", "7", "7")]
    assert way(recorder, *tasks) == [None, "copy"]
    assert [job.seeds for job in recorder.jobs] == [1, 1]
    assert all(8 < len(job.texts) <= 20 for job in recorder.jobs)


def test_an_input_on_which_the_program_does_not_end_hides_no_other(recorder: Recorder):
    """A process that dies says nothing of its other calls: each is then made in one of its own."""
    body = "while x == 0:\n        pass\n    return x"
    assert way(recorder, asked("code_i", body, "7", "7")) == ["copy"]
    together, *alone = recorder.jobs
    assert [job.texts for job in alone] == [(text,) for text in together.texts]
    body = "while x == 7:\n        pass\n    return (x or 0) + 7"
    assert way(recorder, asked("code_i", body, "3 - 3", "7")) == ["constant"], "the copy does not end"
    endless = "while x == 7:\n        pass\n    return x + 3"
    assert way(recorder, asked("code_i", endless, "4", "7")) == [None], "4 is nothing that one would guess"


class Silent(Family):
    seeds = ()

    def kinds(self, form=None):
        return {}


def test_a_family_that_names_no_shortcuts_has_none(verifier):
    tasks = [Task("riddle"), Task("riddle")]
    assert asyncio.run(Silent().shortcuts(tasks, verifier)) == [None, None]


# Refusals


def test_a_task_with_a_shortcut_is_refused_with_the_name_of_the_way_unless_they_are_allowed(verifier):
    copied = asked("code_i", "return sorted(x)", "[2, 1]", "[1, 2]")
    fair = asked("code_i", "return [n * n + 1 for n in x]", "[2, 3]", "[5, 10]")
    cut = Rejection(Reason.CUT)

    def refused(guards: Guards) -> list[Task | Rejection]:
        return asyncio.run(guards.refuse_shortcuts([cut, copied, fair], CODE, verifier))

    assert refused(Guards()) == [cut, copied.rejected(Reason.SHORTCUT, "copy"), fair]
    assert refused(Guards(shortcuts="allow")) == [cut, copied, fair]


def answer(output: str, number: int, kind: str = "code_o", step: int = 1) -> Entry:
    task = CodeTask(kind, program=f"def f(n):\n    return n + {number}", inputs=("1",), outputs=(output,))
    return Entry(task=task, step=step, teacher="t0", solved=1, attempts=2)


def often(output: str, times: int, of: int, **about) -> Archive:
    entries = [answer(output if number < times else str(1000 + number), number, **about) for number in range(of)]
    return Archive().add(entries)


def screened(archive: Archive, *entries: Entry, guards: Guards | None = None) -> list[str]:
    tasks = [entry.task for entry in entries]
    results = asyncio.run((guards or Guards()).screen(tasks, archive, None))  # type: ignore[arg-type]
    return [result.why if isinstance(result, Rejection) else "task" for result in results]


def test_an_answer_that_many_recent_tasks_have_is_guessable():
    archive = often("7", 11, of=100)
    guessable = "guessable (the answer of 11 of 100 recent tasks)"
    assert screened(archive, answer("7", 500), answer("8", 501)) == [guessable, "task"]
    assert screened(archive, answer("7", 500), guards=Guards(shortcuts="allow")) == ["task"]
    assert screened(archive, answer("7", 500, "code_i")) == ["task"], "any right input counts"
    assert screened(often("7", 10, of=100), answer("7", 500)) == ["task"], "a tenth is not more than a tenth"


def test_where_there_are_few_answers_each_may_have_its_equal_share():
    """Refusing all would leave a race without tasks."""
    even = Archive().add([answer(str(number % 5), number) for number in range(100)])
    assert screened(even, *(answer(str(number), 500 + number) for number in range(5))) == ["task"] * 5
    uneven = even.add([answer("3", 300)])
    guessable = "guessable (the answer of 21 of 101 recent tasks)"
    assert screened(uneven, answer("3", 500), answer("4", 501)) == [guessable, "task"]
    assert screened(often("7", 60, of=60), answer("7", 500), answer("8", 501)) != ["task", "task"]


def test_few_tasks_say_nothing_of_what_is_guessable():
    assert screened(often("7", 20, of=ENOUGH_TASKS - 1), answer("7", 500)) == ["task"]
    assert screened(often("7", ENOUGH_ALIKE - 1, of=ENOUGH_TASKS), answer("7", 500)) == ["task"]
    assert screened(often("7", ENOUGH_ALIKE, of=ENOUGH_TASKS), answer("7", 500)) != ["task"]
    assert screened(often("7", 20, of=100, kind="code_i"), answer("7", 500)) == ["task"]


def test_answers_of_long_ago_are_not_counted_and_those_of_the_step_are():
    aged = often("7", 50, of=100).add([answer("9", 900, step=1 + WINDOW)])
    assert screened(aged, answer("7", 500)) == ["task"]
    news = [answer("7", 500 + number) for number in range(4)]
    guessable = "guessable (the answer of 6 of 58 recent tasks)"
    assert screened(often("7", 4, of=56), *news) == ["task", "task", guessable, guessable]


# Answers that are counted


def copied(verifier: Verifier, task: CodeTask, *answers: str) -> list[bool]:
    label = "input" if task.kind == "code_i" else "output"
    texts = [fence(label, answer) for answer in answers]
    return [verdict.shortcut for verdict in grade(KINDS[task.kind], verifier, task, *texts)]


def test_an_input_that_is_the_output_as_it_stands_wrapped_or_unwrapped_is_counted_right_or_wrong(verifier):
    task = asked("code_i", "return [len(x)]", "'abc'", "[3]")
    answers = ["[3]", "[ 3 ]", "[[3]]", "([3],)", "3", "'abc'", "0", "[4]", "(["]
    assert copied(verifier, task, *answers) == [True] * 5 + [False] * 4
    both = asked("code_i", "return a + b", "3, 4", "7", "a, b")
    assert copied(verifier, both, "7, 0", "'', 7", "7, 7", "3, 4", "5, 2") == [True, True, True, False, False]


def test_an_output_that_is_an_argument_as_it_stands_is_counted_right_or_wrong(verifier):
    task = asked("code_o", "return x", "[1, 2], n=5", "[2, 1]", "x, n")
    assert copied(verifier, task, "[1,2]", "5", "[2, 1]", "1", "nonsense") == [True, True, False, False, False]


def test_a_program_is_no_copy(verifier):
    task = pairs("1; 2; 3; 4", "1; 2; 3; 4")
    [verdict] = grade(KINDS["code_f"], verifier, task, fence("python", task.program))
    assert (verdict.correct, verdict.shortcut) == (True, False)


# Published tasks


@pytest.mark.skipif(not CRUXEVAL.is_file(), reason="REDQUEEN_BENCH has no cruxeval/test.jsonl.gz")
def test_the_inputs_of_cruxeval_that_are_their_output_are_found(verifier):
    """180 by an independent count, all of one parameter: those the output alone is the whole input of."""
    tasks: list[CodeTask] = []
    for line in gzip.decompress(CRUXEVAL.read_bytes()).splitlines():
        row = json.loads(line)
        try:
            given = literals.encode_arguments(*literals.read_arguments(row["input"]), 4_000)
            output = literals.encode(literals.read_literal(row["output"]), 4_000)
        except (ValueError, SyntaxError, literals.Opaque):
            continue  # no plain values
        tasks.append(CodeTask("code_i", program=row["code"], inputs=(given,), outputs=(output,)))
    single = [task for task in tasks if len(literals.parse_arguments(task.inputs[0])[0]) == 1]
    assert way(verifier, *single).count("copy") == 180
