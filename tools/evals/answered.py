"""Greedy figures of evaluations that did not come to their end, on the tasks that everybody has answered.

    python tools/evals/answered.py [--data BENCHMARKS] FOLDER...

A FOLDER is what `redqueen eval --to` writes; of a benchmark that several have, the tasks that all of them have count.
With --data, as for `redqueen eval`, the subsets of a benchmark are shown apart as well. Tasks are answered in the order
that suits the engine, so these are no sample of the benchmark: compare members with each other and with the base here,
and with nothing else. Members are averaged by the run and the step that they are of: give `redqueen eval` one --role.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from parts import loaded_as_asked, with_subsets

from redqueen.analysis.resampling import paired
from redqueen.errors import UserError
from redqueen.evals.answers import GREEDY, SETTINGS, Answer, read_answers
from redqueen.evals.subjects import BARE

Answers = Mapping[str, Mapping[str, Answer]]
"""By who and item."""


def greedy(folder: Path, benchmark: str) -> Answers:
    answers: defaultdict[str, dict[str, Answer]] = defaultdict(dict)
    for (who, item, attempt), answer in read_answers(folder, benchmark).items():
        if attempt == GREEDY:
            answers[who][item] = answer
    return answers


def show(answers: Answers, items: list[str]) -> None:
    base_N = np.array([float(answers[BARE][item].correct) for item in items])
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for who in sorted(answers):
        group, slash, _ = who.rpartition("/")
        groups["base" if who == BARE else group if slash else "members"].append(who)
    for group, members in groups.items():
        own = [[answers[who][item] for item in items] for who in members]
        mean_N = np.mean([[float(answer.correct) for answer in row] for row in own], axis=0)
        formed = np.mean([[answer.answer is not None for answer in row] for row in own])
        tokens = np.mean([[answer.tokens for answer in row] for row in own])
        gain = paired(100 * (mean_N - base_N))
        told = f"{gain.value:+5.1f} [{gain.low:+.1f}, {gain.high:+.1f}]" if members != [BARE] else ""
        print(f"  {group:72} {100 * mean_N.mean():5.1f} {told:22} {100 * formed:3.0f} % formed {tokens:4.0f} tokens")


def subsets(folder: Path, benchmark: str, data: Path | None) -> dict[str, list[str]]:
    """By name, the tasks of each subset; none without the benchmark's file."""
    if data is None:
        return {}
    loaded = loaded_as_asked(folder, benchmark, data)
    _, *parts = with_subsets(loaded, json.loads((folder / SETTINGS).read_text())["prompts"]).items()
    return dict(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--data", type=Path, metavar="BENCHMARKS")
    asked = parser.parse_args()
    try:
        compare(asked.folders, asked.data)
    except UserError as error:
        print(f"answered.py: {error}", file=sys.stderr)
        return 2
    return 0


def compare(folders: Sequence[Path], data: Path | None) -> None:
    for benchmark in sorted({file.stem for folder in folders for file in (folder / "answers").glob("*.jsonl")}):
        found = {folder: answers for folder in folders if (answers := greedy(folder, benchmark))}
        everybody = [own for answers in found.values() for own in answers.values()]
        items = sorted(set.intersection(*(set(own) for own in everybody)))
        if len(items) < 2 or not all(BARE in answers for answers in found.values()):
            print(f"{benchmark}: fewer than two tasks that everybody and the base have answered")
            continue
        for folder, answers in found.items():
            print(f"{folder} {benchmark}: {len(items)} tasks that all have answered")
            show(answers, items)
            for name, part in subsets(folder, benchmark, data).items():
                if len(own := [item for item in items if item in set(part)]) < 2:
                    continue
                print(f"{folder} {name}: {len(own)} of them")
                show(answers, own)


if __name__ == "__main__":
    sys.exit(main())
