"""Exams and studies on a cluster: the same answers, and the same races."""

import json
from pathlib import Path
from typing import Any

import pytest
from chains import uniform_test
from loop.making import Ran, settings

from redqueen.commands.main import main
from redqueen.errors import InputError
from redqueen.training.study.design import Design
from redqueen.training.study.study import run_study

pytest.importorskip("ray")
CLUSTER = ["--cluster.address", "local", "--cluster.workers", "2", "--cluster.verifiers", "1"]


def exam_file(folder: Path) -> Path:
    rows = [
        {"kind": "code_o", "program": chain.task.program, "input": chain.task.inputs[0], "band": str(1 + at % 2)}
        for at, chain in enumerate(uniform_test(2)[-6:])
    ]
    file = folder / "exam.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_an_exam_on_a_cluster_has_the_answers_of_one_in_this_process(tmp_path: Path):
    words = ["exam", "chains", "--tasks", str(exam_file(tmp_path)), "--attempts", "4", "--engine.dtype", "float32"]

    assert main([*words, "--to", str(tmp_path / "here.json")]) == 0
    assert main([*words, "--to", str(tmp_path / "there.json"), *CLUSTER]) == 0

    here, there = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("here", "there"))
    assert here == there


def test_a_worker_may_be_a_group_of_processes_with_a_part_of_the_base_each(tmp_path: Path):
    words = ["exam", "pico", "--tasks", str(exam_file(tmp_path)), "--attempts", "2", "--engine.tensor-parallel", "2"]

    assert main([*words, "--to", str(tmp_path / "here.json")]) == 0
    one = ["--cluster.address", "local", "--cluster.workers", "1"]
    assert main([*words, "--to", str(tmp_path / "there.json"), *one]) == 0

    here, there = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("here", "there"))
    assert here == there


def design(folder: Path, cluster: dict[str, Any]) -> Design:
    """Two arms whose members are in other shards than those of their neighbours."""
    folder.mkdir()
    changes: Any = {"run": {"steps": 1}, "cluster": cluster}
    return Design(
        folder=folder / "study", settings=settings(changes=changes), arms=("population", "single"), seeds=1,
        attempts=2, exam_file=exam_file(folder),
    )  # fmt: skip


def test_a_study_on_a_cluster_has_the_races_of_one_in_this_process(tmp_path: Path):
    here = design(tmp_path / "here", {"shards": 2})
    there = design(tmp_path / "there", {"address": "local", "workers": 2})

    ended, same = run_study(here), run_study(there)

    assert ended is not None and same is not None
    assert [outcome.figures for outcome in same.outcomes] == [outcome.figures for outcome in ended.outcomes]
    for name in ("population-0", "single-0"):
        ours, theirs = (Ran(each.folder / name, each.settings).rows("attempts") for each in (here, there))
        assert ours == theirs and ours


def test_a_study_cannot_have_jobs_and_workers(tmp_path: Path):
    with pytest.raises(InputError, match="a cluster has workers"):
        Design(
            folder=tmp_path, settings=settings(changes={"cluster": {"shards": 2}}), arms=("population",), seeds=1,
            attempts=2, jobs=2,
        )  # fmt: skip
