"""The README's commands run as they stand there, one after the other, on a race of the demo that is cut short."""

import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import redqueen

README = (Path(redqueen.__file__).parents[2] / "README.md").read_text()
SHORT = ["--run.steps", "1"]
"""For races, which are only longer otherwise."""
FEW = ["--attempts", "1"]
"""For the exam, likewise."""


def commands(title: str) -> list[list[str]]:
    """Those of the first block under a title."""
    [block] = re.findall(rf"^## {title}\n+```\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    return [shlex.split(line, comments=True) for line in block.splitlines()]


def run(words: list[str], folder: Path) -> str:
    ended = subprocess.run([sys.executable, "-m", "redqueen", *words], cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, (words, ended.stderr)
    return ended.stdout


def looked_at(words: list[str], folder: Path) -> str:
    """What the page serves that a command has until it is stopped."""
    command = [sys.executable, "-m", "redqueen", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout is not None
            [address] = re.findall(r"http://\S+", next(line for line in watching.stdout if "http://" in line))
            with urllib.request.urlopen(address, timeout=60) as page:
                return page.read().decode()
        finally:
            watching.send_signal(signal.SIGINT)
            assert watching.wait(60) in (0, 130)


def test_the_commands_that_are_used_most(tmp_path: Path):
    program, *_ = zip(*commands("The commands you will use most"), strict=False)
    assert set(program) == {".venv/bin/redqueen"}
    done = []
    for _, *words in commands("The commands you will use most"):
        match words[0]:
            case "train":
                assert "step 1/1" in run([*words, *SHORT], tmp_path)
                for name in ("a", "b"):
                    run([*words, *SHORT, "--run", f"runs/{name}", "--run.seed", str(ord(name))], tmp_path)
            case "watch":
                assert "<html" in looked_at(words, tmp_path)
            case "exam":
                assert "less the base" in run([*words, *FEW], tmp_path)
            case "export":
                assert "is the best student by the exam" in run(words, tmp_path)
                assert (tmp_path / words[-1] / "adapter_model.safetensors").is_file()
            case "compare":
                shell = [word for part in words[1:] for word in (sorted(map(str, tmp_path.glob(part))) or [part])]
                # They differ in their seeds alone: one arm.
                assert re.search(r"^races +2 \(seeds 97, 98\)$", run(["compare", *shell], tmp_path), re.M)
            case _:
                assert run(words, tmp_path)
        done.append(words[0])
    assert done == ["train", "watch", "tasks", "exam", "export", "compare"]
