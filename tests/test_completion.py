"""Tab in real shells: what `redqueen completion` prints is loaded, and completes a line."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from redqueen.commands.completion import candidates
from redqueen.commands.index import COMMANDS
from redqueen.plugins import OPERATORS
from redqueen.settings import keys, presets
from redqueen.training.arms import ARMS

PROGRAM = Path(sys.executable).with_name("redqueen")
PRESSED = {
    "bash": """\
COMP_WORDS=({program} {line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
complete -p redqueen >&2; _redqueen; printf '%s\\n' "${{COMPREPLY[@]}}"
""",
    "zsh": """\
compadd() {{ shift 2; print -l -- "$@" }}; _files() {{ }}
words=({program} {line}); CURRENT=${{#words}}; _redqueen
""",
    "fish": "complete -C '{program} {line}'",
}
"""Each shell's own way to press Tab at the end of a line. That of zsh works on a terminal alone, so there the function
is called as its completion would call it."""


@pytest.mark.parametrize("shell", PRESSED)
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("train de", ["default", "demo"]),
        ("train demo --run.st", ["--run.steps"]),
        ("bench st", ["step"]),
        ("train demo --arm sin", ["single", "single-long", "single-wide"]),
    ],
)
def test_a_real_shell_completes_a_line(shell, line, completed, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = subprocess.run([PROGRAM, "completion", shell], capture_output=True, text=True, check=True).stdout
    pressed = script + PRESSED[shell].format(program=PROGRAM, line=line)
    plain = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    env = {"HOME": str(tmp_path), "PATH": f"{PROGRAM.parent}:/usr/bin:/bin"}
    ended = subprocess.run([shell, *plain, "-c", pressed], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert sorted(ended.stdout.split()) == completed, ended.stderr


def options_of(line: str) -> set[str]:
    return {word for word in candidates([*line.split(), "--"]) if "." not in word}


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        (["tr"], ["train"]),
        (["be"], ["bench"]),
        (["bench", ""], ["verifier", "sample", "update", "members", "operators", "step"]),
        (["train", "--track.to", "w"], ["wandb"]),
        (["train", "--verifier.minimum", ""], ["full", "seccomp"]),
        (["train", "--population.single", "t"], ["true"]),
        (["train", "--arm=1t1s-"], ["--arm=1t1s-wide"]),
        (["train", "--arm", "=", "1t1s-"], ["1t1s-wide"]),
        (["train", "--evolution.operators", "dare,svd"], ["dare,svd_subspace"]),
        (["train", "--match.maker", "r"], ["round_robin"]),
        (["eval", "runs/a", "--suite", "ma"], ["math", "math500"]),
        (["exam", "--role", "stu"], ["students"]),
        (["exam", "pi"], ["pico"]),
        (["bench", "update", "--shape", "0"], ["0.5b"]),
        (["completion", "f"], ["fish"]),
        (["nonsense", ""], []),
        (["train", "--run", ""], []),
        (["doctor", "--json", "--js"], ["--json"]),
    ],
)
def test_what_can_stand_at_the_end_of_a_line(line, completed):
    assert candidates(line) == completed


def test_everything_that_has_a_name_is_offered():
    assert set(candidates([""])) == {name.partition(" ")[0] for name in COMMANDS}
    assert candidates(["train", ""]) == presets()
    assert set(candidates(["train", "--"])) >= {f"--{key.replace('_', '-')}" for key in keys()}
    assert options_of("compare") == {"--help", "--json"}, "a command without settings offers none"
    assert set(candidates(["breed", ""])) == set(OPERATORS.names())
    assert set(candidates(["train", "--arm", ""])) == {"population", *ARMS}


def test_the_members_of_a_run_are_offered(tmp_path, monkeypatch):
    for step, members in ((10, ("s0", "t0")), (20, ("s0", "s1.1", "t9;x", "$(x)", "t0 *"))):
        for member in members:
            (tmp_path / "demo" / "checkpoints" / f"step-{step:06}" / "members" / member).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert candidates(["exam", "demo/"]) == ["demo/student", "demo/teacher", "demo/soup", "demo/s0", "demo/s1.1"]
    assert candidates(["exam", "demo/s1"]) == ["demo/s1.1"]


def test_an_unknown_shell_is_told_in_one_line(redqueen):
    status, out, err = redqueen("completion", "bsh")
    assert (status, out) == (2, "")
    assert err == "redqueen: there is no script for bsh; did you mean bash?\n"
