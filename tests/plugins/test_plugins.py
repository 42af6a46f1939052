"""Plug-ins come in by one door: the examples of docs/extending.md, from files and from a package, up to whole races."""

import asyncio
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from loop.scripted import race
from rl.making import rewarded

from redqueen.commands.main import main
from redqueen.errors import ConfigError, InputError
from redqueen.evals.benchmarks import chosen
from redqueen.evals.data import find as find_rows
from redqueen.evals.protocol import Prompts
from redqueen.evolution.replacement import plan
from redqueen.evolution.variation import find
from redqueen.plugins import BENCHMARKS, ESTIMATORS, FAMILIES, MATCHMAKERS, OPERATORS, REWARDS, Registry
from redqueen.population.board import Board
from redqueen.population.matchmaking import schedule
from redqueen.population.members import founders
from redqueen.population.ratings import Rating
from redqueen.runs.records_file import RECORDS
from redqueen.settings import Config, dump, load
from redqueen.settings.models import EvolutionConfig
from redqueen.tasks.soundness import check_family
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.training.checks import check, with_kinds
from redqueen.training.rules import read_rules
from redqueen.verifier import LocalVerifier

HERE = Path(__file__).parent
OWN = HERE.parents[1] / "examples" / "arithmetic.py"
"""The small family of the page and of a recipe."""
PAGE = (HERE.parents[1] / "docs" / "extending.md").read_text()
SMALL = {
    "engine.base": "chains", "engine.rank": 4, "engine.device": "cpu", "engine.dtype": "float32",
    "verifier.workers": 2, "population.teachers": 2, "population.students": 2,
    "tasks.form": "short", "tasks.prompts": 4, "tasks.proposals": 8, "tasks.attempts": 4,
    "tasks.proposal-tokens": 48, "tasks.attempt-tokens": 48,
    "guard.entropy-floor": 0, "rl.lr": 1e-3, "run.checkpoint-every": 1, "run.measure-every": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def verifier() -> Iterator[LocalVerifier]:
    with LocalVerifier(workers=2) as verifier:
        yield verifier


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's examples, each in the file that the page calls it by."""
    folder = tmp_path_factory.mktemp("examples")
    for source in re.findall(r'^```python\n(""".*?)^```$', PAGE, re.DOTALL | re.MULTILINE):
        [name] = re.findall(r"\w+", source)[:1]
        (folder / f"{name.lower()}.py").write_text(source)
    return folder


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has a package with a family in it, as an installer leaves it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(OWN, folder / "counting.py")
    (about := folder / "counting-1.0.dist-info").mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[redqueen.families]\narithmetic = counting:Arithmetic\n")
    return folder


# Whole races


@dataclass(frozen=True)
class Raced:
    folder: Path
    words: list[str]
    """What trained it."""
    families: str

    def count(self, query: str) -> int:
        with closing(sqlite3.connect(self.folder / RECORDS)) as db:
            return db.execute(query).fetchone()[0]


@pytest.fixture(scope="module", params=["file", "package"])
def raced(request, examples, package, tmp_path_factory) -> Iterator[Raced]:
    """A race of two steps on the family: from a file, together with all other examples of the page; and from a package,
    mixed with the family that comes with ours.

    No base here was trained on sums. `chains` writes programs, and any text with three numbers in it is a proposal:
    that is how there are tasks. Its students may well solve none of them.
    """
    (examples / "puzzles").mkdir(exist_ok=True)
    rows = [{"id": f"p{n}", "question": f"What is {n} + 2?", "answer": str(n + 2)} for n in range(3)]
    (examples / "puzzles" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    own = {
        "tasks.families": f"{OWN}:Arithmetic",
        "match.maker": f"{examples}/curious.py:CURIOUS",
        "rl.estimator": f"{examples}/best.py:BEST",
        "rl.reward": f"{examples}/halfway.py:halfway",
        "evolution.every": 2,
        "evolution.fitness": f"{examples}/steady.py:mean",
        "evolution.selection": f"{examples}/steady.py:BEST",
        "evolution.operators": f"{examples}/sharpen.py:sharpen power=1.2",
        "evals.every": 2,
        "evals.suite": f"{examples}/puzzles.py:Puzzles",
        "evals.data": examples,
        "evals.prompts": "raw",
        "evals.max-tokens": 4,
    }
    mixed = {"tasks.families": "code,arithmetic", "tasks.kinds": "code_o,sum", "tasks.seeds": "chains"}
    changes = SMALL | {"file": own, "package": mixed}[request.param]
    folder = tmp_path_factory.mktemp(request.param) / "run"
    words = ["train", "--run", str(folder), *(f"--{name}={value}" for name, value in changes.items())]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package)
        assert main([*words, "--run.steps", "2", "--quiet"]) == 0
        yield Raced(folder, words, str(changes["tasks.families"]))


def test_a_family_of_ones_own_is_raced_and_recorded(raced):
    settings = load(str(raced.folder / "config.toml"))
    assert settings.tasks.kinds == (("code_o", "sum") if raced.families == "code,arithmetic" else ("sum",))
    proposals = raced.count("SELECT COUNT(*) FROM tasks WHERE kind = 'sum'")
    assert proposals > 0, "a teacher wrote three numbers"
    sums = "FROM attempts JOIN tasks USING (step, place) WHERE kind = 'sum'"
    assert raced.count(f"SELECT COUNT(*) {sums}") > 0
    assert raced.count(f"SELECT COUNT(*) {sums} AND grade IN ('correct', 'wrong', 'malformed')") == raced.count(
        f"SELECT COUNT(*) {sums}"
    )
    assert raced.count("SELECT COUNT(*) FROM metrics WHERE name = 'coverage' AND kind = '' AND value > 0") == 2
    noted = raced.count(
        "SELECT COUNT(*) FROM facts WHERE name = 'tasks.families arithmetic' AND value = 'counting 1.0'"
    )
    assert noted == (raced.families == "code,arithmetic")


def test_its_tasks_can_be_browsed(raced, redqueen):
    status, out, _ = redqueen("tasks", raced.folder, "--kind", "sum", "--json")
    [task, *_] = json.loads(out)["tasks"]
    assert (status, task["record"]["kind"], len(task["record"]["numbers"])) == (0, "sum", 3)
    assert " sum " in redqueen("tasks", raced.folder, "--kind", "sum")[1]
    shown = redqueen("tasks", raced.folder, "--show", f"{task['step']}:{task['place']}")[1]
    assert f"\nnumbers:\n  {task['record']['numbers'][0]}\n" in shown and "cyclomatic" not in shown


def test_it_has_a_page_and_a_report_and_members_to_export(raced, redqueen, tmp_path):
    assert "solve rate sum" in (raced.folder / "report.md").read_text()
    assert redqueen("report", raced.folder, "-o", tmp_path / "run.html")[0] == 0
    assert '"sum"' in (tmp_path / "run.html").read_text()
    assert redqueen("export", raced.folder, "--member", "student", "--to", tmp_path / "student")[0] == 0
    assert "sum." in (tmp_path / "student" / "README.md").read_text()


def test_its_members_sit_an_exam_in_it(raced, redqueen, tmp_path):
    exam = tmp_path / "sums.jsonl"
    exam.write_text("".join(json.dumps({"kind": "sum", "proposal": f"{n} 2 3"}) + "\n" for n in range(4)))
    how = ("--tasks", exam, "--attempts", 1, "--json", "--engine.device", "cpu")
    status, out, err = redqueen("exam", raced.folder, *how)
    assert status == 0, err
    assert json.loads(out)["exam"] == str(exam)


def test_its_race_goes_on_where_it_stopped(raced, redqueen):
    """After the others of this file: it makes the run longer."""
    assert redqueen(*raced.words, "--run.steps", 3, "--quiet")[0] == 0
    assert raced.count("SELECT COUNT(DISTINCT step) FROM metrics") == 3


def test_the_page_shows_the_family_that_is_raced_here_and_it_has_at_most_sixty_lines():
    source = OWN.read_text()
    assert f"```python\n{source}```" in PAGE
    assert len(list(filter(str.strip, source.splitlines()))) <= 60


def test_every_snippet_of_the_page_is_a_file_that_is_tried_here_or_a_part_of_one(examples, verifier, tmp_path):
    snippets = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    files = [re.findall(r"\w+", snippet)[0].lower() for snippet in snippets if snippet.startswith('"""')]
    assert files == ["arithmetic", "sql", "code_e", "sharpen", "curious", "best", "halfway", "steady", "puzzles"]
    [part] = [snippet for snippet in snippets if not snippet.startswith('"""')]
    (tmp_path / "arithmetic.py").write_text((examples / "arithmetic.py").read_text() + "\n" + part)
    family = FAMILIES.get(f"{tmp_path}/arithmetic.py:Arithmetic")
    shown, asked = (family.kinds()["sum"].task_type("sum", numbers) for numbers in ((1, 5, 0), (2, 5, 0)))
    assert asyncio.run(family.shortcuts([shown, asked], verifier)) == ["shown", None]


# One of each sort, through the settings


def test_a_family_brings_all_its_kinds_unless_some_are_named(examples):
    code_e = f"{examples}/code_e.py:Exceptions"
    settings = with_kinds(load(None, {"tasks.families": f"code,{code_e}"}))
    assert settings.tasks.kinds == ("code_o", "code_i", "code_f", "code_e")
    named = {"tasks.families": f"code,{code_e}", "tasks.kinds": "code_e"}
    check(with_kinds(load(None, named)))
    assert with_kinds(load(None, named)).tasks.kinds == ("code_e",)
    assert with_kinds(load()) == load()
    both = {"tasks.families": f"{code_e},{OWN}:Arithmetic"}
    families = read_rules(with_kinds(load(None, both))).families
    assert list(families.kinds) == ["code_e", "sum"]
    assert {type(seed).__name__ for seed in families.seeds} == {"CodeTask", "Sum"}


def test_the_sql_family_of_the_page_is_short_and_sound(examples, verifier):
    file = examples / "sql.py"
    assert file.read_text().count("\n") <= 120
    found = asyncio.run(check_family(f"{file}:Sql", verifier, 40))
    assert [(row.check, row.finding.what) for row in found.failures] == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT n FROM t", Reason.NOT_PLAIN),
        ("SELECT random() FROM t LIMIT 1", Reason.RAISES),
        ("SELECT datetime(), 10", Reason.RAISES),
        ("SELECT current_timestamp, 10", Reason.RAISES),
        ("SELECT load_extension('x'), n FROM t ORDER BY n", Reason.RAISES),
        ("SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j, t k, t l, t m", Reason.RAISES),
        ("SELECT name, NULL, n FROM t ORDER BY n", Reason.NOT_PLAIN),
        ("DROP TABLE t", Reason.SYNTAX),
        ("SELECT sum(n) FROM t -- 17", Reason.SYNTAX),
        ("SELECT sum(n), zzz FROM t", Reason.RAISES),
    ],
)
def test_the_sql_family_of_the_page_refuses_what_is_not_settled(examples, verifier, query, reason):
    [kind] = FAMILIES.get(f"{examples}/sql.py:Sql").kinds().values()
    script = "CREATE TABLE t (name TEXT, n INT); INSERT INTO t VALUES ('a', 15), ('b', 26), ('c', 37)"
    [sound, bad] = [
        kind.parse_proposal(f"```sql\n{script}; {each}\n```", {}) for each in ("SELECT sum(n) FROM t", query)
    ]
    task, refused = asyncio.run(kind.validate([sound, bad], verifier))
    assert isinstance(task, kind.task_type) and isinstance(refused, Rejection)
    assert refused.reason is reason


