"""The commands of the recipes in examples/ run in their order, cut short and on the bases that need no download."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import redqueen

FOLDER = Path(redqueen.__file__).parents[2] / "examples"
SHORT = shlex.split(
    "--run.steps 1 --run.keep-every 1 --engine.device cpu --verifier.workers 2 --tasks.prompts 2 "
    "--tasks.proposal-tokens 64 --tasks.attempt-tokens 48"
)
"""For races."""
ELSEWHERE = {"watch": "never ends: tests/test_readme.py", "eval": "needs benchmark files: tests/evals/test_eval.py"}
"""Commands that are not run here."""


def recipe(name: str) -> list[list[str]]:
    """The commands of a page, in order."""
    [block] = re.findall(r"^```\n(redqueen .*?)^```", (FOLDER / name).read_text(), re.DOTALL | re.MULTILINE)
    return [shlex.split(line)[1:] for line in block.splitlines()]


def shortened(words: list[str]) -> list[str]:
    """The same on a small base, and with less to do."""
    words = [word.replace(":40/", ":1/") for word in words]
    match words[0]:
        case "train":
            words = ["demo" if word == "small" else word for word in words]
            seeds = ["--tasks.seeds", "none"] if any("arithmetic" in word for word in words) else []
            return [*words, *SHORT, *seeds]
        case "exam":
            more = [] if "--tasks" in words else ["--bands", "1"]
            return [*words, *more, "--attempts", "1", "--engine.device", "cpu"]
        case "check":
            return [*words, "--tasks", "25"]
        case "diversity" | "breed":
            return [*words, "--engine.device", "cpu"]
    return words


@pytest.mark.parametrize("page", sorted(page.name for page in FOLDER.glob("*.md") if page.name != "README.md"))
def test_the_commands_of_a_recipe_run(page, tmp_path):
    shutil.copy(FOLDER / "arithmetic.py", tmp_path)
    rows = ({"kind": "sum", "proposal": f"{number} 7 30"} for number in range(10, 16))
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    commands = [words for words in recipe(page) if words[0] not in ELSEWHERE]
    assert len(commands) >= 3
    for words in commands:
        line = [sys.executable, "-m", "redqueen", *shortened(words)]
        ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
        assert ended.returncode == 0, (words, ended.stderr)
        assert ended.stdout.strip()
        if "--to" in words:
            assert (tmp_path / words[words.index("--to") + 1]).exists()


def test_every_recipe_is_listed_and_says_what_to_expect():
    listed = re.findall(r"^\| \[([\w-]+\.md)\]", (FOLDER / "README.md").read_text(), re.M)
    assert sorted([*listed, "README.md"]) == sorted(page.name for page in FOLDER.glob("*.md"))
    assert all("\n## What to expect\n" in (FOLDER / name).read_text() for name in listed)
