"""`redqueen eval` as a user has it: all benchmarks with a tiny base, again, after a crash, and of a run."""

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from loop.making import race_to_the_end, random_base, settings

from evals.slices import AS_RACES_ASK, BESIDE, ROWS, write_rows
from redqueen.evals import maths
from redqueen.evals.answers import AnswerStore
from redqueen.evals.data import find
from redqueen.plugins import BENCHMARKS
from redqueen.runs import benchmarks

HERE = ("--engine.device", "cpu", "--engine.dtype", "float32", "--verifier.workers", "2")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("eval")


@pytest.fixture
def asked(slices, place) -> tuple[object, ...]:
    """All benchmarks, to a folder that the tests of this file share."""
    return ("eval", "pico", "--prompts", "raw", "--suite", "all", "--data", slices, "--to", place / "e",
            "--max-tokens", 24, *HERE)  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "answers").iterdir())}


def results(folder: Path) -> dict[str, Any]:
    """What does not depend on the clock."""
    found = json.loads((folder / "results.json").read_text())
    del found["seconds"]
    for each in found["benchmarks"]:
        del each["seconds"]
    return found


# All benchmarks with a tiny base; the tests below go on from here


def test_a_base_is_evaluated_on_everything(redqueen, asked, slices, place):
    status, out, err = redqueen(*asked)
    assert status == 0
    assert f"all answers and figures are in {place / 'e'}" in out
    assert "raw prompts" in out
    assert err.count("5 tasks, 5 answers\n") == 15
    found = json.loads((place / "e" / "results.json").read_text())
    assert (found["base"], found["prompts"], found["device"], found["dtype"]) == ("pico", "raw", "cpu", "float32")
    assert (found["attempts"], found["max_tokens"]) == (0, 24)
    named = [each["name"] for each in found["benchmarks"]]
    assert named == [name for name in BENCHMARKS.names() if name not in AS_RACES_ASK]
    for each in found["benchmarks"]:
        assert (each["tasks"], each["max_tokens"]) == (5, 24)
        assert each["sha256"] == find(BENCHMARKS.get(each["name"]), slices).sha256
        assert each["graded"]
        assert each["graded"] in out
        greedy = each["scores"][0]
        assert (greedy["measure"], greedy["what"]) == ("greedy", None)
        assert 0 <= greedy["base"]["value"] <= 1
        assert f"{each['title']}: 5 rows, and the benchmark has" in out
        lines = [json.loads(line) for line in (place / "e" / "answers" / f"{each['name']}.jsonl").open()]
        assert {line["item"] for line in lines} == {row["id"] for row in ROWS[each["name"]]}
        assert all(line["tokens"] <= 24 for line in lines)
        assert sum(line["tokens"] for line in lines) == each["tokens"]["base"]
        assert sum(line["correct"] for line in lines) / 5 == pytest.approx(greedy["base"]["value"])
    measures = {each["name"]: [line["measure"] for line in each["scores"]] for each in found["benchmarks"]}
    assert measures["humaneval_plus"] == ["greedy", "base tests alone"]
    assert measures["gsm8k"] == ["greedy"]


def test_the_same_command_asks_for_nothing_again(redqueen, asked, place):
    answers, figures = contents(place / "e"), results(place / "e")
    status, _, err = redqueen(*asked)
    assert status == 0
    assert err.count("5 tasks, 5 answers, 5 of them known\n") == 15
    assert contents(place / "e") == answers
    assert results(place / "e") == figures


def test_after_a_crash_the_results_come_out_the_same(redqueen, asked, place):
    answers, figures = contents(place / "e"), results(place / "e")
    for name in ("gsm8k", "humaneval_plus"):
        path = place / "e" / "answers" / f"{name}.jsonl"
        path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2])
    (place / "e" / "results.json").unlink()
    status, _, err = redqueen(*asked)
    assert status == 0
    assert len(re.findall(r"5 answers, [1-4] of them known\n", err)) == 2
    assert results(place / "e") == figures
    again = contents(place / "e")
    assert {name: sorted(each.splitlines()) for name, each in again.items()} == {
        name: sorted(each.splitlines()) for name, each in answers.items()
    }