def test_an_estimator_from_a_file(examples):
    of = race({"rl": {"estimator": f"{examples}/best.py:BEST"}})
    rows = [rewarded("student", "sum", place // 3, reward) for place, reward in enumerate([1.0, -0.5, 1.0, 1, 1, 1])]
    assert of.estimator.estimate(rows) == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_a_reward_shape_from_a_file(examples):
    of = race({"rl": {"reward": f"{examples}/halfway.py:halfway"}})
    assert [of.reward(solved, 4) for solved in range(5)] == [0, 0.5, 1, 0.5, 0]


def test_a_matchmaker_from_a_file(examples):
    of = race({"match": {"maker": f"{examples}/curious.py:CURIOUS"}})
    population = founders(1, 3).rated({"s0": Rating(25, 2), "s1": Rating(25, 9), "s2": Rating(25, 3)})
    matches = schedule(population, of.maker, Board(), Random(0))
    assert [match.students for match in matches] == [("s1",), ("s2",), ("s0",)]


def test_an_operator_from_a_file(examples):
    text = f"{examples}/sharpen.py:sharpen power=2"
    [operator] = read_rules(load(None, {"evolution.operators": text})).operators.values()
    assert (operator.name, operator.values) == ("sharpen power=2", {"power": 2})


def test_a_fitness_and_a_selection_from_a_file(examples):
    changes = {"every": 1, "fitness": f"{examples}/steady.py:mean", "selection": f"{examples}/steady.py:BEST"}
    population = founders(1, 4).rated({f"s{n}": Rating(20.0 + n, 1.0) for n in range(4)})
    [event] = plan(population, 2, EvolutionConfig.model_validate(changes), Board(), [find("dare")], 0)
    assert (event.dead, event.parents) == ("s0", ("s3", "s2"))


def test_a_benchmark_from_a_file(examples, tmp_path, monkeypatch):
    monkeypatch.delenv("REDQUEEN_BENCH", raising=False)
    (tmp_path / "puzzles").mkdir()
    (tmp_path / "puzzles" / "test.jsonl").write_text('{"id": "one", "question": "What is 2 + 2?", "answer": "4"}\n')
    suite = {"evals.every": "1", "evals.suite": f"{examples}/puzzles.py:Puzzles", "evals.data": str(tmp_path)}
    [loaded] = read_rules(load(None, suite)).benchmarks
    assert (loaded.benchmark.title, [item.id for item in loaded.items]) == ("Puzzles", ["one"])
    with pytest.raises(InputError, match="Puzzles is on no hub; name the folder that it is in"):
        find_rows(loaded.benchmark)


def test_the_path_of_a_benchmark_in_a_file_of_settings_may_have_a_comma(examples, tmp_path):
    (folder := tmp_path / "puzzles, mine").mkdir()
    shutil.copy(examples / "puzzles.py", folder)
    settings = Config.model_validate({"evals": {"suite": [f"{folder}/puzzles.py:Puzzles"]}})
    (tmp_path / "settings.toml").write_text(dump(settings))
    [benchmark] = chosen(load(str(tmp_path / "settings.toml")).evals.suite, Prompts.CHAT)
    assert benchmark.title == "Puzzles"


def test_a_run_notes_the_files_of_its_plug_ins(examples):
    own = {"rl.reward": f"{examples}/halfway.py:halfway", "evolution.operators": f"{examples}/sharpen.py:sharpen"}
    files = read_rules(load(None, own)).versions
    assert {name.partition(" ")[0] for name in files} == set(own)


# What cannot be used


@pytest.mark.parametrize(("operators", "told"), [("copy_parent", "copies alone"), ("dare,fisher", '"fisher".*moments')])
def test_without_learning_there_must_be_operators_that_make_something_new_of_weights_alone(operators, told):
    with pytest.raises(ConfigError, match=told):
        read_rules(load(None, {"rl.update": "none", "evolution.operators": operators}))


@pytest.mark.parametrize(
    ("registry", "source", "told"),
    [
        (FAMILIES, "X = 1", "defines no Family 'X'; it has none"),
        (ESTIMATORS, "from redqueen.rl.advantages.grpo import ESTIMATOR as Y", "defines no Estimator 'X'; it has Y"),
        (REWARDS, "def other(solved, attempts): ...", "defines no reward shape 'X'; it has other"),
        (MATCHMAKERS, "import nowhere", "fails when it is imported: ModuleNotFoundError: No module named 'nowhere'"),
        (OPERATORS, "X = (", "fails when it is imported: SyntaxError"),
        (REWARDS, "raise SystemExit(0)", "fails when it is imported: SystemExit: 0"),
        (
            FAMILIES,
            "from arithmetic import Arithmetic\nclass X(Arithmetic):\n    __init__ = exit",
            "of its class",
        ),
        (BENCHMARKS, None, "there is no file"),
    ],
    ids=lambda value: value.noun if isinstance(value, Registry) else "",
)
def test_a_file_without_the_plug_in_is_told_in_one_line(tmp_path, registry, source, told):
    if source is not None:
        (tmp_path / "mine.py").write_text(source)
    registry.check(f"{tmp_path}/mine.py:X")
    with pytest.raises(ConfigError) as caught:
        registry.get(f"{tmp_path}/mine.py:X")
    assert told in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("Empty = type('Empty', (Family,), {'kinds': lambda self, form: {}})()", "lacks kinds, or a seed"),
        ("Empty = type('Empty', (CodeFamily,), {'seeds': ()})()", "lacks kinds, or a seed"),
        ("Empty = CodeFamily()", "both have the kind code_o; leave one of them out"),
        ("class Empty(CodeFamily):\n    def kinds(self): ...", "has no sound kinds and seeds: TypeError"),
        (
            "class Empty(CodeFamily):\n    def kinds(self, form): return {'a': CodeO(form)}",
            "kind code_o under the name a",
        ),
    ],
)
def test_a_family_that_is_not_whole_or_takes_anothers_kinds_is_refused(tmp_path, source, told):
    head = "from redqueen.tasks.code import CodeFamily, CodeO\nfrom redqueen.tasks.protocol import Family\n"
    (tmp_path / "empty.py").write_text(head + source)
    with pytest.raises(ConfigError, match=told):
        check(load(None, {"tasks.families": f"code,{tmp_path}/empty.py:Empty"}))


