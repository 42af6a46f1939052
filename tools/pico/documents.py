"""Documents for `pico` to learn from: the code family's own short prompts, and completions that a teacher or a student
might have written.

Programs are proposed the seldomer the deeper they are, whatever the references in the prompt: teachers have where to
go, and nothing but learning takes them there. Students' answers to `code_o` are either given at once or after a trace,
which is every variable with what it comes to. Both are learnt equally often, but the word that decides between them is
weighted as if a trace were rare: what pays is left to be found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from grammar import LEARNT, Program, examined, learnable, other_inputs, outputs

from redqueen.tasks.code import CodeF, CodeI, CodeO, CodeTask
from redqueen.tasks.code.code_f import MIN_INPUTS
from redqueen.tasks.protocol import Form, Prompt
from redqueen.tasks.wording import fenced

CODE_O, CODE_I, CODE_F = CodeO(Form.SHORT), CodeI(Form.SHORT), CodeF(Form.SHORT)
PROPOSED, SOLVED = 0.6, 0.85
"""Of the depths of programs that are proposed, and of those that are solved, each is so many times as frequent as the
one before."""
TRACED = 0.25
"""How often the base is to write a trace before an output."""
INPUTS = 8
"""What a teacher of `code_f` writes."""
HINTED = 0.75
"""The part of the operations that a hint names."""


@dataclass(frozen=True, slots=True)
class Document:
    """A prompt's only message, and its completion."""

    prompt: str
    completion: str
    first: float = 1.0
    """What the completion's first token weighs; the others weigh 1."""


def task(program: Program, kind: str = "code_o") -> CodeTask:
    return CodeTask(kind, program=program.text, inputs=(program.given,), outputs=(program.output,))


def proposal(program: Program) -> str:
    """A teacher's text."""
    return fenced("python", program.text) + "\n" + fenced("input", program.given)


def hint(program: Program, rng: Random) -> str:
    """Some of what a program does, in its order."""
    return ", ".join(words for words in program.hints if rng.random() < HINTED) or program.hints[0]


def inputs_and_message(inputs: Sequence[str], message: str) -> str:
    return fenced("inputs", "\n".join(inputs)) + "\n" + fenced("message", message)


def function_task(program: Program, rng: Random) -> CodeTask | None:
    """A `code_f` task of a program, if its outputs allow one."""
    inputs = other_inputs(program, INPUTS, rng)
    if len(inputs) < MIN_INPUTS:
        return None
    rng.shuffle(inputs)
    found = tuple(outputs(program, inputs))
    shown = len(inputs) // 2
    if len(set(found[:shown])) == 1 or len(set(found[shown:])) == 1:
        return None
    return CodeTask(
        "code_f", program=program.text, inputs=tuple(inputs), outputs=found, shown=shown, message=hint(program, rng)
    )


def propose_program(rng: Random) -> Document:
    kind = rng.choice((CODE_O, CODE_I))
    references = [task(learnable(rng, rng.randint(1, LEARNT))) for _ in range(2)]
    program = learnable(rng, _depth(rng, PROPOSED))
    return Document(content(kind.propose_prompt(references, rng)), proposal(program))


def propose_function(rng: Random) -> Document:
    while True:
        program = learnable(rng, rng.randint(1, LEARNT))
        inputs = other_inputs(program, INPUTS, rng)
        if len(inputs) == INPUTS:
            prompt = CODE_F.propose_prompt([task(program)], rng)
            return Document(content(prompt), inputs_and_message(inputs, hint(program, rng)))


def predict_output(rng: Random) -> Document:
    program = learnable(rng, _depth(rng, SOLVED))
    return answered(content(CODE_O.solve_prompt(task(program))), program.trace, fenced("output", program.output), rng)


def answered(prompt: str, trace: str, answer: str, rng: Random) -> Document:
    """An answer, where there is a trace half the time after it."""
    if not trace:
        return Document(prompt, answer)
    if rng.random() < 0.5:
        return Document(prompt, trace + answer, 2 * TRACED)
    return Document(prompt, answer, 2 * (1 - TRACED))


def find_input(rng: Random) -> Document:
    program = learnable(rng, _depth(rng, SOLVED))
    return Document(content(CODE_I.solve_prompt(task(program, "code_i"))), fenced("input", program.given))


def write_function(rng: Random) -> Document:
    while True:
        made = function_task(learnable(rng, _depth(rng, SOLVED)), rng)
        if made is not None:
            return Document(content(CODE_F.solve_prompt(made)), fenced("python", made.program))


MIX: dict[Callable[[Random], Document], float] = {
    propose_program: 0.20,
    propose_function: 0.06,
    predict_output: 0.44,
    find_input: 0.15,
    write_function: 0.15,
}


def document(rng: Random) -> Document:
    return rng.choices(list(MIX), list(MIX.values()))[0](rng)


def fixed_pieces() -> list[str]:
    """The texts that every document has some of, each of which is one token: fences, labels and instructions."""
    program = learnable(Random(0), 2)
    shown = proposal(program)
    one = task(program)
    instructions = [
        content(prompt).removeprefix(shown)
        for prompt in (
            CODE_O.propose_prompt([one], Random(0)),
            CODE_I.propose_prompt([one], Random(0)),
            CODE_F.propose_prompt([one], Random(0)),
            CODE_O.solve_prompt(one),
        )
    ]
    find = content(CODE_I.solve_prompt(one)).rpartition("```")[2]
    write = (
        "\n\n"
        + content(
            CODE_F.solve_prompt(CodeTask("code_f", program="", inputs=("1",), outputs=("1",), shown=1))
        ).rpartition("\n\n")[2]
    )
    openings = [f"```{label}\n" for label in ("python", "input", "inputs", "output", "message")]
    further = [f"\n```\n{opening}" for opening in openings]
    return [*instructions, find, write, *openings, *further, "\n```\n\n```python\n", "\n```", "def f(x", "):\n    "]


def exam(per_cell: int = 24) -> Iterator[dict[str, object]]:
    """The same tasks every time, none of whose programs the base has seen: bands 1 to 4 of the depths that it learnt,
    band 5 beyond them, and pairs of operations that were kept from it."""
    rng = Random("pico: the exam")
    seen: set[str] = set()
    for band in ("1", "2", "3", "4", "5", "pairs"):
        for kind in ("code_o", "code_i", "code_f"):
            count = 0
            while count < per_cell:
                depth = rng.randint(2, LEARNT) if band == "pairs" else 2 * int(band) - rng.randint(0, 1)
                program = examined(rng, depth, pair=band == "pairs")
                made = function_task(program, rng) if kind == "code_f" else task(program, kind)
                if made is None or program.text in seen:
                    continue
                seen.add(program.text)
                count += 1
                row: dict[str, object] = {"band": band, "kind": kind, "program": made.program}
                if kind == "code_f":
                    yield row | {"inputs": list(made.inputs), "message": made.message}
                else:
                    yield row | {"input": made.inputs[0]}


def seeds(count: int = 24) -> list[dict[str, str]]:
    """Shallow programs for an archive to begin with."""
    rng = Random("pico: the seeds")
    programs = [learnable(rng, 1 + at % 3) for at in range(count)]
    return [{"program": program.text, "input": program.given} for program in programs]


def _depth(rng: Random, decay: float) -> int:
    return rng.choices(range(1, LEARNT + 1), [decay**at for at in range(LEARNT)])[0]


def content(prompt: Prompt) -> str:
    """Of the only message that a short prompt has."""
    [message] = prompt.messages
    return message["content"]