def test_a_folder_of_other_settings_is_refused_in_one_line(redqueen, asked, place):
    before = contents(place / "e")
    status, out, err = redqueen(*asked, "--max-tokens", 25)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "was begun with another benchmarks." in err
    assert "--to" in err
    assert contents(place / "e") == before


def test_another_file_beside_a_benchmark_is_refused(redqueen, slices, place):
    folder = place / "others"
    shutil.copytree(slices, folder)
    write_rows(folder / "mmlu_dev" / "test.jsonl.gz", [*reversed(BESIDE["mmlu_dev/test.jsonl.gz"])])
    words = ("eval", "pico", "--prompts", "raw", "--suite", "mmlu", "--data", folder, "--to", place / "e")
    status, out, err = redqueen(*words, "--max-tokens", 24, *HERE)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "was begun with another benchmarks.mmlu.beside_sha256 (" in err


def test_ctrl_c_says_what_is_kept_and_the_same_command_goes_on(redqueen, slices, tmp_path, monkeypatch, capsys):
    words = ("eval", "pico", "--prompts", "raw", "--suite", "aime24,gsm8k", "--data", slices, "--to", tmp_path / "e",
             "--max-tokens", 24, *HERE)  # fmt: skip
    add = AnswerStore.add

    def interrupted(self, answer):
        add(self, answer)
        if "gsm8k" in answer.item and len(self.answers) == 2:
            raise KeyboardInterrupt

    class Left(BaseException):
        pass

    def leave(status):
        raise Left(status)

    with monkeypatch.context() as patch:
        patch.setattr(AnswerStore, "add", interrupted)
        # It does not wait for the engine; here it has to.
        patch.setattr(os, "_exit", leave)
        with pytest.raises(Left, match="130"):
            redqueen(*words)
    out, err = capsys.readouterr()
    assert out == ""
    told = f"redqueen: stopped: 7 of 10 answers are kept in {tmp_path / 'e'}; the same command goes on from there\n"
    assert err.count("stopped: ") == 1 and err.endswith(told)
    status, out, err = redqueen(*words)
    assert status == 0
    assert "GSM8K: 5 tasks, 5 answers, 2 of them known" in err


def test_what_was_answered_in_full_is_kept_with_its_run_when_the_rest_is_stopped(
    redqueen, slices, tmp_path, monkeypatch
):
    race_to_the_end(tmp_path / "run", settings(changes={"run": {"steps": 1}}))
    add = AnswerStore.add

    def interrupted(self, answer):
        add(self, answer)
        if "gsm8k" in answer.item:
            raise KeyboardInterrupt

    class Left(BaseException):
        pass

    def leave(status):
        raise Left(status)

    monkeypatch.setattr(AnswerStore, "add", interrupted)
    monkeypatch.setattr(os, "_exit", leave)
    with pytest.raises(Left, match="130"):
        redqueen("eval", tmp_path / "run", "--prompts", "raw", "--suite", "aime24,gsm8k", "--data", slices,
                 "--to", tmp_path / "e", "--max-tokens", 8, *HERE)  # fmt: skip
    assert {result.benchmark for result in benchmarks.read(tmp_path / "run")} == {"aime24"}


def test_a_run_that_takes_no_results_does_not_keep_others_from_being_asked(redqueen, slices, tmp_path):
    race_to_the_end(tmp_path / "run", settings(changes={"run": {"steps": 1}}))
    (tmp_path / "run" / "benchmarks.json").write_text("{")
    asked = ("--suite", "aime24,gsm8k", "--data", slices, "--max-tokens", 8)
    status, out, err = redqueen("eval", tmp_path / "run", "--prompts", "raw", *asked, "--to", tmp_path / "e", *HERE)
    assert (status, out) == (2, "") and "evaluate the run again" in err
    found = json.loads((tmp_path / "e" / "results.json").read_text())
    assert [one["name"] for one in found["benchmarks"]] == ["aime24", "gsm8k"]


