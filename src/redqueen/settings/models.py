"""The settings: frozen models that refuse what they do not know.

A field's docstring is its help text on the command line, and its annotation says what the setting affects. What must
go together beyond one section is `training/checks.py`'s business, and so is whether a plug-in of a name is there: a
run's settings can be read where its plug-ins are not.
"""

import math
import re
import tomllib
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from redqueen.errors import ConfigError
from redqueen.settings.fields import Affects, Metavar, Names, Plugin, Plugins, Size, Weights
from redqueen.settings.toml import shown

_PRESET = tomllib.loads(files("redqueen.settings").joinpath("presets", "default.toml").read_text(encoding="utf-8"))
"""Which plug-ins settings name when left out: the preset `default` says so, and no code does."""


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
    workers: Annotated[int | None, Affects.NOTHING] = Field(default=None, ge=1, le=1024)
    """Programs that run at the same time; by default one per core."""

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


class EngineConfig(Section):
    """The base, and the shape of its members' adapters."""

    base: Annotated[str, Affects.MEMBERS] = Field(default="smollm2-135m", min_length=1)
    """The frozen language model: a name that `redqueen base list` knows, a folder, a .gguf file or a hub id."""
    rank: Annotated[int, Affects.MEMBERS] = Field(default=16, ge=1, le=4096)
    """The rank of every member's adapter."""
    alpha: Annotated[float | None, Affects.MEMBERS] = Field(default=None, gt=0, allow_inf_nan=False)
    """An adapter counts alpha / rank times; by default twice the rank."""
    target_modules: Annotated[
        Names | None,
        Field(min_length=1, examples=[["q_proj", "v_proj"]]),
        Metavar("NAME,NAME"),
        Affects.MEMBERS,
    ] = None
    """The linear layers that are adapted, by the end of their names; by default all of the base's blocks."""
    rows: int | None = Field(default=None, ge=1, le=65536)
    """Sequences decoded in parallel; by default as many as suit the device."""
    memory: Size | None = None
    """What the engine may take of its device's memory, the base included, such as 24GiB or 80%; all that is free when
    left out."""
    device: Literal["best", "cuda", "cpu"] = "best"
    """Where models run: CUDA if there is any, or exactly this one."""
    dtype: Literal["best", "bfloat16", "float32"] = "best"
    """What the base computes in: bfloat16 on CUDA and float32 on the CPU, or exactly this one."""
    quantise: Literal["none", "nf4", "int8"] = "none"
    """How the base's linear layers are stored: "nf4" in 4 bits and "int8" in 8, by bitsandbytes, "none" in the dtype;
    embeddings, head, norms and members stay as they are."""
    tensor_parallel: int = Field(default=1, ge=1, le=64)
    """Processes over which the weights of the base are split, each on a GPU of its own where there are enough: for a
    base that fits no single one."""

    @model_validator(mode="after")
    def _agree(self) -> "EngineConfig":
        self.refuse()
        return self

    def refuse(self) -> None:
        """Refuse what does not go together: pydantic does not look at copies."""
        if self.quantise != "none" and self.tensor_parallel > 1:
            raise ConfigError(
                f"a base that is split (engine.tensor_parallel = {self.tensor_parallel}) cannot be quantised",
                'set engine.quantise to "none", or engine.tensor_parallel to 1',
            )


class RunConfig(Section):
    """How long a run is, and what of it is kept."""

    seed: Annotated[int, Affects.SEED] = Field(default=0, ge=0, lt=2**63)
    """Where all of its random numbers come from."""
    steps: Annotated[int, Affects.LENGTH] = Field(default=200, ge=1, le=10_000_000)
    """How many; a finished run goes on when this is raised."""
    flops: Annotated[float | None, Affects.LENGTH] = Field(default=None, gt=0, allow_inf_nan=False)
    """End with the step in which the race's floating-point operations reach this, if that is before the last of
    run.steps."""
    checkpoint_every: Annotated[int, Affects.NOTHING] = Field(default=10, ge=1, le=1_000_000)
    """Steps from one checkpoint to the next: what a killed run does again at most."""
    keep_last: Annotated[int, Affects.NOTHING] = Field(default=2, ge=1, le=1_000_000)
    """Checkpoints that are kept, the newest ones."""
    keep_every: Annotated[int, Affects.NOTHING] = Field(default=0, ge=0, le=1_000_000)
    """Also keep those of every so many steps, to fork from or to look at; 0 keeps none of them."""
    measure_every: int = Field(default=10, ge=1, le=1_000_000)
    """Steps from one look at the costlier measures to the next: how far apart members and tasks are."""
    ruler_every: Annotated[int, Affects.NOTHING] = Field(default=0, ge=0, le=1_000_000)
    """Steps from one step whose tasks the bare base attempts too, to say how hard they are, to the next; 0 never
    does."""

    def ends(self, step: int, flops: int) -> bool:
        """Whether this step, with so many operations by then, is the last."""
        return step >= self.steps or (self.flops is not None and flops >= self.flops)

    def steps_left(self, step: int, flops: int) -> int:
        """After this one, if they take as many operations as those so far."""
        left = self.steps - step
        if self.flops is not None and flops > 0:
            left = min(left, math.ceil((self.flops - flops) * step / flops))
        return max(left, 0)


