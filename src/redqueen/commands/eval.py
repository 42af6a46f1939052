"""`redqueen eval`: how good members are on benchmarks."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from redqueen.commands.agreement import agreed_engine, named_base
from redqueen.commands.command import COMPUTED, Configured, positive
from redqueen.console import print_json, printable, show
from redqueen.errors import InputError
from redqueen.runs.benchmarks import TEMPERATURE


@dataclass(frozen=True, kw_only=True)
class Eval(Configured):
    """Benchmarks that everybody knows: runs, members, PEFT folders and bases, sampled together, beside the bare base.

    Every answer is written down as soon as it is graded; the same command goes on where it stopped.
    """

    uses = ("verifier", *COMPUTED)
    what: Annotated[tuple[str, ...], tyro.conf.arg(metavar="RUN|RUN:STEP|RUN/ID|FOLDER|BASE...", help_behavior_hint="")]
    """Runs (their newest checkpoints, or those of a step), single members, PEFT folders, or a base; all of one base."""
    suite: Annotated[str | None, tyro.conf.arg(metavar="code|math|all|NAME,NAME")] = None
    """Which benchmarks: humaneval_plus, mbpp_plus, livecodebench (code); aime24, aime25, amc23, math500, minerva_math,
    gsm8k, olympiadbench (math); mmlu."""
    prompts: Literal["chat", "raw"] = "chat"
    """How a model is asked: through its chat template, or with a text to go on with."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where the benchmarks are, as NAME/test.jsonl.gz; the hub's, kept in the cache, when left out."""
    attempts: int = 0
    """Sampled ones at each task, beside a greedy one, for avg@k and pass@k."""
    k: int | None = None
    """Of pass@k; the number of attempts when left out."""
    temperature: float = TEMPERATURE
    """Of the sampled attempts."""
    max_tokens: int | None = None
    """The longest answer; each benchmark's own when left out."""
    items: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Of each benchmark only so many tasks, always the same ones; the scores are then of a slice."""
    role: Literal["all", "students", "teachers"] = "all"
    """Whom of a run."""
    against: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Gains are on the same role of this run, one of those named; on the bare base when left out."""
    to: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where answers and results.json go; evals/NAME-PROMPTS when left out, after what is evaluated first."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        if self.suite is None:
            raise InputError("eval needs to know which benchmarks", "add --suite code, math, all, or names")
        if self.attempts < 0:
            raise InputError(f"--attempts cannot be {self.attempts}", "use 0 or more")
        k = self.attempts if self.k is None else positive("--k", self.k)
        if k > self.attempts:
            raise InputError(f"pass@{k} cannot be told from {self.attempts} attempts", f"use --attempts {k} or more")
        positive("--temperature", self.temperature)
        for option, value in (("--max-tokens", self.max_tokens), ("--items", self.items)):
            if value is not None:
                positive(option, value)
        from redqueen.evals.benchmarks import chosen
        from redqueen.evals.data import find
        from redqueen.evals.maths import can_grade

        # Before anything heavy is loaded: a benchmark that is missing, or a wrong name, costs nothing.
        wanted = chosen(self.suite)
        can_grade(wanted)
        loaded = [find(each, self.data) for each in wanted]
        if self.items is not None:
            loaded = [each.first(self.items) for each in loaded]
        from redqueen.evals.evaluation import evaluate
        from redqueen.evals.protocol import Prompts
        from redqueen.evals.subjects import find_subjects

        folder = self.to or Path("evals") / f"{_slug(self.what[0])}-{self.prompts}"
        subjects = find_subjects(self.what, self.role, named_base(self.settings))
        report = evaluate(
            subjects,
            loaded,
            folder,
            prompts=Prompts(self.prompts),
            attempts=self.attempts,
            k=k,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            against=self.against,
            engine_settings=agreed_engine(self.settings, subjects.runs),
            verifier_settings=self.settings.verifier,
        )
        if self.json:
            print_json(report.as_json())
            return
        show(report, as_json=False)
        print(printable(f"every answer and all figures are in {folder}"))


def _slug(what: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", what.strip("/")).strip("-.") or "eval"
