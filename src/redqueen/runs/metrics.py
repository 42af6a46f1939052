"""Every metric of a race: its name in the records, its title in tables and charts, its unit, and what it says.

Whoever records or reads a metric names a constant of this module: a name is spelled here and nowhere else. To add one,
write its constant, record it in `phases/figures.py`, and add its row to the table in `docs/usage.md`.
"""

import math
from dataclasses import KW_ONLY, dataclass

from redqueen.population.members import Role

RACE = "race"
"""The subject of what is nobody's own."""
BASE = "base"
"""The subject of the bare base's figures."""
SHARE = "share"
"""The unit of what lies between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    """In the records, those of old runs too: it never changes."""
    title: str
    unit: str
    """Empty for a plain number."""
    about: str
    """In a few words, for people."""
    _: KW_ONLY
    of: str
    """Whose it is, in plurals and with commas."""
    by_kind: bool = False
    """There is also one of each kind of task; of a benchmark's, only of each."""
    signed: bool = False
    """It can be below 0."""
    role_titles: tuple[str, str] | None = None
    """The teachers' and the students', where it is not called the same of both."""

    @property
    def most(self) -> float:
        """That it can be."""
        return 1.0 if self.unit == SHARE else math.inf

    def title_of(self, role: Role) -> str:
        """`entropy of teachers`, `valid proposals`."""
        return self.role_titles[list(Role).index(role)] if self.role_titles else f"{self.title} of {role}s"