class PopulationConfig(Section):
    """Who races."""

    teachers: Annotated[int, Affects.MEMBERS] = Field(default=4, ge=0, le=1024)
    """Members that propose tasks; 0 where tasks.families names fixed sources alone."""
    students: Annotated[int, Affects.MEMBERS] = Field(default=4, ge=1, le=1024)
    """Members that solve them."""
    single: Annotated[bool, Affects.MEMBERS] = False
    """One adapter in both roles, unrated, as in Absolute Zero; with one teacher and one student."""


class TasksConfig(Section):
    """What teachers are asked for, and how much of it."""

    families: Plugins = tuple(_PRESET["tasks"]["families"])
    """Where kinds of tasks come from: names that `redqueen plugins` lists, or FILE.py:NAME for one of your own, which
    is code that you trust. proof:FILE.mm has proofs of a Metamath database of yours."""
    kinds: Annotated[Names, Field(min_length=1), Metavar("KIND,KIND")] = tuple(_PRESET["tasks"]["kinds"])
    """What teachers are asked for, and what students get of sources; by default all kinds of the families."""
    mix: Annotated[
        Weights,
        Field(examples=[[2, 1, 1]]),
        Metavar("2,1,1"),
    ] = ()
    """How often each kind is asked for, one number for each; by default equally often."""
    form: Literal["long", "direct", "short"] = "long"
    """What prompts say: "long" has students think first, "direct" answer at once, for bases of less than about a
    billion parameters; "short" is for small ones that were trained on it."""
    unfenced: bool = False
    """Read answers that lack their fenced block where there is exactly one way to read them."""
    briefs: bool = True
    """Draw by lot what each task is to be about, and refuse what is about something else; otherwise teachers choose.
    The form "short" has none."""
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
    replay: int = Field(default=0, ge=0, le=65536)
    """Recent tasks that each student attempts once more in a step, of those that are solved now and then."""
    seeds: str | None = Field(default=None, min_length=1)
    """What teachers begin from: a .jsonl file of tasks, or the name of a base that comes with the package for its
    own; by default the families'."""


class GuardConfig(Section):
    """What is refused, what does not count, and who does not learn."""

    held_out: Annotated[
        Names,
        Field(examples=[["humaneval.jsonl"]]),
        Metavar("FILE,FILE"),
    ] = ()
    """Files of programs (.py, .jsonl) that no task may have, up to names and layout: what you evaluate on. `functions`
    and the name of a base that comes with the package stand for their exams."""
    deny: Annotated[
        Names,
        Field(examples=[["while +True"]], json_schema_extra={"whole": True}),
        Metavar("REGEX"),
    ] = ()
    """Regular expressions that no program may match; on the command line one, several in a file."""
    max_lines: int | None = Field(default=None, ge=1)
    """Longer programs are refused; by default any length within the family's limit."""
    max_depth: int | None = Field(default=None, ge=1)
    """Programs with a deeper syntax tree are refused."""
    duplicates: Literal["near", "same", "unpaid", "allow"] = "near"
    """"same" refuses programs that an earlier task has, up to names and layout; "near" also does not count as hard what
    differs from a teacher's recent tasks in constants alone; "unpaid" is "near" with a reward of 0 for a refused
    duplicate instead of -1; "allow" does nothing of this."""
    sources: Annotated[Literal["refuse", "allow"], Affects.NOTHING] = "refuse"
    """"refuse" trains on no fixed source that fails the checks of `redqueen check` that decide: its students would
    learn the hole."""
    shortcuts: Literal["refuse", "allow"] = "refuse"
    """"refuse" takes no tasks that need no reasoning: what is shown, given back, solves them, or a constant, or an
    answer that many recent tasks have."""
    entropy_floor: float = Field(default=0.005, ge=0, allow_inf_nan=False)
    """Nats a token: a member that falls below is not updated, and reported; 0 turns it off."""
    valid_floor: float = Field(default=0.02, ge=0, lt=1, allow_inf_nan=False)
    """The share of a member's texts that are sound: one that falls below, having been above, is not updated; 0 turns it
    off."""
    drift_ceiling: float = Field(default=0.015, ge=0, allow_inf_nan=False)
    """Nats a token: a member that is further than this from the bare base, at requests of other kinds than a race has,
    is moved back towards it and learns at half its rate from then on; 0 turns it off. It is looked at every
    run.measure_every steps, with any form but "short"."""


