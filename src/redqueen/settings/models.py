"""The settings: frozen models that refuse what they do not know and what does not go together.

A field's docstring is its help text on the command line.
"""

import re
from random import Random
from typing import Annotated, Any, Literal

import tyro
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from redqueen.errors import ConfigError
from redqueen.population.matchmaking import count_matches
from redqueen.settings.toml import shown

MIN_ROWS = 8
"""Texts with an advantage that a member's step takes: with fewer it would follow a handful of samples, and Adam makes
it as long as any other."""


class Section(BaseModel):
    """What every part of the settings has in common."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class VerifierConfig(Section):
    """How untrusted programs are run."""

    tier: Literal["best", "full", "seccomp"] = "best"
    """The isolation: the strongest that this machine offers, or exactly this one."""
    minimum: Literal["full", "seccomp"] = "seccomp"
    """Refuse to run programs under anything weaker than this."""
    run_unprotected: bool = False
    """Run model-written programs with no isolation where the machine offers none: they can then read, change
    and send whatever you can."""
    workers: int | None = Field(default=None, ge=1, le=1024)
    """Programs that run at the same time; one per core when left out."""

    @model_validator(mode="after")
    def _agree(self) -> "VerifierConfig":
        if self.tier == "seccomp" and self.minimum == "full":
            raise ConfigError(
                'verifier.tier = "seccomp" is weaker than verifier.minimum = "full"',
                'set verifier.tier to "best", or verifier.minimum to "seccomp"',
            )
        if self.run_unprotected and (self.tier != "best" or self.minimum == "full"):
            demand = f'verifier.tier = "{self.tier}"' if self.tier != "best" else 'verifier.minimum = "full"'
            raise ConfigError(
                f"verifier.run_unprotected allows no isolation at all, and {demand} demands some",
                "leave one of the two out",
            )
        return self


def _as_tuple(value: Any) -> Any:
    # Settings are frozen, lists in TOML are not.
    return tuple(value) if isinstance(value, list) else value


def _as_numbers(value: Any) -> Any:
    # On the command line they come as text.
    if isinstance(value, list):
        return tuple(float(each) if _is_number(each) else each for each in value)
    return value


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


class EngineConfig(Section):
    """The base, and the shape of its members' adapters."""

    base: str = Field(default="smollm2-135m", min_length=1)
    """The frozen language model: a name that `redqueen base list` knows, a folder, a .gguf file or a hub id."""
    rank: int = Field(default=16, ge=1, le=4096)
    """The rank of every member's adapter."""
    alpha: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """An adapter counts alpha / rank times; twice the rank when left out."""
    target_modules: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...] | None,
        Field(min_length=1, examples=[["q_proj", "v_proj"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="NAME,NAME"),
    ] = None
    """The linear layers that are adapted, by the end of their names; all of the base's blocks when left out."""
    rows: int | None = Field(default=None, ge=1, le=65536)
    """Completions that grow at the same time; as many as suit the device when left out."""
    device: Literal["best", "cuda", "cpu"] = "best"
    """Where models run: CUDA if there is any, or exactly this one."""
    dtype: Literal["best", "bfloat16", "float32"] = "best"
    """What the base computes in: bfloat16 on CUDA and float32 on the CPU, or exactly this one."""


class RunConfig(Section):
    """How long a run is, and what of it is kept."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    """Where all of its random numbers come from."""
    steps: int = Field(default=200, ge=1, le=10_000_000)
    """How many; a finished run goes on when this is raised."""
    checkpoint_every: int = Field(default=10, ge=1, le=1_000_000)
    """Steps from one checkpoint to the next: what a killed run does again at most."""
    keep_last: int = Field(default=2, ge=1, le=1_000_000)
    """Checkpoints that are kept, the newest ones."""
    keep_every: int = Field(default=0, ge=0, le=1_000_000)
    """Also keep those of every so many steps, to fork from or to look at; 0 keeps none of them."""
    measure_every: int = Field(default=10, ge=1, le=1_000_000)
    """Steps from one look at the costlier measures to the next: how far apart members and tasks are."""


class PopulationConfig(Section):
    """Who races."""

    teachers: int = Field(default=4, ge=1, le=1024)
    """Members that propose tasks."""
    students: int = Field(default=4, ge=1, le=1024)
    """Members that solve them."""
    single: bool = False
    """One adapter in both roles, unrated, as in Absolute Zero; with one teacher and one student."""


KINDS = ("code_o", "code_i", "code_f")


class TasksConfig(Section):
    """What teachers are asked for, and how much of it."""

    kinds: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(min_length=1, examples=[["code_o", "code_i"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="KIND,KIND"),
    ] = KINDS
    """Predict the output, find an input, write the function."""
    mix: Annotated[
        tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...],
        Field(examples=[[2, 1, 1]]),
        BeforeValidator(_as_numbers),
        tyro.conf.arg(metavar="2,1,1"),
    ] = ()
    """How often each kind is asked for, one number for each; equally often when left out."""
    form: Literal["long", "direct", "short"] = "long"
    """What prompts say: "long" has students think first, "direct" answer at once, for bases of less than about a
    billion parameters; "short" is for small ones that were trained on it."""
    prompts: int = Field(default=6, ge=1, le=65536)
    """What a teacher is asked in a match, over all kinds."""
    proposals: int = Field(default=4, ge=1, le=1024)
    """Proposals for each of these: they are compared with each other."""
    attempts: int = Field(default=8, ge=1, le=1024)
    """Of a student on each task."""
    proposal_tokens: int = Field(default=512, ge=1, le=1_000_000)
    """The longest proposal."""
    attempt_tokens: int = Field(default=512, ge=1, le=1_000_000)
    """The longest attempt; a longer one is cut and malformed."""
    seeds: str | None = Field(default=None, min_length=1)
    """What teachers begin from: a .jsonl file of programs with inputs, or the name of a base that comes with the
    package for its own; the family's when left out."""


class GuardConfig(Section):
    """What is refused, what does not count, and who does not learn."""

    held_out: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(examples=[["humaneval.jsonl"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="FILE,FILE"),
    ] = ()
    """Files of programs (.py, .jsonl) that no task may have, up to names and layout: what you evaluate on. `functions`
    and the name of a base that comes with the package stand for their exams."""
    deny: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(examples=[["while +True"]], json_schema_extra={"whole": True}),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="REGEX"),
    ] = ()
    """Regular expressions that no program may match; on the command line one, several in a file."""
    max_lines: int | None = Field(default=None, ge=1)
    """Longer programs are refused; any length within the family's limit when left out."""
    max_depth: int | None = Field(default=None, ge=1)
    """Programs with a deeper syntax tree are refused."""
    duplicates: Literal["near", "same", "allow"] = "near"
    """"same" refuses programs that an earlier task has, up to names and layout; "near" also does not count as hard what
    differs from a teacher's recent tasks in constants alone; "allow" does neither."""
    entropy_floor: float = Field(default=0.005, ge=0, allow_inf_nan=False)
    """Nats a token: a member that falls below is not updated, and reported; 0 turns it off."""
    valid_floor: float = Field(default=0.02, ge=0, lt=1, allow_inf_nan=False)
    """The share of a member's texts that are sound: one that falls below, having been above, is not updated; 0 turns it
    off."""