def test_attempts_are_added_to_what_is_there(redqueen, slices, place):
    words = ("eval", "pico", "--prompts", "raw", "--suite", "gsm8k", "--data", slices, "--to", place / "e",
             "--max-tokens", 24, "--attempts", 3, "--k", 2, "--json", *HERE)  # fmt: skip
    status, out, err = redqueen(*words)
    assert status == 0
    assert "GSM8K: 5 tasks, 20 answers, 5 of them known" in err
    found = json.loads(out)
    assert found == json.loads((place / "e" / "results.json").read_text())
    [scores] = [each["scores"] for each in found["benchmarks"]]
    assert [each["measure"] for each in scores] == ["greedy", "avg@3", "pass@2"]
    assert scores[1]["base"]["value"] <= scores[2]["base"]["value"]


def test_answers_do_not_depend_on_what_else_is_asked(redqueen, slices, place):
    """A part of the tasks, alone, in a folder of its own."""
    words = ("eval", "pico", "--prompts", "raw", "--suite", "mbpp_plus", "--data", slices, "--to", place / "part",
             "--max-tokens", 24, "--items", 2, *HERE)  # fmt: skip
    status, out, _ = redqueen(*words)
    assert (status, "MBPP+: 2 of 5 tasks" in out) == (0, True)
    part = contents(place / "part")["mbpp_plus.jsonl"].splitlines()
    assert len(part) == 2
    assert {*part} <= {*contents(place / "e")["mbpp_plus.jsonl"].splitlines()}