REWARD = Metric("reward", "reward", "", "mean over texts", of="roles, members", by_kind=True, signed=True)
VALID = Metric(
    "valid", "valid", SHARE, "proposals that became tasks; attempts that were well formed", of="roles, members",
    by_kind=True, role_titles=("valid proposals", "valid attempts"),
)  # fmt: skip
LENGTH = Metric(
    "length", "length", "tokens", "mean over texts", of="roles, members", by_kind=True,
    role_titles=("tokens of a proposal", "tokens of an attempt"),
)  # fmt: skip
ENTROPY = Metric("entropy", "entropy", "nats", "mean over sampled tokens", of="roles, members", by_kind=True)
SOLVE_RATE = Metric(
    "solve_rate", "solve rate", SHARE, "share of attempts that are right", of="race, members", by_kind=True
)
RULER = Metric(
    "ruler", "solve rate of the base", SHARE, "attempts of the bare base at the step's tasks that are right", of="race",
    by_kind=True,
)  # fmt: skip
COPIES = Metric("copies", "copies", SHARE, "attempts that give back what is shown", of="race, students", by_kind=True)
MU = Metric("mu", "mu", "points", "mean of a rating", of="members", signed=True)
SIGMA = Metric("sigma", "sigma", "points", "uncertainty of a rating", of="members")
SAMPLED_TOKENS = Metric("sampled_tokens", "sampled tokens", "tokens", "of all texts", of="race, adapters")
PROMPT_TOKENS = Metric(
    "prompt_tokens", "prompt tokens", "tokens", "of prompts, each once for all texts of an adapter", of="race, adapters"
)
TRAINED_TOKENS = Metric("trained_tokens", "trained tokens", "tokens", "that a gradient came from", of="race, adapters")
UPDATE_TOKENS = Metric(
    "update_tokens", "tokens in updates", "tokens", "that training passed through the base, prompts included",
    of="race, adapters",
)  # fmt: skip
VERIFIER_RUNS = Metric("verifier_runs", "verifier runs", "runs", "of programs, for its texts", of="race, adapters")
FLOPS = Metric(
    "flops", "floating-point operations", "operations", "of sampling and training, prompts included",
    of="race, adapters",
)  # fmt: skip
GRAD_NORM = Metric("grad_norm", "gradient norm", "", "before clipping", of="adapters")
KL = Metric("kl", "KL divergence", "nats", "of sampler and trainer, mean over sampled tokens", of="adapters")
RATIO_MEAN = Metric("ratio_mean", "mean ratio", "", "of probabilities, trainer's to sampler's", of="adapters")
RATIO_MAX = Metric("ratio_max", "largest ratio", "", "of probabilities, trainer's to sampler's", of="adapters")
LOSS = Metric("loss", "loss", "", "of the update", of="adapters", signed=True)
UPDATED = Metric("updated", "updated", SHARE, "1 where there was an update, 0 where it was skipped", of="adapters")
LR = Metric("lr", "learning rate", "", "of the step", of="adapters")
DUPLICATES = Metric("duplicates", "duplicates", SHARE, "proposals that were rejected for it", of="race")
GUESS_RATE = Metric(
    "guess_rate", "guess rate", SHARE, "tasks whose answer is the commonest one of recent tasks of their kind",
    of="race", by_kind=True,
)  # fmt: skip
DEPTH = Metric("depth", "depth", "levels", "of a syntax tree, mean over tasks", of="race, teachers", by_kind=True)
CYCLOMATIC = Metric(
    "cyclomatic", "cyclomatic", "paths", "cyclomatic complexity, mean over tasks", of="race, teachers", by_kind=True
)
LINES = Metric("lines", "lines", "lines", "lines of a task's program, mean", of="race, teachers", by_kind=True)
VARIABLES = Metric(
    "variables", "variables", "names", "variables of a program, mean over tasks", of="race, teachers", by_kind=True
)
COVERAGE = Metric("coverage", "coverage", "cells", "cells of structures ever filled", of="race", by_kind=True)
NEW_CELLS = Metric("new_cells", "new cells", "cells", "cells of structures first filled in this step", of="race")
BEHAVIOURS = Metric("behaviours", "behaviours", "behaviours", "behaviours of programs ever seen", of="race")
SEMANTIC_DISTANCE = Metric("semantic_distance", "semantic distance", "", "mean between tasks of the step", of="race")
EFFECTIVE_SIZE = Metric("effective_size", "effective size", "members", "by the cosines of weights", of="roles")
WEIGHT_DISTANCE = Metric("weight_distance", "weight distance", "", "mean between members", of="roles")
FUNCTION_DISTANCE = Metric("function_distance", "function distance", "nats", "mean between members", of="roles")
DRIFT = Metric("drift", "drift", "nats", "distance in functions from the bare base", of="adapters")
ELSEWHERE = Metric(
    "elsewhere", "drift elsewhere", "nats", "distance in functions from the bare base at requests of other kinds",
    of="adapters",
)  # fmt: skip
ELSEWHERE_LENGTH = Metric(
    "elsewhere_length", "length elsewhere", "tokens", "mean over answers to requests of other kinds, 128 at most",
    of="adapters, base",
)  # fmt: skip
ELSEWHERE_ENTROPY = Metric(
    "elsewhere_entropy", "entropy elsewhere", "nats", "mean over tokens of answers to requests of other kinds",
    of="adapters, base",
)  # fmt: skip
TRIAL = Metric(
    "trial", "trial", "", "solve rate of a student, reward of a teacher on common tasks", of="members", signed=True
)
TRIAL_TASKS = Metric(
    "trial_tasks", "tasks of a trial", "tasks", "that a student was judged by, or proposals of a teacher", of="members"
)
PULL = Metric("pull", "pull", SHARE, "how far members moved to the mean of their role", of="roles")
KINDS_BITS = Metric("kinds_bits", "bits of kinds", "bits", "entropy over recent tasks", of="teachers")
DESCRIPTORS_BITS = Metric("descriptors_bits", "bits of types", "bits", "entropy over recent tasks", of="teachers")
BENCHMARK = Metric(
    "benchmark", "benchmark", SHARE, "right answers to a slice; the benchmark's name stands for the kind",
    of="roles, adapters, base", by_kind=True,
)  # fmt: skip

METRICS = {metric.name: metric for metric in list(globals().values()) if isinstance(metric, Metric)}
"""All of them, by name."""
COMPLEXITY = (DEPTH, CYCLOMATIC, LINES, VARIABLES)
"""The fields of `Complexity`."""
COMPUTE = (SAMPLED_TOKENS, PROMPT_TOKENS, TRAINED_TOKENS, UPDATE_TOKENS, VERIFIER_RUNS, FLOPS)
"""The fields of `Usage`: what a race costs, in units that do not depend on the machine."""
UPDATE = (GRAD_NORM, KL, RATIO_MEAN, RATIO_MAX, LOSS)
"""Of the fields of `UpdateStats`."""
MEMBER_COLUMNS = {"reward": REWARD, "valid": VALID, "solved": SOLVE_RATE, "entropy": ENTROPY}
"""Of tables of members, by their heads."""