@pytest.mark.parametrize("preset", ["demo", "small", "paper"])
def test_what_a_preset_names_of_a_family_that_is_not_raced_is_told_and_left_out(preset):
    rules = read_rules(with_kinds(load(preset, {"tasks.families": f"{OWN}:Arithmetic"})))
    assert rules.seeds is None
    held_out, *seeds = rules.notes
    assert re.fullmatch("guard.held_out: none of tasks.families has the exam (pico|functions)", held_out)
    assert len(seeds) == (preset == "demo")


def test_a_family_that_is_named_twice_is_told():
    with pytest.raises(ConfigError, match=r"tasks\.families names code twice"):
        check(load(None, {"tasks.families": "code,code"}))


def test_a_fork_without_the_family_of_its_sources_tasks_is_refused(raced, redqueen, tmp_path):
    changes = SMALL | {"tasks.families": "code", "tasks.kinds": "code_o", "tasks.seeds": "chains"}
    words = [f"--{name}={value}" for name, value in changes.items()]
    status, _, err = redqueen("train", "--run", tmp_path / "fork", "--fork", f"{raced.folder}:2", *words)
    assert (status, err.count("\n")) == (2, 1)
    assert "has tasks of the kind sum, and none of tasks.families has it" in err
    assert not (tmp_path / "fork").exists()


