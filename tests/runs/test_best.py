"""Who is exported as the best student: by what was measured of all of them, and by ratings where nothing was."""

from pathlib import Path

import pytest
from engine import tiny

from redqueen.analysis.best import best
from redqueen.engine import peft
from redqueen.engine.known import EMBEDDED
from redqueen.errors import InputError
from redqueen.population.members import Member, Population, Role
from redqueen.population.ratings import Rating
from redqueen.runs import benchmarks, checkpoints, exams
from redqueen.runs.benchmarks import Result
from redqueen.runs.exams import ExamResult

STEP = 20
RATED = {"s0": 20.0, "s1.2": 30.0, "s2": 10.0}
HOW = {"form": "short", "attempts": 8, "k": 4, "temperature": 0.8}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    teacher = Member(id="t0", role=Role.TEACHER, seat="t0")
    students = [
        Member(id=id, role=Role.STUDENT, seat=id.partition(".")[0], rating=Rating(mu, 1.0)) for id, mu in RATED.items()
    ]
    population = Population((teacher, *students))
    (tmp_path / "checkpoints").mkdir()
    checkpoints.save(
        tmp_path / "checkpoints", STEP, {"population": population.as_record()}, {}, base_name="tiny", modules=[]
    )
    return tmp_path


def chosen(run: Path, role: Role = Role.STUDENT) -> tuple[str, str]:
    return best(run, checkpoints.population(run / "checkpoints" / checkpoints.name(STEP)), STEP, role)


def sat(run: Path, exam: str, step: int = STEP, **sampled: float) -> None:
    """An exam that these sat; names have no points."""
    about = {"exam": exam, "sha256": "1", "how": HOW, "step": step, "tasks": 40}
    names = {"s1_2": "s1.2"}
    exams.keep(
        run, [ExamResult(**about, subject=names.get(id, id), figures={"sampled": x}) for id, x in sampled.items()]
    )


def test_before_anything_is_measured_it_is_the_best_rated(run: Path):
    assert chosen(run) == (
        "s1.2",
        f"s1.2 is the best student by its rating; after `redqueen exam {run}` it is the best of the 3 at that exam",
    )
    assert chosen(run, Role.TEACHER) == ("t0", "t0 is the only teacher")


def test_what_an_exam_found_of_all_of_them_comes_before_ratings(run: Path):
    sat(run, "own", s0=0.25, s1_2=0.2, s2=0.25, base=0.9, student=0.95)
    assert chosen(run) == ("s0", "s0 is the best student by the exam own (40 tasks), sampled: 25.0 %"), "better rated"
    sat(run, "other", s2=0.9)
    assert chosen(run)[0] == "s0", "only one of them sat that"
    sat(run, "own", STEP - 1, s0=0.1, s1_2=0.9, s2=0.1)
    assert chosen(run)[0] == "s0", "those were others"
    sat(run, "newer", s0=0.1, s1_2=0.1, s2=0.3)
    assert chosen(run)[0] == "s2"


def test_results_that_cannot_be_read_cost_no_more_than_what_they_would_tell(run: Path):
    sat(run, "own", s0=0.1, s1_2=0.1, s2=0.3)
    (run / "benchmarks.json").write_text("[1]")
    assert chosen(run)[0] == "s2"
    (run / "exams.json").write_text("[1]")
    id, why = chosen(run)
    assert id == "s1.2" and why.startswith("s1.2 is the best student by its rating, since ")


def test_benchmarks_decide_where_there_is_no_exam(run: Path):
    def asked(member: str, benchmark: str, value: float) -> Result:
        return Result(
            benchmark=benchmark, title=benchmark, measure="greedy", prompts="plain", role=None, step=STEP, tasks=9,
            sha256="1", value=value, error=None, tokens=1, member=member,
        )  # fmt: skip

    found = {"s0": (0.2, 0.6), "s1.2": (0.5, 0.2), "s2": (0.4, 0.3)}
    benchmarks.keep(run, [asked(id, name, x) for id, both in found.items() for name, x in zip("ab", both, strict=True)])
    assert chosen(run) == ("s0", "s0 is the best student by the mean of 2 benchmark figures: 40.0 %")
    sat(run, "own", s0=0.1, s1_2=0.1, s2=0.3)
    assert chosen(run)[0] == "s2"


def test_a_base_that_is_known_by_name_is_the_same_one_by_its_folder(tmp_path: Path):
    with tiny.engine("llama", members=1) as opened:
        modules, state = [name for name, _ in opened.base.model.named_modules()], opened.read("m0")
    named = {"name": "pico", "folder": str(EMBEDDED["pico"].folder), "other": str(tmp_path)}
    for folder, base in named.items():
        peft.save(state, tmp_path / folder, base_name=base, modules=modules)
    peft.same_base([tmp_path / "name", tmp_path / "folder"])
    assert peft.base_of(tmp_path / "folder") == "pico"
    with pytest.raises(InputError, match=r"was made for the base pico, .*other for"):
        peft.same_base([tmp_path / "name", tmp_path / "other"])