class OversightConfig(Section):
    """What a person should look at."""

    every: int = Field(default=0, ge=0, le=1_000_000)
    """Set aside about one in so many tasks (`redqueen tasks RUN --oversight`); 0 sets none aside."""


class TrackConfig(Section):
    """Where else figures go."""

    to: Annotated[
        Names,
        Field(examples=[["tensorboard"]]),
        Metavar("NAME,NAME"),
    ] = ()
    """"trackio", "wandb", "tensorboard"; all stay on this machine unless track.online or their own settings say
    otherwise."""
    project: str = Field(default="redqueen", min_length=1)
    """What the run is filed under there."""
    online: bool = False
    """Let wandb send figures to its server at once, as WANDB_MODE=online does; it needs `wandb login`."""


class EvalsConfig(Section):
    """Benchmarks that are looked at during the race; they change nothing of it, and nobody is selected by them."""

    every: int | None = Field(default=None, ge=0, le=1_000_000)
    """Steps from one look to the next; 0 looks at none. When left out, 20, at those that are at hand: nothing is
    downloaded, and nothing asked of a base that was made for the form "short"."""
    suite: Plugins = tuple(_PRESET["evals"]["suite"])
    """Which, as in `redqueen eval --suite`; `redqueen plugins` lists them."""
    items: int = Field(default=32, ge=1, le=1_000_000)
    """Tasks of each, always the same ones."""
    prompts: Literal["chat", "raw"] = "chat"
    """How a model is asked: through its chat template, or with a text to go on with."""
    max_tokens: int = Field(default=512, ge=1, le=1_000_000)
    """The longest answer."""
    data: str | None = Field(default=None, min_length=1)
    """The folder that they are in, as NAME/test.jsonl.gz; by default the hub's."""


