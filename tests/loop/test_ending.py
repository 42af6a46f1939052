"""How a race ends on the terminal: the summary, the report in the run's folder, and commands that can be given next."""

import io
import re
import shlex
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from loop.making import settings
from redqueen.commands import arguments
from redqueen.commands.index import COMMANDS, find_command
from redqueen.commands.main import main
from redqueen.commands.train import advice, program
from redqueen.runs import REPORT
from redqueen.settings import Config, dump
from redqueen.training import arms
from redqueen.training.train import Reached

TITLES = ("Members, by their last quarter (step 2)", "First quarter -> last quarter")


@dataclass(frozen=True)
class Ended:
    """A race that `redqueen train` ran to its end."""

    file: Path
    folder: Path
    said: str

    @property
    def next(self) -> list[list[str]]:
        """The commands that it names, without the program."""
        named = [line.strip() for line in self.said.splitlines() if line.startswith(f"  {program()} ")]
        return [shlex.split(line.removeprefix(program())) for line in named]


@pytest.fixture(scope="module")
def ended(place: Path) -> Ended:
    """Two steps, with a child of each role in the population of the last one; its folder's name has a space."""
    file, folder = place / "ending.toml", place / "a race" / "run"
    file.write_text(dump(settings(changes={"run": {"steps": 2}, "evolution": {"every": 1}})))
    with redirect_stdout(io.StringIO()) as said:
        assert main(["train", str(file), "--run", str(folder)]) == 0
    return Ended(file, folder, said.getvalue())


def test_a_race_ends_with_its_tables_its_totals_and_its_report(ended: Ended):
    for title in TITLES:
        assert title in ended.said
    assert re.search(r"^t[01](\.\d)? +teacher +\d+\.\d ±\d\.\d +", ended.said, re.M)
    assert re.search(r"^[ts]\d\.\d .*  \w+ of .*; generation [12], step [12]$", ended.said, re.M), (
        "no child is shown as one"
    )
    for measure in ("solve rate code_o", "valid proposals", "depth", "lines", "structural cells, new"):
        assert re.search(rf"^{measure} +[\d.]+ +[\d.]+$", ended.said, re.M), measure
    assert re.search(
        r"^2 steps, [2-9] replacements in 1 event, [\d,]+ tasks, .* verifier runs, .* operations; \d+ s \(",
        ended.said,
        re.M,
    )
    assert str(ended.folder / REPORT) in ended.said
    report = (ended.folder / REPORT).read_text()
    assert "| isolation |" in report and 'base = "chains"' in report and "## Compute" in report


def test_the_commands_can_be_given_as_they_are(ended: Ended, monkeypatch, tmp_path: Path, capsys):
    # Before the folder changes: the program's own name is told as it is from here.
    tasks, exam, train, watch = ended.next
    assert [words[0] for words in ended.next] == ["tasks", "exam", "train", "watch"]
    monkeypatch.chdir(tmp_path)
    assert main(tasks) == 0
    assert "solved" in capsys.readouterr().out
    name, rest = find_command(exam)
    command = arguments.read(COMMANDS[name].load(), name, rest)
    assert name == "exam" and command.what == (str(ended.folder),)
    name, rest = find_command(train)
    command = arguments.read(COMMANDS[name].load(), name, rest)
    assert main(["report", *watch[1:], "-o", "report.html"]) == 0, "what can be watched can be reported"
    baseline = arms.apply(command.settings, "single-wide")
    assert baseline.population.single and "--arm single-wide" in " ".join(train)


def test_a_finished_run_ends_the_same_way_again_and_quietly_says_nothing(ended: Ended, capsys):
    assert main(["train", str(ended.file), "--run", str(ended.folder)]) == 0
    again = capsys.readouterr().out
    assert again.startswith("nothing is left to do") and all(title in again for title in TITLES)
    assert again.splitlines()[1:] == ended.said.splitlines()[-len(again.splitlines()) + 1 :]
    (ended.folder / REPORT).unlink()
    assert main(["train", str(ended.file), "--run", str(ended.folder), "--quiet"]) == 0
    assert capsys.readouterr().out == "" and (ended.folder / REPORT).is_file()


def named(folder: Path, changes: dict[str, dict[str, object]] | None = None) -> list[list[str]]:
    of: Config = settings(changes=changes)
    return [words for words, _ in advice(folder, Reached(1, None, "2"), of)]


def test_a_baseline_that_is_done_is_compared_and_a_single_adapter_gets_another_seed(tmp_path: Path):
    run, other = tmp_path / "run", tmp_path / "run-single-wide"
    assert named(run)[2] == ["train", str(run / "config.toml"), "--arm", "single-wide", "--run", str(other)]
    other.mkdir()
    (other / REPORT).touch()
    assert named(run)[2] == ["compare", str(run), str(other)]
    assert named(run / ".." / "run" / "..")[2][-1] == f"{tmp_path}-single-wide", "a folder without a name of its own"
    alone = {"population": {"teachers": 1, "students": 1, "single": True}}
    seeded = ["--run.seed", "1", "--run", str(tmp_path / "run-seed1")]
    assert named(run, alone)[2] == ["train", str(run / "config.toml"), *seeded]
    assert named(run, {"rl": {"frozen": "teachers"}})[2][2] == "--run.seed"


def test_the_program_is_called_by_its_name_only_where_that_is_found(monkeypatch, tmp_path: Path):
    own = tmp_path / "bin" / "redqueen"
    own.parent.mkdir()
    monkeypatch.setattr("sys.executable", str(own.with_name("python")))
    monkeypatch.setenv("PATH", "")
    assert program() == f"{own.with_name('python')} -m redqueen"
    own.touch(0o755)
    assert program() == str(own)
    monkeypatch.chdir(tmp_path)
    assert program() == "bin/redqueen"
    monkeypatch.setenv("PATH", str(own.parent))
    assert program() == "redqueen"