# What is refused


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--prompts", "raw"), "eval needs to know which benchmarks; add --suite"),
        (("--suite", "gsm8", "--prompts", "raw"), "there is no benchmark 'gsm8'; did you mean gsm8k?"),
        (("--suite", "poetry", "--prompts", "raw"), "there is no benchmark 'poetry'; use FILE.py:NAME or one of code"),
        (("--suite", "gsm8k,", "--prompts", "raw"), "there is no benchmark ''; use FILE.py:NAME or one of code"),
        (
            ("--suite", "gsm8k", "--k", 3, "--attempts", 2),
            "pass@3 cannot be computed from 2 attempts; use --attempts 3",
        ),
        (("--suite", "gsm8k", "--k", 0, "--attempts", 2), "--k cannot be 0"),
        (("--suite", "gsm8k", "--attempts", -1), "--attempts cannot be -1"),
        (("--suite", "gsm8k", "--temperature", 0), "--temperature cannot be 0"),
        (("--suite", "gsm8k", "--items", 0), "--items cannot be 0"),
        (("--suite", "gsm8k", "--every", 0), "--every cannot be 0"),
        (("--suite", "gsm8k", "--max-tokens", 0), "--max-tokens cannot be 0"),
        (("--suite", "gsm8k", "--prompts", "raw", "--against", "x"), "--against x is not among the arguments"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(redqueen, slices, tmp_path, words, told):
    status, out, err = redqueen("eval", "pico", "--data", slices, "--to", tmp_path / "e", *words, *HERE)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert not (tmp_path / "e").exists()


def test_a_base_without_a_chat_template_is_not_chatted_with(redqueen, slices, tmp_path):
    base = random_base(tmp_path / "blank")
    words = ("eval", base, "--suite", "gsm8k", "--data", slices, "--to", tmp_path / "e", "--items", 1, *HERE)
    status, out, err = redqueen(*words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"the base {base} has no chat template; ask with raw prompts" in err
    assert not (tmp_path / "e").exists()


def test_what_is_nothing_at_all_is_told_what_it_could_be(redqueen, slices, tmp_path):
    words = ("--suite", "gsm8k", "--data", slices, "--to", tmp_path / "e", *HERE)
    for name in ("runx", tmp_path / "runx", tmp_path / "runx" / "s0"):
        status, out, err = redqueen("eval", name, *words)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert f"{name} is not a run folder, a member or a PEFT folder, and there is no base {name}; " in err


def test_math_verify_is_missed_before_the_base_is_loaded(redqueen, slices, tmp_path, monkeypatch):
    monkeypatch.setattr(maths, "absent", lambda checker: ["math_verify"])
    words = ("eval", "nowhere", "--suite", "math500", "--data", slices, "--to", tmp_path / "e", *HERE)
    status, out, err = redqueen(*words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "math-verify is not installed; run `pip install 'redqueen[evals]'`" in err


def test_a_benchmark_that_is_not_there_is_named_with_the_way_out(redqueen, tmp_path):
    words = ("eval", "pico", "--prompts", "raw", "--suite", "gsm8k", "--data", tmp_path, "--to", tmp_path / "e")
    status, out, err = redqueen(*words, *HERE)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{tmp_path / 'gsm8k'} has no test.jsonl.gz" in err
    assert "--data" in err
    assert not (tmp_path / "e").exists()


def test_the_environment_may_name_the_folder(redqueen, monkeypatch, tmp_path):
    monkeypatch.setenv("REDQUEEN_BENCH", str(tmp_path))
    status, _, err = redqueen("eval", "pico", "--prompts", "raw", "--suite", "gsm8k", "--to", tmp_path / "e", *HERE)
    assert status == 2
    assert f"{tmp_path / 'gsm8k'} has no test.jsonl.gz" in err


# A run


@pytest.fixture(scope="module")
def run(place) -> Path:
    return race_to_the_end(place / "run", settings(changes={"run": {"steps": 1}, "rl": {"lr": 1e-2}})).folder


def test_a_run_has_its_roles_evaluated_and_shown_by_compare(redqueen, run, slices, place):
    words = ("--prompts", "raw", "--suite", "gsm8k,mbpp_plus", "--data", slices, "--max-tokens", 16, *HERE)
    status, out, err = redqueen("eval", run, "--to", place / "r", *words)
    assert status == 0
    assert "GSM8K: 5 tasks, 25 answers" in err
    assert re.search(r"redqueen: 4 adapters and chains: ready after \d+ s\n", err)
    assert "selected on the test set" in out
    found = json.loads((place / "r" / "results.json").read_text())
    gsm8k = found["benchmarks"][0]["scores"]
    assert [(line["role"], line["step"]) for line in gsm8k] == [("student", 1), ("teacher", 1)]
    assert gsm8k[0]["members"].keys() == {"s0", "s1"}
    values = [each["value"] for each in gsm8k[0]["members"].values()]
    assert gsm8k[0]["mean"]["value"] == pytest.approx(sum(values) / 2)
    assert gsm8k[0]["best"]["selected_on_the_test_set"] is True
    kept = json.loads((run / "benchmarks.json").read_text())
    assert {(each["benchmark"], each["measure"], each["role"]) for each in kept} == {
        (name, measure, role)
        for name, measure in (("gsm8k", "greedy"), ("mbpp_plus", "greedy"), ("mbpp_plus", "base tests alone"))
        for role in ("student", "teacher")
    }
    assert all((each["prompts"], each["step"], each["tasks"]) == ("raw", 1, 5) for each in kept)
    of_gsm8k = {each["member"]: each for each in kept if each["benchmark"] == "gsm8k" and each["role"] == "student"}
    assert of_gsm8k.keys() == {None, "s0", "s1"}
    assert [of_gsm8k[id]["value"] for id in ("s0", "s1")] == values
    assert of_gsm8k["s0"]["gain"][0] == pytest.approx(values[0] - of_gsm8k["s0"]["base"])
    assert all((each["temperature"], each["max_tokens"]) == (None, 16) for each in kept)
    other = place / "other"
    shutil.copytree(run, other)
    config = (other / "config.toml").read_text()
    (other / "config.toml").write_text(re.sub(r"(?m)^seed = .*", "seed = 7", config))
    status, out, err = redqueen("compare", run, other)
    assert (status, err) == (0, "")
    assert "GSM8K (5 tasks), raw, greedy, students, at most 16 tokens" in out
    assert "MBPP+ (5 tasks), raw, base tests alone, teachers" in out


def test_a_member_gets_alone_what_it_gets_among_others(redqueen, run, slices, place):
    words = ("--prompts", "raw", "--suite", "gsm8k", "--data", slices, "--max-tokens", 16, "--json", *HERE)
    status, out, _ = redqueen("eval", f"{run}/s1", "--to", place / "alone", *words)
    assert status == 0
    [line] = json.loads(out)["benchmarks"][0]["scores"]
    together = json.loads((place / "r" / "results.json").read_text())["benchmarks"][0]["scores"][0]
    assert line["mean"]["value"] == together["members"]["s1"]["value"]
    kept = [
        each["member"] for each in json.loads((run / "benchmarks.json").read_text()) if each["benchmark"] == "gsm8k"
    ]
    assert Counter(kept) == Counter({None: 2, "s0": 1, "s1": 1, "t0": 1, "t1": 1}), "in the place of what was there"


def test_all_checkpoints_of_every_so_many_steps_are_evaluated_and_kept_with_the_run(redqueen, run, slices, tmp_path):
    folder = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("benchmarks.json"))
    shutil.copytree(folder / "checkpoints" / "step-000001", folder / "checkpoints" / "step-000002")
    words = ("--prompts", "raw", "--suite", "gsm8k", "--data", slices, "--max-tokens", 16, "--role", "students", *HERE)
    status, out, err = redqueen("eval", folder, "--every", 7, "--to", tmp_path / "e", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "has no checkpoint of every 7 steps, only of 1, 2; name a divisor" in err
    status, out, err = redqueen("eval", folder, "--every", 1, "--against", folder, "--to", tmp_path / "e", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"--against {folder} is not among the arguments; name one of {folder}:1, {folder}:2" in err
    status, out, _ = redqueen("eval", folder, "--every", 1, "--to", tmp_path / "e", "--json", *words)
    assert status == 0
    assert [line["step"] for line in json.loads(out)["benchmarks"][0]["scores"]] == [1, 2]
    kept = json.loads((folder / "benchmarks.json").read_text())
    assert {(each["step"], each["member"]) for each in kept} == {(n, id) for n in (1, 2) for id in (None, "s0", "s1")}
    noted = json.loads((tmp_path / "e" / "settings.json").read_text())["weights"].keys()
    assert noted == {f"{folder}:{n}/s{id}" for n in (1, 2) for id in (0, 1)}
    status, _, _ = redqueen("eval", folder, "--every", 2, "--to", tmp_path / "e", *words)
    assert status == 0 and json.loads((tmp_path / "e" / "settings.json").read_text())["weights"].keys() == noted


def test_a_member_is_not_set_against_roles(redqueen, run, slices, place):
    words = ("--prompts", "raw", "--suite", "gsm8k", "--data", slices, "--to", place / "against", *HERE)
    status, out, err = redqueen("eval", run, f"{run}/s1", "--against", run, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"the single adapter {run}/s1 cannot be compared with {run}, which has students and teachers" in err
    assert not (place / "against").exists()


def test_other_weights_of_the_same_name_do_not_take_over_the_answers(redqueen, run, slices, place):
    noted = json.loads((place / "r" / "settings.json").read_text())
    noted["weights"]["s0"] = "0" * 16
    (place / "r" / "settings.json").write_text(json.dumps(noted))
    words = ("--prompts", "raw", "--suite", "gsm8k", "--data", slices, "--max-tokens", 16, *HERE)
    status, out, err = redqueen("eval", run, "--to", place / "r", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "was begun with another weights.s0 (0000000000000000, not " in err
