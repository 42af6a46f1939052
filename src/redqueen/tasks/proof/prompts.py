"""The words of the proof family's prompts, in the forms that those of programs have."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from redqueen.tasks.proof.guest.metamath_kernel.judging import FEWEST_STEPS, MOST_PREMISES, MOST_STEPS
from redqueen.tasks.proof.guest.metamath_kernel.library import Lemma
from redqueen.tasks.proof.task import ProofTask
from redqueen.tasks.protocol import Form, Prompt
from redqueen.tasks.wording import REFERENCES, ask, fenced, paragraphs, shown_answer

OFFERED = {Form.SHORT: 8, Form.LONG: 20, Form.DIRECT: 20}
"""How many lemmas a teacher is shown besides those of the proofs that are shown."""
NOTATION = """\
A proof has a line for each step: its number, then the name of a lemma and the numbers of the earlier lines that the \
lemma's hypotheses are, in their order. A premise is a step `given`. A lemma `name: A & B => C` has the hypotheses A \
and B and says C; in each step its variables may stand for any formulas, the same one everywhere in that step."""
DISTINCT = "Variables that are called distinct must stand for formulas that have no variable in common."
CONTRACT = f"""\
The proof
- has names and numbers alone, no formulas: what each line says is worked out when it is read, as general as it can be;
- begins with its premises, `1 given`, at most {MOST_PREMISES} of them;
- refers to lemmas {FEWEST_STEPS} to {MOST_STEPS} times, and each step is needed for the last line;
- comes to something that no single lemma says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A theorem with its proof, as an earlier turn shows it."""

    task: ProofTask
    proof_thought: str
    formula_thought: str


def _example(steps: str, premises: Sequence[str], goal: str, lemmas: Sequence[str], *thoughts: str) -> Example:
    variables = tuple(dict.fromkeys(word for text in (*premises, goal) for word in text.split() if word.isalpha()))
    task = ProofTask(
        "proof_f", steps=steps, premises=tuple(premises), goal=goal, variables=variables, lemmas=tuple(lemmas),
        sign="wi", depth=5,
    )  # fmt: skip
    return Example(task=task, proof_thought=thoughts[0], formula_thought=thoughts[1])


EXAMPLES = (
    _example(
        "1 given\n2 con3i 1\n3 orim1i 2",
        ["( ph -> ps )"],
        "( ( -. ps \\/ ch ) -> ( -. ph \\/ ch ) )",
        ["simpl: ( ( ph /\\ ps ) -> ph )", "con3i: ( ph -> ps ) => ( -. ps -> -. ph )",
         "orim1i: ( ph -> ps ) => ( ( ph \\/ ch ) -> ( ps \\/ ch ) )"],
        "The goal has the same `\\/ ch` on both sides, as orim1i gives it, with -. ps for its ph and -. ph for its ps. "
        "It needs ( -. ps -> -. ph ), which con3i makes of the premise.",
        "Line 1 is ( ph -> ps ). By con3i line 2 is ( -. ps -> -. ph ). orim1i with -. ps for its ph and -. ph for its "
        "ps puts `\\/ ch` on both sides, where ch may be anything.",
    ),
    _example(
        "1 given\n2 given\n3 syl 1 2\n4 anim1i 3\n5 ancoms 4",
        ["( ph -> ps )", "( ps -> ch )"],
        "( ( th /\\ ph ) -> ( ch /\\ th ) )",
        ["ancoms: ( ( ph /\\ ps ) -> ch ) => ( ( ps /\\ ph ) -> ch )",
         "anim1i: ( ph -> ps ) => ( ( ph /\\ ch ) -> ( ps /\\ ch ) )",
         "orcom: ( ( ph \\/ ps ) <-> ( ps \\/ ph ) )", "syl: ( ph -> ps ) & ( ps -> ch ) => ( ph -> ch )"],
        "syl makes ( ph -> ch ) of the premises, and anim1i makes ( ( ph /\\ th ) -> ( ch /\\ th ) ) of that. The goal "
        "has th before ph: ancoms turns the two around.",
        "By syl line 3 is ( ph -> ch ). By anim1i line 4 is ( ( ph /\\ th ) -> ( ch /\\ th ) ), where th may be "
        "anything. ancoms turns its left side around.",
    ),
)  # fmt: skip
"""What the long and the direct form show answers for."""