class MatchConfig(Section):
    """Who meets whom, and who wins."""

    maker: Plugin = _PRESET["match"]["maker"]
    """How a teacher gets its student; `redqueen plugins` lists the ways."""
    panel: int | None = Field(default=None, ge=1, le=1024)
    """Students who attempt a teacher's tasks; by default the matchmaker's own number, which is one for most."""
    exclude: Annotated[
        Names,
        Field(examples=[["t0:s0", "t1:s1"]]),
        Metavar("t0:s0,t1:s1"),
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
        return frozenset((teacher, student) for teacher, _, student in (pair.partition(":") for pair in self.exclude))


class EvolutionConfig(Section):
    """Who is replaced, and by whom."""

    every: int = Field(default=10, ge=0, le=1_000_000)
    """Steps from one replacement to the next; 0 turns evolution off."""
    share: float = Field(default=0.25, gt=0, lt=1, allow_inf_nan=False)
    """The part of each role that is replaced, rounded down, but one at least."""
    elites: int = Field(default=1, ge=0, le=1024)
    """Members of each role, its best, that are never replaced."""
    fitness: Plugin = _PRESET["evolution"]["fitness"]
    """What makes a member good; `redqueen plugins` lists what there is."""
    selection: Plugin = _PRESET["evolution"]["selection"]
    """How parents are chosen; `redqueen plugins` lists the ways."""
    rule: Literal["ours", "paper"] = "ours"
    """Who dies: "ours" the lowest rating's mean once it is old enough, its child starting at its role's mean;
    "paper" the lowest bound, newborns included, its child starting from the prior."""
    operators: Plugins = tuple(_PRESET["evolution"]["operators"])
    """What makes a child of its parents, each as likely as the next; `redqueen operators` lists them. A FILE.py:NAME is
    code that you trust: it runs with all your rights. So it is with all plug-ins."""
    inject: bool = False
    """Put a fresh member in the place of one that dies when its role has become too much alike."""
    trial: int = Field(default=0, ge=0, le=65536)
    """Before a replacement all students attempt so many tasks, the same ones, and all teachers write as many to the
    same prompts: fitness is then what they are worth there; 0 holds no trials."""
    scatter: float = Field(default=0.03, ge=0, le=1, allow_inf_nan=False)
    """Without gradients: how far from the base members begin, as a share of the norm of each weight that they adapt. 0
    draws the entries of B with a standard deviation of 0.1, whatever the base."""
    pull: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """How far each member moves to the mean of its role, from 0, where it stays, to 1, where all become one."""
    pull_every: int = Field(default=10, ge=1, le=1_000_000)
    """Steps from one such move to the next."""
    pull_rate: float = Field(default=1.0, gt=0, le=1000, allow_inf_nan=False)
    """What learning rates are multiplied by where members are pulled: a mean stands longer steps than one member."""


class RlConfig(Section):
    """How members learn."""

    update: Literal["reinforce", "none"] = "reinforce"
    """What changes weights from step to step: the rewards, or nothing, which leaves them to evolution alone."""
    estimator: Plugin = _PRESET["rl"]["estimator"]
    """How rewards become advantages; `redqueen plugins` lists the ways."""
    reward: Plugin = _PRESET["rl"]["reward"]
    """What a task pays its teacher, by how often it is solved; `redqueen plugins` lists the ways."""
    lr: float = Field(default=1e-4, gt=0, allow_inf_nan=False)
    """AdamW's learning rate, the students' where teachers have their own."""
    teacher_lr: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The teachers' learning rate; rl.lr when left out."""
    warmup: int = Field(default=5, ge=0, le=1_000_000)
    """Steps of a member in which it rises to that: a child begins anew."""
    half_life: int = Field(default=0, ge=0, le=1_000_000)
    """Steps of the race in which learning rates halve, again and again; 0 keeps them."""
    max_grad_norm: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """A member's longer gradients are cut to this length."""
    full_rows: int = Field(default=0, ge=0, le=1_000_000)
    """Texts with an advantage that make a whole step: with fewer its length falls with the root of their share; 0 makes
    every step whole."""
    share: Literal["nobody", "teachers", "students", "everybody"] = "nobody"
    """Which members also learn from the texts of the others of their role, weighted by how likely they are to write
    them."""
    kl: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """How much a member is held to the bare base; 0 leaves it free."""
    temperature: float = Field(default=1.0, ge=0.01, le=100, allow_inf_nan=False)
    """Of all sampling, but for the teachers' where they have their own."""
    teacher_temperature: float | None = Field(default=None, ge=0.01, le=100, allow_inf_nan=False)
    """Of the teachers' sampling; rl.temperature when left out."""
    frozen: Literal["nobody", "teachers", "students"] = "nobody"
    """Who stays as it began, neither trained nor replaced: a control."""
    shuffle: bool = False
    """Deal out each member's rewards among its texts at random: a control in which nothing can be learnt."""


class ClusterConfig(Section):
    """Where members are sampled and trained, and programs run, if not in this process alone."""

    address: Annotated[str | None, Affects.NOTHING, Metavar("local|auto|HOST:PORT")] = Field(default=None, min_length=1)
    """A Ray cluster: "local" starts one here for the race, "auto" joins the one that this machine belongs to, and
    HOST:PORT names its head; by default none."""
    workers: Annotated[int | None, Affects.NOTHING] = Field(default=None, ge=1, le=1024)
    """Processes with an engine each; by default as many as shards."""
    shards: int | None = Field(default=None, ge=1, le=1024)
    """Parts of the population, each of which is sampled and trained by itself; as many as workers when a run is begun
    without it, and from then on as the run has them."""
    verifiers: Annotated[int, Affects.NOTHING] = Field(default=0, ge=0, le=1024)
    """Machines of the cluster whose cores run untrusted programs too, beside the driver's own."""
    gpus_per_worker: Annotated[float | None, Affects.NOTHING] = Field(default=None, ge=0, le=64, allow_inf_nan=False)
    """A part of a GPU where several workers share one; when left out one for each process of engine.tensor_parallel, or
    0 where the cluster has none."""
    patience_s: Annotated[float, Affects.NOTHING] = Field(default=60.0, ge=1, le=86400, allow_inf_nan=False)
    """Seconds after which a silent worker is taken for dead, and the race stops where no worker is left."""


class Config(Section):
    """All settings of a run."""

    run: RunConfig = RunConfig()
    verifier: VerifierConfig = VerifierConfig()
    engine: EngineConfig = EngineConfig()
    cluster: ClusterConfig = ClusterConfig()
    population: PopulationConfig = PopulationConfig()
    tasks: TasksConfig = TasksConfig()
    match: MatchConfig = MatchConfig()
    evolution: EvolutionConfig = EvolutionConfig()
    rl: RlConfig = RlConfig()
    guard: GuardConfig = GuardConfig()
    oversight: OversightConfig = OversightConfig()
    evals: Annotated[EvalsConfig, Affects.NOTHING] = EvalsConfig()
    track: Annotated[TrackConfig, Affects.NOTHING] = TrackConfig()
