"""All benchmarks, one file each. A new one is a file here and a line below."""

from redqueen.errors import InputError
from redqueen.evals.benchmarks.aime24 import Aime24
from redqueen.evals.benchmarks.aime25 import Aime25
from redqueen.evals.benchmarks.amc23 import Amc23
from redqueen.evals.benchmarks.gsm8k import Gsm8k
from redqueen.evals.benchmarks.humaneval_plus import HumanEvalPlus
from redqueen.evals.benchmarks.livecodebench import LiveCodeBench
from redqueen.evals.benchmarks.math500 import Math500
from redqueen.evals.benchmarks.mbpp_plus import MbppPlus
from redqueen.evals.benchmarks.minerva_math import MinervaMath
from redqueen.evals.benchmarks.mmlu import Mmlu
from redqueen.evals.benchmarks.olympiadbench import OlympiadBench
from redqueen.evals.protocol import Published

BENCHMARKS: dict[str, Published] = {
    each.name: each
    for each in (
        HumanEvalPlus(), MbppPlus(), LiveCodeBench(), Aime24(), Aime25(), Amc23(), Math500(), MinervaMath(), Gsm8k(),
        OlympiadBench(), Mmlu(),
    )
}  # fmt: skip
SUITES = ("code", "math", "all")


def chosen(asked: str) -> list[Published]:
    """The benchmarks that a list of names and suites means, each once."""
    found: dict[str, Published] = {}
    for word in (part.strip() for part in asked.split(",")):
        if word == "all":
            found |= BENCHMARKS
        elif word in SUITES:
            found |= {name: each for name, each in BENCHMARKS.items() if each.suite == word}
        elif word in BENCHMARKS:
            found[word] = BENCHMARKS[word]
        else:
            import difflib

            close = difflib.get_close_matches(word, [*SUITES, *BENCHMARKS], 1)
            mend = f"did you mean {close[0]}?" if close else f"there are {', '.join([*SUITES, *BENCHMARKS])}"
            raise InputError(f"there is no suite or benchmark {word or 'without a name'}", mend)
    return list(found.values())