def propose_proof(form: Form, references: Sequence[ProofTask], lemmas: Sequence[Lemma], rng: Random) -> Prompt:
    distinct = list({task.steps: task for task in references}.values())
    drawn = rng.sample(distinct, min(REFERENCES[form], len(distinct)))
    offered = rng.sample(list(lemmas), min(OFFERED[form], len(lemmas)))
    listed = {lemma: None for task in drawn for lemma in task.used}
    listed |= {f"{lemma.label}: {lemma.text}": None for lemma in offered}
    lines = list(listed)
    rng.shuffle(lines)
    shown = [fenced("proof", task.steps) for task in drawn]
    context = {"shown": " ".join(task.near_key for task in drawn)}
    if form is Form.SHORT:
        return ask("\n".join(lines), "\n\n".join(shown), "Write another proof.", context=context)
    first = paragraphs(
        "Write a proof. Somebody else is told its premises and what its last line says, and has to find a proof.",
        NOTATION,
        CONTRACT,
        "Some lemmas, of which you may use any:",
        "\n".join(lines),
        "Aim for a theorem that takes several steps of thought and that a careful reader can still prove. You may "
        "think first. Then end your answer with exactly one fenced block, ```proof.",
    )
    requests = [first]
    for task in drawn:
        requests.append(
            f"This proves {task.theorem}\n\nWrite another one, with another theorem. End your answer with the fenced "
            "block, ```proof."
        )
    return ask(requests[-1], context=context, after=list(zip(requests, shown, strict=False)))


def solve_proof(form: Form, task: ProofTask) -> Prompt:
    """Its premises and goal are given; steps are wanted."""
    if form is Form.SHORT:
        return ask(_theorem(task), _lemmas(task), "Write a proof.")
    first = "Prove the goal with these lemmas and no others."
    how = "Think first. Then end your answer" if form is Form.LONG else "Answer"
    ending = (
        f"{how} with exactly one fenced block, ```proof, that begins with the premises, has a line `NUMBER LEMMA "
        "NUMBERS` for each further step and ends with the goal. Write no formulas in it."
    )
    earlier = [
        (
            paragraphs(first, NOTATION, _theorem(example.task), _lemmas(example.task), ending),
            shown_answer(form, example.proof_thought, fenced("proof", example.task.steps)),
        )
        for example in EXAMPLES
    ]
    return ask(first, _distinct(task), _theorem(task), _lemmas(task), ending, after=earlier)


def solve_formula(form: Form, task: ProofTask) -> Prompt:
    """Its steps are given; what the last line says is wanted."""
    if form is Form.SHORT:
        return ask(_lemmas(task), _proof(task), "Write the formula of the last line.")
    first = (
        "What does the last line of this proof say? Give the most general formula: variables that are not in the "
        "premises stand for anything, so give each a name that no premise has."
    )
    how = "Think first. Then end your answer" if form is Form.LONG else "Answer"
    ending = f"{how} with exactly one fenced block, ```formula, that has the formula and nothing else."
    earlier = [
        (
            paragraphs(first, NOTATION, _lemmas(example.task), _proof(example.task), ending),
            shown_answer(form, example.formula_thought, fenced("formula", example.task.goal)),
        )
        for example in EXAMPLES
    ]
    return ask(first, _distinct(task), _lemmas(task), _proof(task), ending, after=earlier)


def _theorem(task: ProofTask) -> str:
    premises = "\n".join(f"{at} given: {premise}" for at, premise in enumerate(task.premises, 1))
    apart = f"Distinct: {', '.join(task.distinct)}" if task.distinct else ""
    return "\n".join(filter(None, (premises, apart, f"Goal: {task.goal}")))


def _lemmas(task: ProofTask) -> str:
    return "\n".join(["Lemmas:", *task.lemmas])


def _proof(task: ProofTask) -> str:
    """The steps, each premise with its formula."""
    lines = task.steps.split("\n")
    lines[: len(task.premises)] = [f"{at} given: {premise}" for at, premise in enumerate(task.premises, 1)]
    return fenced("steps", "\n".join(lines))


def _distinct(task: ProofTask) -> str:
    return DISTINCT if task.distinct or any("(distinct: " in lemma for lemma in task.lemmas) else ""