class OversightConfig(Section):
    """What a person should look at."""

    every: int = Field(default=0, ge=0, le=1_000_000)
    """Set aside about one in so many tasks (`redqueen tasks RUN --oversight`); 0 sets none aside."""


class TrackConfig(Section):
    """Where else figures go."""

    to: Annotated[
        tuple[Literal["trackio", "wandb", "tensorboard"], ...],
        Field(examples=[["tensorboard"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="NAME,NAME"),
    ] = ()
    """"trackio", "wandb", "tensorboard"; all stay on this machine unless their own settings say otherwise."""
    project: str = Field(default="redqueen", min_length=1)
    """What the run is filed under there."""


class EvalsConfig(Section):
    """Benchmarks that are looked at during the race; they change nothing of it, and nobody is selected by them."""

    every: int = Field(default=0, ge=0, le=1_000_000)
    """Steps from one look to the next; 0 looks at none."""
    suite: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(min_length=1, examples=[["humaneval_plus", "gsm8k"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="NAME,NAME"),
    ] = ("humaneval_plus", "gsm8k")
    """Which, as in `redqueen eval --suite`."""
    items: int = Field(default=32, ge=1, le=1_000_000)
    """Tasks of each, always the same ones."""
    prompts: Literal["chat", "raw"] = "chat"
    """How a model is asked: through its chat template, or with a text to go on with."""
    max_tokens: int = Field(default=512, ge=1, le=1_000_000)
    """The longest answer."""
    data: str | None = Field(default=None, min_length=1)
    """The folder that they are in, as NAME/test.jsonl.gz; the hub's when left out."""


class MatchConfig(Section):
    """Who meets whom, and who wins."""

    maker: Literal["pfsp", "uniform", "round_robin", "all"] = "pfsp"
    """How a teacher gets its student: preferably one of its own strength, any, each in turn, or all at once."""
    panel: int | None = Field(default=None, ge=1, le=1024)
    """Students who attempt a teacher's tasks; one when left out, and all of them with the maker "all"."""
    exclude: Annotated[
        tuple[str, ...],
        Field(examples=[["t0:s0", "t1:s1"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="t0:s0,t1:s1"),
    ] = ()
    """Seats that never meet, by the founders' names; whoever takes such a seat later inherits this."""
    rule: Literal["ours", "paper"] = "ours"
    """What counts in a match: "ours" leaves out tasks that nobody solved and calls a draw what chance explains,
    "paper" compares the plain solve rate with the expected one."""

    @model_validator(mode="after")
    def _agree(self) -> "MatchConfig":
        for entry in self.exclude:
            if not re.fullmatch("t[0-9]+:s[0-9]+", entry, re.ASCII):
                raise ConfigError(
                    f"match.exclude cannot hold {shown(entry, quote=True)}",
                    "name a teacher's seat and a student's, such as \"t0:s0\"",
                )
        return self

    @property
    def kept_apart(self) -> frozenset[tuple[str, str]]:
        """The excluded pairs, as a teacher's seat and a student's."""
        return frozenset((teacher, student) for teacher, _, student in (each.partition(":") for each in self.exclude))


class EvolutionConfig(Section):
    """Who is replaced, and by whom."""

    every: int = Field(default=10, ge=0, le=1_000_000)
    """Steps from one replacement to the next; 0 turns evolution off."""
    share: float = Field(default=0.25, gt=0, lt=1, allow_inf_nan=False)
    """The part of each role that is replaced, rounded down, but one at least."""
    elites: int = Field(default=1, ge=0, le=1024)
    """Members of each role, its best, that are never replaced."""
    fitness: Literal["rating", "reward", "rate"] = "rating"
    """What makes a member good: its rating, its mean reward since the last replacement, or its solve rate (a
    teacher's: the rate at which it stumps) over the opponents it met."""
    selection: Literal["truncation", "tournament", "sharing"] = "truncation"
    """How parents are chosen: any of the best, the best of three, or the best with crowds of similar ones marked
    down."""
    rule: Literal["ours", "paper"] = "ours"
    """Who dies: "ours" the lowest rating's mean once it is old enough, its child starting at its role's mean;
    "paper" the lowest bound, newborns included, its child starting from the prior."""
    operators: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(min_length=1, examples=[["dare", "my.py:NAME"]]),
        BeforeValidator(_as_tuple),
        tyro.conf.arg(metavar="NAME,FILE.py:NAME"),
    ] = (
        "spectral",
        "slot_noise",
        "component_mask",
        "full_noise",
        "dare",
        "layer_wise",
        "svd_subspace",
        "extrapolation",
    )
    """What makes a child of its parents, each as likely as the next: names, or FILE.py:NAME for one of your own, which
    is code that you trust: it runs with all your rights."""
    inject: bool = False
    """Put a fresh member in the place of one that dies when its role has become too much alike."""


class RlConfig(Section):
    """How members learn."""

    update: Literal["reinforce", "none"] = "reinforce"
    """What changes weights from step to step: the rewards, or nothing, which leaves them to evolution alone."""
    estimator: Literal["reinforce++", "trr++", "grpo", "rloo", "dr_grpo"] = "reinforce++"
    """How rewards become advantages."""
    reward: Literal["paper", "azr", "learnability"] = "paper"
    """What a task that is solved at a rate r pays its teacher: "paper" 1 - r, and nothing if nobody solves it; "azr"
    the same; "learnability" 4 r (1 - r)."""
    lr: float = Field(default=1e-4, gt=0, allow_inf_nan=False)
    """AdamW's learning rate."""
    warmup: int = Field(default=5, ge=0, le=1_000_000)
    """Steps in which it rises to that."""
    kl: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """How much a member is held to the bare base; 0 leaves it free."""
    temperature: float = Field(default=1.0, ge=0.01, le=100, allow_inf_nan=False)
    """Of all sampling."""
    frozen: Literal["nobody", "teachers", "students"] = "nobody"
    """Who stays as it began, neither trained nor replaced: a control."""
    shuffle: bool = False
    """Deal out each member's rewards among its texts at random: a control in which nothing can be learnt."""


class Config(Section):
    """All settings of a run."""

    run: RunConfig = RunConfig()
    verifier: VerifierConfig = VerifierConfig()
    engine: EngineConfig = EngineConfig()
    population: PopulationConfig = PopulationConfig()
    tasks: TasksConfig = TasksConfig()
    match: MatchConfig = MatchConfig()
    evolution: EvolutionConfig = EvolutionConfig()
    rl: RlConfig = RlConfig()
    guard: GuardConfig = GuardConfig()
    oversight: OversightConfig = OversightConfig()
    evals: EvalsConfig = EvalsConfig()
    track: TrackConfig = TrackConfig()

    @model_validator(mode="after")
    def _agree(self) -> "Config":
        self._kinds_are_known()
        self._single_is_alone()
        self._something_is_learnt()
        self._matches_can_be_made()
        for role, count in (("teachers", self.population.teachers), ("students", self.population.students)):
            if self.evolution.every and count > 1 and self.evolution.elites >= count:
                raise ConfigError(
                    f"evolution.elites = {self.evolution.elites} spares all of population.{role} = {count}",
                    "use fewer elites, or turn evolution off with evolution.every = 0",
                )
        if self.rl.update == "none":
            if self.evolution.every == 0:
                raise ConfigError(
                    'with rl.update = "none" and evolution.every = 0 nothing would ever change',
                    "let one of the two work",
                )
            if self.population.teachers == self.population.students == 1:
                raise ConfigError(
                    'rl.update = "none" leaves everything to evolution, which replaces nobody in a role of one',
                    "set population.teachers or population.students to 2 or more",
                )
            if set(self.evolution.operators) == {"copy_parent"}:
                raise ConfigError(
                    'with rl.update = "none" and copies alone nothing would ever change',
                    "add an operator that makes something new, such as full_noise",
                )
            if "fisher" in self.evolution.operators:
                raise ConfigError(
                    'the operator "fisher" in evolution.operators weighs by the optimiser\'s moments, and with '
                    'rl.update = "none" there are none',
                    "leave one of the two out",
                )
        return self

    def _kinds_are_known(self) -> None:
        for kind in self.tasks.kinds:
            if kind not in KINDS:
                self._kind_is_known(kind)
        if len(set(self.tasks.kinds)) < len(self.tasks.kinds):
            raise ConfigError("tasks.kinds names a kind twice", "say how often each is wanted with tasks.mix")
        if self.tasks.mix and len(self.tasks.mix) != len(self.tasks.kinds):
            raise ConfigError(
                f"tasks.mix has {len(self.tasks.mix)} numbers for {len(self.tasks.kinds)} kinds",
                "give one for each of tasks.kinds, or leave it out",
            )
        for number, pattern in enumerate(self.guard.deny):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    f"guard.deny cannot hold {shown(pattern, quote=True)}: {error}",
                    f"mend the expression at place {number}",
                ) from None

    def _kind_is_known(self, kind: str) -> None:
        # Only here: whoever asks for help should not wait for the verifier.
        from redqueen.tasks import all_kinds

        if kind not in all_kinds():
            raise ConfigError(
                f"tasks.kinds names {shown(kind)}, and there is no such kind",
                f"the kinds are {', '.join(all_kinds())}",
            )

    def _single_is_alone(self) -> None:
        if not self.population.single:
            return
        mend = "use `--arm single`, which sets what belongs to it"
        if self.population.teachers != 1 or self.population.students != 1:
            raise ConfigError("population.single is one adapter in both roles: one teacher and one student", mend)
        if self.evolution.every:
            raise ConfigError("population.single leaves nobody to evolve, and evolution.every is not 0", mend)
        if self.rl.frozen != "nobody":
            raise ConfigError(f'population.single is both, and rl.frozen = "{self.rl.frozen}" would stop both', mend)

    def _something_is_learnt(self) -> None:
        """A group of one has nothing to be compared with, and a handful of texts makes no step (`rl.batch`)."""
        if self.rl.update == "none":
            return
        alone = [name for name in ("proposals", "attempts") if getattr(self.tasks, name) == 1]
        if alone and self.rl.estimator in ("grpo", "rloo", "dr_grpo"):
            raise ConfigError(
                f'tasks.{alone[0]} = 1 leaves rl.estimator = "{self.rl.estimator}" nothing to compare',
                'use 2 or more, or "reinforce++"',
            )
        teachers, students = self.population.teachers, self.population.students
        matches, _ = count_matches(teachers, students, self.match.maker, self.match.panel)
        texts = self.tasks.prompts * self.tasks.proposals * (matches // teachers)
        if texts < MIN_ROWS and self.rl.frozen != "teachers":
            raise ConfigError(
                f"tasks.prompts and tasks.proposals make {texts} texts, too few for a teacher to learn from",
                f"make their product {MIN_ROWS} or more, or freeze the teachers with rl.frozen",
            )

    def _matches_can_be_made(self) -> None:
        teachers = [f"t{index}" for index in range(self.population.teachers)]
        students = [f"s{index}" for index in range(self.population.students)]
        panel = self.match.panel or 1
        if panel > len(students):
            raise ConfigError(
                f"match.panel = {panel} wants more students than population.students = {len(students)}",
                f"use a panel of at most {len(students)}, or more students",
            )
        apart = self.match.kept_apart
        for seats, seated in ((teachers, [t for t, _ in apart]), (students, [s for _, s in apart])):
            for seat in sorted(set(seated) - set(seats)):
                raise ConfigError(
                    f"match.exclude names {shown(seat)}, and there is no such seat",
                    f"the seats are {seats[0]} to {seats[-1]}" if len(seats) > 1 else f"the only one is {seats[0]}",
                )
        for seat in students if apart else ():
            if all((teacher, seat) in apart for teacher in teachers):
                raise ConfigError(f"match.exclude leaves nobody for {seat} to play", "leave it an opponent")
        for seat in teachers if apart else ():
            left = sum((seat, student) not in apart for student in students)
            if left == 0:
                raise ConfigError(f"match.exclude leaves nobody for {seat} to play", "leave it an opponent")
            if left < panel:
                raise ConfigError(
                    f"match.panel = {panel} wants more students than match.exclude leaves to {seat}",
                    f"use a panel of at most {left}, or exclude fewer pairs",
                )
        if apart:
            self._try_schedules(apart)

    def _try_schedules(self, apart: frozenset[tuple[str, str]]) -> None:
        """A schedule that cannot be made, or seldom, must not end a run in the middle."""
        from redqueen.population.board import Board
        from redqueen.population.matchmaking import schedule
        from redqueen.population.members import founders

        population = founders(self.population.teachers, self.population.students)
        for seed in range(10):
            schedule(population, self.match.maker, Board(), Random(seed), self.match.panel, apart)