def test_what_fails_inside_a_plug_in_is_told_with_its_file_and_line(examples, tmp_path, redqueen):
    (examples / "late.py").write_text((examples / "curious.py").read_text().replace("most = max(", "most = nothing("))
    changes = SMALL | {"match.maker": f"{examples}/late.py:CURIOUS", "match.exclude": "t0:s0"}
    status, _, err = redqueen(
        "train", "--run", tmp_path / "run", *(f"--{name}={value}" for name, value in changes.items())
    )
    assert status == 2
    last = err.splitlines()[-1]
    assert re.fullmatch(rf"redqueen: a plug-in failed: {examples}/late.py, line \d+; mend it there", last), err
    assert "NameError: name 'nothing' is not defined" in err, "with the way there"


def test_what_a_package_provides_is_listed_and_checked_without_importing_it(package, tmp_path):
    package = shutil.copytree(package, tmp_path / "site")
    (package / "broken.py").write_text("raise RuntimeError('imported')")
    (package / "broken-1.0.dist-info").mkdir()
    (package / "broken-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    provided = "[redqueen.estimators]\nbroken = broken:X\ngrpo = broken:X\n[redqueen.families]\narithmetic = broken:X\n"
    (package / "broken-1.0.dist-info" / "entry_points.txt").write_text(provided)
    script = (
        "import sys\n"
        "from redqueen.commands.main import main\n"
        "from redqueen.plugins import ESTIMATORS, FAMILIES\n"
        "assert main(['plugins']) == 0\n"
        "FAMILIES.check('arithmetic'), ESTIMATORS.check('broken')\n"
        "assert not {'torch', 'counting', 'broken'} & sys.modules.keys()\n"
        "assert main(['train', '--plan', '--rl.estimator', 'broken']) == 2\n"
        "assert main(['train', '--plan', '--tasks.families', 'arithmetic']) == 2\n"
        "assert 'torch' not in sys.modules\n"
    )
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "arithmetic        of the package broken, counting" in done.stdout
    assert "(another one, of the package broken, cannot be reached by this name)" in done.stdout
    broken, twice = done.stderr.splitlines()
    assert "the estimator broken of broken cannot be imported: RuntimeError: imported; mend or remove" in broken
    assert "the task family arithmetic of broken and counting: two packages provide one name" in twice
