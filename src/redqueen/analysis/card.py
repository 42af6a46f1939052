"""What an exported member says about itself: a model card with what its run knows of it, and nothing else."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from redqueen.analysis.quarters import compute, learning_rate
from redqueen.console import printable
from redqueen.plugins import FAMILIES
from redqueen.population.members import SOLO, SOUP, Member, Role
from redqueen.runs import CONFIG, benchmarks, exams
from redqueen.runs.checkpoints import alike, population
from redqueen.runs.store import Store
from redqueen.settings import Config, load_run
from redqueen.tasks.families import Families

_DOES = {
    Role.TEACHER: "write tasks that students sometimes solve",
    Role.STUDENT: "solve tasks that teachers write",
}


def card(run: Path, checkpoint: Path, step: int, id: str, base: str, loaded: str, scale: float = 1) -> str:
    """Markdown, with the head that model hubs read; `loaded` is what loads the base, and the member's update was
    multiplied by `scale`."""
    settings = load_run(run / CONFIG)
    member = None if id in (SOLO, SOUP) else population(checkpoint).member(id)
    # Of families that come with the package: others are not imported for a card.
    known = Families.of([name for name in settings.tasks.families if name in FAMILIES.builtins]).kinds
    kinds = "; ".join(known[name].title if name in known else name for name in settings.tasks.kinds)
    form, length, heat = settings.tasks.form, settings.tasks.attempt_tokens, settings.rl.temperature
    learners = [student.id for student in population(checkpoint).students] if id == SOUP else [id]
    same = alike(checkpoint, learners) if id == SOUP else False
    about = _soup(settings, learners, same) if id == SOUP else _does(settings, member)
    with Store.read(run) as store:
        # Records of older versions may not have it.
        rate = learning_rate(store, learners, step) or settings.rl.lr
        used = ", ".join(f"{total:,.0f} {metric.title}" for metric, total in compute(store, range(step + 1)).items())
    quantise = settings.engine.quantise
    stored = "" if quantise == "none" else f" The base's linear layers were stored in {quantise}."
    scaled = "" if scale == 1 else f" Its update is {scale:g} times what training made of it."
    head = ["---", f"base_model: {json.dumps(base)}", "library_name: peft", "tags:", "- lora", "- red-queen", "---"]
    lines = [
        f"# {id}: {_who(settings, member) if id != SOUP else 'the mean of the students of a race'}",
        f"A LoRA adapter (rank {settings.engine.rank}) of {printable(base)}, as it was after step {step} of a race "
        f"with seed {settings.run.seed}. {about}{scaled}{stored} Kinds of task: {kinds}.",
        "## Use",
        "```python\nfrom peft import PeftModel\nfrom transformers import AutoModelForCausalLM\n\n"
        f"base = AutoModelForCausalLM.from_pretrained({loaded!r})\n"
        'model = PeftModel.from_pretrained(base, "FOLDER")  # this one\n```',
        "It was asked with Red Queen's own prompts. These ask it so again, beside its base, and on benchmarks:",
        f"```\nredqueen exam FOLDER --tasks.form {form} --tasks.attempt-tokens {length} --rl.temperature {heat:g}\n"
        "redqueen eval FOLDER --suite code\n```",
        "## Training",
        f"{_rewards(settings)} ({settings.rl.estimator}, learning rate up to {rate:g}, temperature {heat:g}); no text "
        f"was imitated. All members of the race together, up to that step: {used}. These are the settings at the end: "
        "a race that was forked or resumed may have begun with others.",
        "## Evaluation",
        *_evaluation(run, step, [id, learners[0]] if same else [id], scale),
        _kept_out(settings),
        "## Limits",
        "What it writes is a model's text: run its programs in a sandbox. The licence of the base applies.",
    ]
    return "\n".join(head) + "\n" + "\n\n".join(lines) + "\n"


def _evaluation(run: Path, step: int, ids: Sequence[str], scale: float) -> list[str]:
    """What exams and benchmarks found of the member as it was after this step, under the first of these names that
    they know."""
    if scale != 1:
        return ["None of what it is as a whole: the commands above measure it."]
    rows = next((rows for id in ids if (rows := _found(run, step, id))), [])
    if not rows:
        return ["None: what `redqueen exam RUN` and `redqueen eval RUN` find before the export stands here."]
    table = ["| | this adapter | its base | less the base |", "|---|---|---|---|"]
    for name, value, base, gain in rows:
        table.append(f"| {printable(name)} | {_percent(value)} | {_percent(base)} | {_gained(gain)} |")
    return [
        "\n".join(table),
        "Both were asked in the same way. [ ] is a 95 % interval over tasks: it says nothing of other races. These are "
        "all results that the run's folder has of this adapter; none was chosen.",
    ]


def _found(run: Path, step: int, id: str) -> list[tuple[str, float, float | None, Sequence[float | None] | None]]:
    """What was asked, what came, the base's, and the gain with its interval."""
    rows: list[tuple[str, float, float | None, Sequence[float | None] | None]] = []
    results = [result for result in exams.read(run) if result.step == step]
    bases = {result.paper: result.figures for result in results if result.subject == exams.BASE}
    for result in results:
        if result.subject == id:
            for figure, value in result.figures.items():
                asked = f"exam {result.title}, {result.asked}, {result.measure(figure)}"
                rows.append((asked, value, bases.get(result.paper, {}).get(figure), result.gains.get(figure)))
    for found in benchmarks.read(run):
        if found.member == id and found.step == step:
            rows.append((replace(found, role=None).name, found.value, found.base, found.gain))
    return rows


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _gained(gain: Sequence[float | None] | None) -> str:
    value, low, high = gain or (None, None, None)
    if value is None:
        return ""
    between = "" if low is None or high is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * value:+.1f}{between}"


