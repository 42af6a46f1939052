"""Greedy figures of an evaluation that did not come to its end, on the tasks that everybody has answered.

    python tools/evals/answered.py FOLDER...

A FOLDER is what `redqueen eval --to` writes. Tasks are answered in the order that suits the engine, so these are no
sample of the benchmark: compare members with each other and with the base here, and with nothing else.
"""

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from redqueen.analysis.resampling import paired
from redqueen.evals.answers import GREEDY, Answer, read_answers
from redqueen.evals.subjects import BARE


def show(folder: Path, benchmark: str) -> None:
    answers: defaultdict[str, dict[str, Answer]] = defaultdict(dict)
    for (who, item, attempt), answer in read_answers(folder, benchmark).items():
        if attempt == GREEDY:
            answers[who][item] = answer
    items = sorted(set.intersection(*(set(own) for own in answers.values())))
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for who in answers:
        groups[who.rpartition("/")[0]].append(who)
    print(f"{folder} {benchmark}: {len(items)} tasks that all of {len(answers)} answered")
    base_N = np.array([float(answers[BARE][item].correct) for item in items])
    for group, members in sorted(groups.items()):
        own = [[answers[who][item] for item in items] for who in members]
        mean_N = np.mean([[float(answer.correct) for answer in row] for row in own], axis=0)
        formed = np.mean([[answer.answer is not None for answer in row] for row in own])
        tokens = np.mean([[answer.tokens for answer in row] for row in own])
        gain = [100 * end for end in paired(mean_N - base_N).ends if end is not None]
        told = f"{gain[0]:+5.1f} [{gain[1]:+.1f}, {gain[2]:+.1f}]" if members != [BARE] else ""
        name = group or "base"
        print(f"  {name:72} {100 * mean_N.mean():5.1f} {told:22} {100 * formed:3.0f} % formed {tokens:4.0f} tokens")


def main() -> None:
    for name in sys.argv[1:]:
        for file in sorted((Path(name) / "answers").glob("*.jsonl")):
            show(Path(name), file.stem)


if __name__ == "__main__":
    main()
