"""What an arm has over another: seeds in pairs, verdicts, and how many seeds it would take."""

from pathlib import Path
from typing import Any

import pytest

from redqueen.analysis.claims import accuracies, claims, seeds_to_tell, smallest_told, table
from redqueen.runs import benchmarks, exams

ASKED = "GSM8K (10 tasks), chat, greedy"


def evaluated(folder: Path, value: float, role: str | None = "student", **about: Any) -> Path:
    """A run of which nothing is known but what `eval` found."""
    folder.mkdir(exist_ok=True)
    known: dict[str, Any] = {"benchmark": "gsm8k", "title": "GSM8K", "measure": "greedy", "prompts": "chat"}
    known |= {"step": 4, "tasks": 10, "sha256": "", "error": None, "tokens": 1, "role": role, "value": value, **about}
    benchmarks.keep(folder, [benchmarks.Result(**known)])
    return folder


def runs(place: Path, **arms: tuple[str | None, list[float]]) -> dict[str, dict[int, Path]]:
    return {
        arm: {seed: evaluated(place / f"{arm}-{seed}", value, role) for seed, value in enumerate(values)}
        for arm, (role, values) in arms.items()
    }


def test_students_are_compared_with_a_single_agent_seed_by_seed(tmp_path):
    arms = runs(tmp_path, population=("student", [0.5, 0.6, 0.7]), single=(None, [0.4, 0.49, 0.61]))
    [claim] = claims(arms)
    assert (claim.measure, claim.arm, claim.against) == (ASKED, "single", "population")
    assert claim.difference.values == pytest.approx((-0.1, -0.11, -0.09))
    assert (claim.verdict, claim.text) == ("behind", "behind")
    assert table([claim]) == [(ASKED, "single", "-10.0 ±2.5", "behind")]
    [other] = claims(dict(reversed(arms.items())))
    assert other.verdict == "ahead" and other.difference.mean == pytest.approx(0.1)


def test_what_seeds_do_not_tell_is_said_with_how_many_would(tmp_path):
    [claim] = claims(runs(tmp_path, a=("student", [0.5, 0.5, 0.5]), b=("student", [0.52, 0.49, 0.53])))
    assert claim.verdict == "not told"
    assert claim.difference.mean == pytest.approx(0.04 / 3)
    assert claim.seeds_to_tell == 22
    assert claim.text == "not told: 22 seeds would"
    assert claim.smallest == pytest.approx((4.3027 + 1.0607) * 0.020817 / 3**0.5, rel=1e-3)
    assert claim.as_json()["seeds_to_tell"] == 22
    same = claims(runs(tmp_path, a=("student", [0.5, 0.5]), b=("student", [0.51, 0.49])))[0]
    assert same.difference.mean == pytest.approx(0) and same.seeds_to_tell is None


def test_one_seed_tells_nothing_and_a_seed_that_one_arm_lacks_is_left_out(tmp_path):
    arms = runs(tmp_path, a=("student", [0.5]), b=("student", [0.9, 0.8]))
    [claim] = claims(arms)
    assert (claim.verdict, claim.seeds_to_tell, claim.smallest) == ("one seed", None, None)
    assert claim.difference.values == pytest.approx((0.4,))
    assert claims({"a": arms["a"]}) == claims({}) == []


def test_teachers_and_single_members_do_not_count_and_exams_do(tmp_path):
    run = evaluated(tmp_path / "run", 0.5)
    evaluated(run, 0.9, "teacher")
    evaluated(run, 0.8, member="s0")
    how = {"bands": [], "form": "long", "attempts": 8, "k": 8, "temperature": 0.8, "max_tokens": 9}
    for step, subject, right in ((2, "student", 0.1), (4, "student", 0.3), (4, "base", 0.2), (4, "s0", 0.7)):
        figures = {"sampled": right, "greedy": right, "pass_at_k": right}
        exam: dict[str, Any] = {"exam": "functions", "sha256": "", "how": how, "step": step, "tasks": 10}
        exams.keep(run, [exams.ExamResult(**exam, subject=subject, figures=figures)])
    found = {each.label: (each.step, each.value) for each in accuracies(run).values()}
    how_asked = "exam functions (10 tasks), long prompts, 8 attempts at temperature 0.8"
    asked = [f"{how_asked}, {measure}" for measure in ("sampled", "greedy", "pass@8")]
    assert found == {ASKED: (4, 0.5), **dict.fromkeys(asked, (4, 0.3))}


def test_what_was_not_asked_the_same_is_not_compared_and_other_steps_are_named(tmp_path):
    one, other = evaluated(tmp_path / "a", 0.5, sha256="x"), evaluated(tmp_path / "b", 0.6, sha256="y")
    assert claims({"a": {0: one}, "b": {0: other}}) == []
    evaluated(other, 0.7, sha256="x", step=9)
    evaluated(other, 0.1, sha256="x", step=3)
    [claim] = claims({"a": {0: one}, "b": {0: other}})
    assert claim.difference.values == pytest.approx((0.2,)), "the newest step, whatever was evaluated last"
    assert (claim.steps, claim.text) == (((9, 4),), "one seed; at different steps")


def test_seeds_that_do_not_differ_at_all_show_no_difference(tmp_path):
    [claim] = claims(runs(tmp_path, a=("student", [0.5, 0.6, 0.7]), b=("student", [0.5, 0.6, 0.7])))
    assert (claim.verdict, claim.text, claim.seeds_to_tell) == ("not told", "not told: no difference", None)


def test_what_a_thousand_seeds_would_not_show_is_said_so(tmp_path):
    [claim] = claims(runs(tmp_path, a=("student", [0.5, 0.5]), b=("student", [0.6, 0.4001])))
    assert claim.text == "not told: a thousand seeds or more would"


@pytest.mark.parametrize(("size", "seeds"), [(1.0, 10), (0.8, 15), (0.5, 34), (0.2, 199), (0.01, None)])
def test_seeds_are_as_many_as_tables_of_the_paired_t_test_have(size, seeds):
    assert seeds_to_tell(size, 1.0) == seeds_to_tell(-2 * size, 2.0) == seeds
    if seeds is not None:
        assert smallest_told(1.0, seeds) <= size < smallest_told(1.0, seeds - 1)