def _kept_out(settings: Config) -> str:
    files = settings.guard.held_out
    if not files:
        return "The race kept nothing out of its proposals (`guard.held_out`): it may have trained on what exams ask."
    return f"Programs of {', '.join(map(printable, files))} were kept out of the race (`guard.held_out`)."


def _job(settings: Config, role: Role) -> str:
    alone = role is Role.STUDENT and not settings.population.teachers
    return "solve tasks of fixed sources" if alone else _DOES[role]


def _soup(settings: Config, ids: Sequence[str], same: bool) -> str:
    those = f"{', '.join(ids[:-1])} and {ids[-1]}"
    mean = f"It is the mean of the updates of {those}, truncated to their rank."
    if same:
        mean = f"It is each of {those}, which had just been averaged and are one."
    return f"{mean} They were trained to {_job(settings, Role.STUDENT)}."


def _who(settings: Config, member: Member | None) -> str:
    if member is None:
        return "one adapter, teacher and student at once"
    counts = {Role.TEACHER: settings.population.teachers, Role.STUDENT: settings.population.students}
    others = " and ".join(f"{count} {role}{'' if count == 1 else 's'}" for role, count in counts.items() if count)
    return f"a {member.role} of a race of {others}"


def _does(settings: Config, member: Member | None) -> str:
    if member is None:
        return f"It was trained to {_DOES[Role.TEACHER]} and to {_DOES[Role.STUDENT]}, both being itself."
    stood_still = settings.rl.update == "none" or settings.rl.frozen == f"{member.role}s"
    did = "It was not trained, as a control;" if stood_still else "It was trained to"
    does = _job(settings, member.role)
    job = f"its job was to {does}." if stood_still else f"{does}."
    if not settings.population.teachers:
        return f"{did} {job} {_origin(member)}"
    rating = f"Within its race its rating is {member.rating.mu:.1f} ± {member.rating.sigma:.1f}."
    return f"{did} {job} {_origin(member)} {rating}"


def _origin(member: Member) -> str:
    birth = member.birth
    if birth.operator is None:
        return f"It was put in fresh at step {birth.step}." if birth.step else "It was there from the start."
    return f"It was made at step {birth.step} by `{birth.operator}` of {' and '.join(birth.parents)}."


def _rewards(settings: Config) -> str:
    if settings.rl.update == "none":
        return "No reinforcement learning, as a control: evolution alone"
    if settings.rl.shuffle:
        return "Reinforcement learning with rewards dealt out at random, as a control"
    return "Reinforcement learning alone, with rewards for what was checked to be right"
