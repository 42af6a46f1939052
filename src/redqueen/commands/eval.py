"""`redqueen eval`: how good members are on benchmarks."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from redqueen.commands.agreement import agreed_engine, named_base
from redqueen.commands.command import (
    CLUSTER_OPTIONS,
    ENGINE_OPTIONS,
    Configured,
    Reporting,
    Whats,
    optional_positive,
    pass_at,
    positive,
)
from redqueen.console import Report, printable
from redqueen.errors import InputError
from redqueen.runs.benchmarks import TEMPERATURE


@dataclass(frozen=True, kw_only=True)
class EvalCommand(Reporting, Configured):
    """Evaluate runs, members, PEFT folders and bases on public benchmarks, beside the bare base.

    Every answer is written to disk as soon as it is graded. The same command resumes where it stopped.
    """

    uses = ("verifier", *ENGINE_OPTIONS, *CLUSTER_OPTIONS)
    what: Whats
    """Runs (their newest checkpoint, or that of a step), single members of these, PEFT folders or a base; all of one
    base. A member is an id, `student` or `teacher` for the best one as in `export`, or `soup` for the mean of all
    students: runs/a/s0.2, runs/a:20/soup."""
    suite: Annotated[str | None, tyro.conf.arg(metavar="code|math|all|BENCHMARK,BENCHMARK")] = None
    """Which benchmarks: humaneval_plus, mbpp_plus, livecodebench (code); mmlu;
    aime24, aime25, amc23, math500, minerva_math, gsm8k, olympiadbench (math);
    cruxeval_o, cruxeval_i, and with a chain of thought cruxeval_o_cot, cruxeval_i_cot;
    the same asked as races ask by tasks.form: cruxeval_o_long, cruxeval_o_direct, cruxeval_i_long,
    cruxeval_i_direct."""
    prompts: Literal["chat", "raw"] = "chat"
    """How models are prompted: through the chat template, or with a text to continue."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """A folder with the benchmarks as NAME/test.jsonl.gz; by default downloaded once from the model hub."""
    attempts: int = 0
    """Sampled attempts at each task, beside a greedy one, for avg@k and pass@k."""
    k: int | None = None
    """The k of pass@k; by default the number of attempts."""
    temperature: float = TEMPERATURE
    """The temperature of the sampled attempts."""
    max_tokens: int | None = None
    """The longest answer in tokens; by default each benchmark's own limit."""
    items: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Only this many tasks of each benchmark, always the same ones. The scores are then of a slice."""
    role: Literal["all", "students", "teachers"] = "all"
    """Which members of a run."""
    every: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Of each run all checkpoints that it has of every N-th step, and not its newest alone: how members got there."""
    against: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Report gains over the same role of this run, one of those named, with --every as RUN:STEP; over the bare base
    when left out."""
    to: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where answers and results.json are kept; by default evals/NAME-PROMPTS, named after the first argument."""

    @property
    def folder(self) -> Path:
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", self.what[0].strip("/")).strip("-.") or "eval"
        return self.to or Path("evals") / f"{slug}-{self.prompts}"

    def report(self) -> Report:
        if self.suite is None:
            raise InputError("eval needs to know which benchmarks", "add --suite code, math, all, or names")
        if self.attempts < 0:
            raise InputError(f"--attempts cannot be {self.attempts}", "use 0 or more")
        k = pass_at(self.attempts, self.k)
        positive("--temperature", self.temperature)
        optional_positive("--max-tokens", self.max_tokens)
        optional_positive("--items", self.items)
        every = optional_positive("--every", self.every)
        from redqueen.evals.benchmarks import chosen
        from redqueen.evals.data import find
        from redqueen.evals.maths import check_gradable
        from redqueen.evals.protocol import Prompts

        # Before anything heavy is loaded: a benchmark that is missing, or a wrong name, costs nothing.
        benchmarks = chosen((name.strip() for name in self.suite.split(",")), Prompts(self.prompts))
        check_gradable(benchmarks)
        loaded = [find(benchmark, self.data) for benchmark in benchmarks]
        if self.items is not None:
            loaded = [benchmark.first(self.items) for benchmark in loaded]
        from redqueen.evals.evaluation import evaluate
        from redqueen.evals.subjects import find_subjects
        from redqueen.evolution.consensus import weights_of

        subjects = find_subjects(self.what, self.role, named_base(self.settings), weights_of, every)
        return evaluate(
            subjects,
            loaded,
            self.folder,
            prompts=Prompts(self.prompts),
            attempts=self.attempts,
            k=k,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            against=self.against,
            settings=agreed_engine(self.settings, subjects.runs),
        )

    def run(self) -> None:
        super().run()
        if not self.json:
            print(printable(f"all answers and figures are in {self.folder}"))
