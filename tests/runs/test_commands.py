"""`redqueen tasks`, `redqueen export` and `redqueen compare`, on small runs that are written here."""

import dataclasses
import json
import math
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import torch
from engine import tiny
from tasks.proposing import CODE
from transformers import AutoModelForCausalLM

from redqueen.analysis.best import best as best_of
from redqueen.analysis.compare import arm_names
from redqueen.analysis.intervals import half_width, student_t
from redqueen.commands import arguments
from redqueen.commands.index import COMMANDS, find_command
from redqueen.engine import peft
from redqueen.errors import InputError, RedQueenError, UserError
from redqueen.evals.subjects import find_subjects
from redqueen.population.members import Birth, Member, Population, Role
from redqueen.population.ratings import Rating
from redqueen.runs import FORKED_FROM, benchmarks, checkpoints, exams
from redqueen.runs.exams import ExamResult
from redqueen.runs.rows import MetricRow, StepRecord
from redqueen.runs.store import Store
from redqueen.settings import dump, load
from redqueen.tasks.code.seeds import SEEDS
from runs.making import attempt, meeting, record, rejection, task

POPULATION = Population(
    (
        Member(
            id="t0.3", role=Role.TEACHER, seat="t0", rating=Rating(21.5, 2.0), birth=Birth(10, "dare", ("t0.2", "t1"))
        ),
        Member(id="t1", role=Role.TEACHER, seat="t1", rating=Rating(24.5, 4.0)),
        Member(id="s0", role=Role.STUDENT, seat="s0"),
    )
)
HOSTILE = "\x1b]0;owned\x07\x1b[2J\r[red]x[/red] :skull: \u202e\u2028\ud800"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\r[red]x[/red] :skull: \u202e\u2028\ud800"
IDS = torch.tensor([[5, 17, 80, 3, 3, 44, 9, 61, 2, 30]])


def call(*words: object) -> None:
    name, rest = find_command([str(word) for word in words])
    arguments.read(COMMANDS[name].load(), name, rest).run()


def printed(capsys, *words: object) -> str:
    call(*words)
    return capsys.readouterr().out


def answer(capsys, *words: object) -> dict:
    return json.loads(printed(capsys, *words, "--json"))


def refusal(*words: object) -> str:
    with pytest.raises(UserError) as caught:
        call(*words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def made(folder: Path, records: Sequence[StepRecord] = (), **overrides: str) -> Path:
    """A run with these settings and these records."""
    folder.mkdir(parents=True)
    settings = load(None, [(key.replace("__", "."), value) for key, value in overrides.items()])
    (folder / "config.toml").write_text(dump(settings))
    with Store.create(folder) as store:
        for each in records:
            store.write(each)
    return folder


# tasks


@pytest.fixture
def run(tmp_path) -> Path:
    """Five steps of six tasks and a rejection; the last task of step 4 is a hostile one."""
    steps = [record(step) for step in range(1, 6)]
    program = f"{HOSTILE}\ndef f(x):\n\treturn x"
    bad = task(
        4, 7, kind="code_f", solved=1, attempts=8, text=HOSTILE, oversight=True, trivial="long_answer",
        record={"kind": "code_f", "program": program, "inputs": ["1", HOSTILE], "outputs": ["2", "3"], "message": ""},
    )  # fmt: skip
    malformed = {"text": HOSTILE, "grade": "malformed", "reason": "no_answer", "status": None, "detail": HOSTILE}
    attempts = [
        attempt(4, 7, "s1", **malformed, reward=-1.0, tokens=9),
        attempt(4, 7, text="the answer\nis 5"),
    ]
    of_t1 = {"teacher": "t1", "group_": 2}
    refused = rejection(4, 8, **of_t1, kind="code_i", reason="forbidden_import", text=f"{HOSTILE}\nimport os")
    ran = rejection(
        4,
        9,
        **of_t1,
        reason="nondeterministic",
        text=HOSTILE,
        program=f"def f(x):\n\treturn {{x, '{HOSTILE}'}}",
        runs=(f"when validated, f(1): ok:{HOSTILE} | ok:2", "when validated, f(2): ok:3"),
    )
    steps[3] = dataclasses.replace(
        steps[3],
        tasks=[*steps[3].tasks, bad],
        attempts=[*steps[3].attempts, *attempts],
        rejections=[*steps[3].rejections, refused, ran],
    )
    return made(tmp_path / "run", steps)


def places(found: dict) -> list[str]:
    [rows] = [rows for name, rows in found.items() if name in ("tasks", "rejections")]
    return [f"{row['step']}:{row['place']}" for row in rows]


def test_tasks_are_listed_newest_first_and_not_all_of_them(run, capsys):
    lines = printed(capsys, "tasks", run).splitlines()
    assert lines[0].split() == ["place", "kind", "teacher", "solved", "lines", "program"]
    assert lines[2].split() == ["5:5", "code_f", "t1", "0.00", "2", "def", "f(x):", "return", "x"]
    assert len([line for line in lines if re.match(r"\d+:\d+ ", line)]) == 20
    assert lines[-1] == "the newest 20; --limit N lists more, --to FILE writes all"
    assert max(len(line) for line in lines) <= 80
    found = answer(capsys, "tasks", run, "--limit", 3)
    assert (places(found), found["more"]) == (["5:5", "5:4", "5:3"], True)
    assert not answer(capsys, "tasks", run, "--limit", 31)["more"]


FILTERS: dict[str, tuple[list[object], Callable[[dict], bool]]] = {
    "kind": (["--kind", "code_i"], lambda row: row["kind"] == "code_i"),
    "teacher": (["--teacher", "t1"], lambda row: row["teacher"] == "t1"),
    "since": (["--since", 4], lambda row: row["step"] >= 4),
    "until": (["--until", 2], lambda row: row["step"] <= 2),
    "solved at least": (["--solved-min", 0.5], lambda row: row["solve_rate"] >= 0.5),
    "solved at most": (["--solved-max", "0.125"], lambda row: row["solve_rate"] <= 0.125),
    "set aside": (["--oversight"], lambda row: row["oversight"]),
    "two": (["--kind", "code_f", "--since", 3], lambda row: row["kind"] == "code_f" and row["step"] >= 3),
}


@pytest.mark.parametrize(("words", "fits"), FILTERS.values(), ids=FILTERS)
def test_filters_keep_what_fits_them_and_nothing_else(words, fits, run, capsys):
    everything = answer(capsys, "tasks", run, "--limit", 100)["tasks"]
    found = answer(capsys, "tasks", run, "--limit", 100, *words)["tasks"]
    assert found == [row for row in everything if fits(row)]
    assert 0 < len(found) < len(everything)


def test_a_listing_of_nothing_says_so(run, capsys):
    assert printed(capsys, "tasks", run, "--kind", "code_x").startswith("nothing fits these filters")
    assert answer(capsys, "tasks", run, "--kind", "code_x") == {"tasks": [], "more": False}


def test_rejections_come_with_their_reasons_and_a_count_of_them(run, capsys):
    text = printed(capsys, "tasks", run, "--rejected")
    assert "7 rejected: syntax 5, forbidden_import 1, nondeterministic 1" in text
    assert re.search(r"^5:6 +code_o +t0 +syntax +line 1 *$", text, re.MULTILINE)
    found = answer(capsys, "tasks", run, "--rejected", "--kind", "code_i")
    assert (places(found), found["reasons"]) == (["4:8"], {"forbidden_import": 1})


def test_a_task_is_shown_whole_with_all_attempts_and_verdicts(run, capsys):
    text = printed(capsys, "tasks", run, "--show", "4:7")
    lines = text.splitlines()
    assert lines[0] == "code_f of step 4, place 7, by t1"
    assert lines[1] == "solved 1 of 8; reward 0.1; does not count: long_answer; flagged for human review"
    assert lines[lines.index("program:") :][:4] == ["program:", f"  {SHOWN}", "  def f(x):", "      return x"]
    assert lines[lines.index("inputs:") :][:3] == ["inputs:", "  1", f"  {SHOWN}"]
    assert lines[lines.index("outputs:") :][:3] == ["outputs:", "  2", "  3"]
    at = lines.index("s0 attempt 0: correct (ok), reward 1, 7 tokens:")
    assert lines[at : at + 3] == [lines[at], "  the answer", "  is 5"]
    assert f"s1 attempt 0: malformed (no_answer, {SHOWN}), reward -1, 9 tokens:" in lines
    found = answer(capsys, "tasks", run, "--show", "4:7")
    assert found["task"]["record"]["inputs"] == ["1", HOSTILE]
    assert [(each["student"], each["grade"]) for each in found["attempts"]] == [("s0", "correct"), ("s1", "malformed")]


def test_a_rejection_is_shown_with_its_program_and_what_each_run_gave(run, capsys):
    lines = printed(capsys, "tasks", run, "--show", "4:9").splitlines()
    assert lines == [
        "code_o of step 4, place 9, by t1", "rejected: nondeterministic; reward -1", "",
        "program:", "  def f(x):", f"      return {{x, '{SHOWN}'}}", "",
        "runs:", f"  when validated, f(1): ok:{SHOWN} | ok:2", "  when validated, f(2): ok:3", "",
        "proposal:", f"  {SHOWN}",
    ]  # fmt: skip
    found = answer(capsys, "tasks", run, "--show", "4:9")["rejection"]
    assert found["program"].startswith("def f(x):")
    assert found["runs"] == [f"when validated, f(1): ok:{HOSTILE} | ok:2", "when validated, f(2): ok:3"]


def test_a_program_that_was_refused_unrun_says_so(run, capsys):
    lines = printed(capsys, "tasks", run, "--show", "4:6").splitlines()
    assert lines[2:] == ["", "program:", "  def", "", "runs:", "  not run", "", "proposal:", "  def"]


def test_a_rejection_without_a_program_shows_its_text(run, capsys):
    lines = printed(capsys, "tasks", run, "--show", "4:8").splitlines()
    assert lines == [
        "code_i of step 4, place 8, by t1", "rejected: forbidden_import; reward -1", "", "proposal:",
        f"  {SHOWN}", "  import os",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words", [["--limit", "100"], ["--rejected"], ["--show", "4:7"], ["--show", "4:8"], ["--show", "4:9"]]
)
def test_nothing_that_a_model_wrote_reaches_the_terminal_as_it_is(words, run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = printed(capsys, "tasks", run, *words)
    assert SHOWN in text
    assert not set(re.findall(r"[^\x20-\x7e\n]", text)) - {"─", "…"}


@pytest.mark.parametrize("words", [[], ["--rejected"], ["--kind", "code_f"], ["--limit", "4"]])
def test_both_file_formats_hold_the_same_rows_oldest_first(words, run, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (the parquet extra)")
    for name in ("out.jsonl", "out.parquet"):
        assert answer(capsys, "tasks", run, *words, "--to", tmp_path / name)["file"].endswith(name)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    if "--limit" not in words:
        listed = answer(capsys, "tasks", run, *words, "--limit", 100)
        assert rows == list(reversed(listed.get("tasks") or listed["rejections"]))
    assert [(row["step"], row["place"]) for row in rows] == sorted((row["step"], row["place"]) for row in rows)
    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert len(table) == len(rows) and table[0].keys() == rows[0].keys()
    for mine, theirs in zip(table, rows, strict=True):
        for name, value in theirs.items():
            if isinstance(value, dict | list):
                assert json.loads(mine[name]) == value
            elif isinstance(value, str):
                assert mine[name] == value.encode("utf-8", "backslashreplace").decode()
            else:
                assert (mine[name], type(mine[name])) == (value, type(value))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.parquet", "run"]


def test_more_rows_than_a_group_are_written(run, tmp_path, capsys, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (the parquet extra)")
    monkeypatch.setattr("redqueen.analysis.table_files.AT_ONCE", 4)
    assert answer(capsys, "tasks", run, "--to", tmp_path / "out.parquet")["rows"] == 31
    file = parquet.ParquetFile(tmp_path / "out.parquet")
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (31, 8)


def test_an_empty_file_is_a_whole_file(run, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (the parquet extra)")
    assert answer(capsys, "tasks", run, "--kind", "code_x", "--to", tmp_path / "out.parquet")["rows"] == 0
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0


def test_what_tasks_cannot_do_is_one_line(run, tmp_path, monkeypatch):
    assert "is not a run folder" in refusal("tasks", tmp_path)
    assert "tasks needs FOLDER" in refusal("tasks")
    assert "write STEP:PLACE" in refusal("tasks", run, "--show", "four")
    assert "no proposal 4:99; the run has steps 1 to 5" in refusal("tasks", run, "--show", "4:99")
    assert "--limit cannot be 0" in refusal("tasks", run, "--limit", 0)
    assert "share from 0 to 1" in refusal("tasks", run, "--solved-min", 40)
    assert "share from 0 to 1" in refusal("tasks", run, "--solved-max", "nan")
    assert "nobody attempts" in refusal("tasks", run, "--rejected", "--solved-max", 1)
    assert "only tasks are set aside" in refusal("tasks", run, "--rejected", "--oversight")
    assert "exclude each other" in refusal("tasks", run, "--show", "4:7", "--to", tmp_path / "x.jsonl")
    assert "ends in .jsonl or .parquet" in refusal("tasks", run, "--to", tmp_path / "x.csv")
    assert "cannot be written" in refusal("tasks", run, "--to", tmp_path / "none" / "x.jsonl")
    (tmp_path / "x.jsonl").write_text("mine")
    assert "there already" in refusal("tasks", run, "--to", tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").read_text() == "mine"
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert "pip install 'redqueen[parquet]'" in refusal("tasks", run, "--to", tmp_path / "x.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "x.jsonl"]


def test_a_run_under_way_can_be_browsed(run, capsys):
    with Store.open(run) as writer:
        writer.write(record(6))
        assert places(answer(capsys, "tasks", run, "--limit", 1)) == ["6:5"]


# export


@pytest.fixture
def trained(tmp_path) -> Path:
    """A run with a tiny base on the disk and checkpoints of steps 10 and 20."""
    tiny.model("llama").save_pretrained(tmp_path / "base")
    folder = made(tmp_path / "run", [record(1)], engine__base=str(tmp_path / "base"))
    with tiny.engine("llama", members=2) as opened:
        modules = [name for name, _ in opened.base.model.named_modules()]
        states = [opened.read("m0"), opened.read("m1")]
    (folder / "checkpoints").mkdir()
    for step in (10, 20):
        members = {"t0.3": tiny.shaken(states[0], step), "s0": tiny.shaken(states[1], step + 1), "t1": states[0]}
        state = {"population": POPULATION.as_record()}
        checkpoints.save(folder / "checkpoints", step, state, members, base_name="tiny", modules=modules)
    return folder


def test_a_member_leaves_a_run_as_it_was(trained, tmp_path, capsys):
    out = tmp_path / "out"
    assert printed(capsys, "export", trained, "--member", "s0", "--to", out) == (
        f"s0, as it was after step 20, is in {out}\n"
    )
    theirs = trained / "checkpoints" / "step-000020" / "members" / "s0"
    assert tiny.difference(peft.load(out), peft.load(theirs)) == 0
    assert (out / peft.CONFIG).read_text() == (theirs / peft.CONFIG).read_text()
    call("export", trained, "--member", "s0", "--step", 10, "--to", tmp_path / "earlier")
    assert tiny.difference(peft.load(tmp_path / "earlier"), peft.load(out)) > 0


def test_an_exported_member_says_what_it_is(trained, tmp_path):
    whole, half = tmp_path / "whole", tmp_path / "half"
    call("export", trained, "--member", "teacher", "--to", whole)
    call("export", trained, "--member", "t0.3", "--to", half, "--dtype", "bfloat16", "--base", "Some/Base")
    assert peft.base_of(whole) == "tiny" and peft.base_of(half) == "Some/Base"
    assert (half / peft.WEIGHTS).stat().st_size < 0.6 * (whole / peft.WEIGHTS).stat().st_size
    assert tiny.difference(peft.load(whole), peft.load(half)) < 0.01
    card = (half / peft.CARD).read_text()
    assert card.startswith('---\nbase_model: "Some/Base"\nlibrary_name: peft\n')
    for fact in ("a teacher of a race of 4 teachers and 4 students", "after step 20", "`dare` of t0.2 and t1"):
        assert fact in card
    for line in (
        "21.5 ± 2.0",
        "```python",
        "--tasks.form long --tasks.attempt-tokens 512",
        "learning rate up to 0.0001",
    ):
        assert line in card
    call("export", trained, "--member", "student", "--to", tmp_path / "s")
    assert "a student of" in (tmp_path / "s" / peft.CARD).read_text()
    assert (whole / peft.WEIGHTS).stat().st_mode == (whole / peft.CONFIG).stat().st_mode


HOW = {"form": "long", "attempts": 8, "k": 4, "temperature": 0.8}


def test_a_card_has_what_was_found_of_the_member_and_of_its_base(trained, tmp_path):
    def told(name: str, *words: object) -> str:
        call("export", trained, "--to", tmp_path / name, *words)
        return (tmp_path / name / peft.CARD).read_text().partition("## Evaluation")[2]

    assert "None: what `redqueen exam RUN`" in told("before", "--member", "s0")
    asked = {"exam": "own", "sha256": "1", "how": HOW, "tasks": 1080}
    found = {"sampled": 0.25, "greedy": 0.3, "pass_at_k": 0.5}
    gains = {"sampled": (0.05, 0.01, 0.09), "greedy": (0.1, None, None), "pass_at_k": (-0.125, -0.2, 0.0)}
    base = {"sampled": 0.2, "greedy": 0.2, "pass_at_k": 0.625}
    exams.keep(
        trained,
        [
            ExamResult(**asked, step=20, subject="base", figures=base),
            ExamResult(**asked, step=20, subject="s0", figures=found, gains=gains),
            ExamResult(**asked, step=10, subject="s0", figures=dict.fromkeys(found, 0.99)),
            ExamResult(**asked, step=20, subject="s1", figures=dict.fromkeys(found, 0.99)),
        ],
    )
    about = {"benchmark": "gsm8k", "title": "GSM8K", "measure": "greedy", "prompts": "chat", "tasks": 1319}
    more = {"sha256": "1", "error": 0.01, "tokens": 9, "role": "student", "step": 20, "base": 0.5}
    benchmarks.keep(
        trained,
        [
            benchmarks.Result(**about, **more, value=0.52, member="s0", gain=(0.02, -0.01, 0.05)),
            benchmarks.Result(**about, **more, value=0.98),
        ],
    )
    card = told("after", "--member", "s0")
    asked_so = "(1,080 tasks), long prompts, 8 attempts at temperature 0.8"
    for line in (
        f"| exam own {asked_so}, sampled | 25.0 % | 20.0 % | +5.0 [+1.0, +9.0] |",
        f"| exam own {asked_so}, greedy | 30.0 % | 20.0 % | +10.0 |",
        f"| exam own {asked_so}, pass@4 | 50.0 % | 62.5 % | -12.5 [-20.0, +0.0] |",
        "| GSM8K (1,319 tasks), chat, greedy | 52.0 % | 50.0 % | +2.0 [-1.0, +5.0] |",
        "kept nothing out of its proposals",
    ):
        assert line in card
    assert "98.0" not in card and "99.0" not in card, "nothing of others, and of no other step"
    assert "|" not in told("half", "--member", "s0", "--scale", 0.5)
    assert "kept out of the race" in dumped_card(trained, tmp_path / "held", ("guard.held_out", '["functions"]'))


def dumped_card(run, to, setting) -> str:
    (run / "config.toml").write_text(dump(load(str(run / "config.toml"), [setting])))
    call("export", run, "--member", "s0", "--to", to)
    return (to / peft.CARD).read_text()


def test_all_members_are_exported_at_once(trained, tmp_path, capsys):
    said = printed(capsys, "export", trained, "--member", "all", "--to", tmp_path / "all")
    there = trained / "checkpoints" / "step-000020" / "members"
    ids = sorted(path.name for path in there.iterdir())
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ids and len(ids) > 1
    assert said.splitlines()[-len(ids) :] == [
        f"{id}, as it was after step 20, is in {tmp_path / 'all' / id}" for id in ids
    ]
    for id in ids:
        assert tiny.difference(peft.load(tmp_path / "all" / id), peft.load(there / id)) == 0
        assert f"# {id}: " in (tmp_path / "all" / id / peft.CARD).read_text()
    assert "is there already" in refusal("export", trained, "--member", "all", "--to", tmp_path / "all")


def test_a_card_counts_up_to_its_step_and_says_who_was_not_trained(trained, tmp_path):
    def exported(name: str, *words: object) -> str:
        call("export", trained, "--member", "teacher", "--to", tmp_path / name, *words)
        return (tmp_path / name / peft.CARD).read_text()

    with Store.open(trained) as store:
        for step in (2, 15):
            store.write(
                dataclasses.replace(
                    record(step),
                    metrics=[MetricRow(step=step, subject="race", kind="", name="sampled_tokens", value=100.0 * step)],
                )
            )
    assert "200 sampled tokens" in exported("early", "--step", 10)
    assert "1,700 sampled tokens" in exported("late")
    assert "It was trained to write tasks" in exported("plain")
    for name, settings, said in (
        ("frozen", ("rl.frozen", "teachers"), "It was not trained, as a control; its job was to write tasks"),
        ("shuffled", ("rl.shuffle", "true"), "rewards dealt out at random, as a control"),
    ):
        (trained / "config.toml").write_text(dump(load(str(trained / "config.toml"), [settings])))
        assert said in exported(name)


def test_an_export_may_be_nearer_to_the_base(trained, tmp_path, capsys):
    call("export", trained, "--member", "s0", "--to", tmp_path / "whole")
    said = printed(capsys, "export", trained, "--member", "s0", "--scale", 0.5, "--to", tmp_path / "half")
    assert said.endswith(f"s0, its update times 0.5, as it was after step 20, is in {tmp_path / 'half'}\n")
    assert tiny.difference(peft.load(tmp_path / "whole").scaled(0.5), peft.load(tmp_path / "half")) == 0
    assert tiny.difference(peft.load(tmp_path / "whole"), peft.load(tmp_path / "half")) > 0
    told = [(tmp_path / name / peft.CARD).read_text() for name in ("whole", "half")]
    assert ["0.5 times what training made" in card for card in told] == [False, True]
    for scale in ("0", "-1", "nan", "inf"):
        says = refusal("export", trained, "--member", "s0", f"--scale={scale}", "--to", tmp_path / "x")
        assert f"--scale cannot be {scale}" in says
        assert not (tmp_path / "x").exists()


def test_a_soup_is_of_several_students(trained, tmp_path):
    says = refusal("export", trained, "--member", "soup", "--to", tmp_path / "x")
    assert "a soup is of several students, and this run has one" in says


def test_a_run_whose_settings_nobody_can_read_is_exported_without_a_card(trained, tmp_path, capsys):
    (trained / "config.toml").write_text("[rl]\nno_such = 1\n")
    assert "without a card" in printed(capsys, "export", trained, "--member", "s0", "--to", tmp_path / "x")
    assert peft.load(tmp_path / "x").rank and not (tmp_path / "x" / peft.CARD).exists()


def with_peft(base: Path, adapter: Path) -> torch.Tensor:
    import peft as theirs

    model = AutoModelForCausalLM.from_pretrained(base)
    with torch.no_grad():
        return theirs.PeftModel.from_pretrained(model, adapter).eval()(IDS).logits.float()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.bfloat16, 0.1)])
def test_a_merged_model_says_what_base_and_adapter_say(dtype, tolerance, trained, tmp_path):
    base = tmp_path / "base"
    shutil.rmtree(base)
    tiny.model("llama").to(dtype).save_pretrained(base)
    call("export", trained, "--member", "t0.3", "--scale", 2, "--merged", "--to", tmp_path / "merged")
    call("export", trained, "--member", "t0.3", "--scale", 2, "--to", tmp_path / "adapter")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "merged").eval()
    assert model.dtype == dtype
    with torch.no_grad():
        merged = model(IDS).logits.float()
        bare = AutoModelForCausalLM.from_pretrained(base).eval()(IDS).logits.float()
    wanted = with_peft(base, tmp_path / "adapter")
    scale = float(wanted.abs().max())
    assert float((merged - wanted).abs().max()) < tolerance * scale
    assert float((merged - bare).abs().max()) > 0.3 * scale, "the adapter does nothing"


def test_a_merged_model_brings_its_tokenizer(trained, tmp_path):
    from engine.test_bases import tokenizer

    tokenizer().save_pretrained(tmp_path / "base")
    call("export", trained, "--member", "s0", "--merged", "--to", tmp_path / "deep" / "merged")
    assert (tmp_path / "deep" / "merged" / "tokenizer.json").is_file()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["merged"]


def test_a_damaged_checkpoint_is_passed_over_and_said(trained, tmp_path, capsys):
    weights = trained / "checkpoints" / "step-000020" / "members" / "s0" / peft.WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1])
    text = printed(capsys, "export", trained, "--member", "s0", "--to", tmp_path / "out")
    assert text.startswith("step-000020 is damaged (members/s0/adapter_model.safetensors has changed) and was passed")
    assert "after step 10" in text
    assert "step 20 is damaged" in refusal("export", trained, "--member", "s0", "--to", tmp_path / "x", "--step", 20)


def test_adapters_are_whole_without_the_optimisers_that_nobody_reads(trained, tmp_path, capsys):
    (trained / "checkpoints" / "step-000020" / checkpoints.OPTIMISER).unlink()
    assert "after step 20" in printed(capsys, "export", trained, "--member", "s0", "--to", tmp_path / "out")


def test_what_export_cannot_do_is_one_line(trained, tmp_path):
    to = ["--to", tmp_path / "x"]
    assert "no member s1 at step 20; the members are s0, t0.3, t1" in refusal("export", trained, "--member", "s1", *to)
    assert "no member ../s0" in refusal("export", trained, "--member", "../s0", *to)
    assert "checkpoints are of steps 10, 20" in refusal("export", trained, "--member", "s0", "--step", 15, *to)
    assert "name one, such as" in refusal("export", trained, *to)
    assert "add --to FOLDER" in refusal("export", trained, "--member", "s0")
    merged = ["export", trained, "--member", "s0", "--merged", *to]
    assert "--dtype is for PEFT folders" in refusal(*merged, "--dtype", "bfloat16")
    assert "--base is for PEFT folders" in refusal(*merged, "--base", "Some/Base")
    assert "--base is empty" in refusal("export", trained, "--member", "s0", *to, "--base", "")
    for more in ([], ["--merged"]):
        assert "there already" in refusal("export", trained, "--member", "s0", "--to", tmp_path / "base", *more)
    # Before anything of the run is read.
    assert "there already" in refusal("export", tmp_path / "none", "--member", "s0", "--to", tmp_path / "base")
    assert "is not a run folder" in refusal("export", tmp_path, "--member", "s0", *to)
    assert "no checkpoint yet" in refusal("export", made(tmp_path / "young", [record(1)]), "--member", "s0", *to)
    shutil.rmtree(tmp_path / "base")
    assert "there is no base" in refusal("export", trained, "--member", "s0", "--merged", *to)
    assert not (tmp_path / "x").exists()


# What students wrote, for other trainers


def test_attempts_are_written_as_chats_and_as_pairs(tmp_path, capsys):
    seed, other = SEEDS[:2]
    tasks = [
        task(1, 0, kind=seed.kind, id=seed.id, record=seed.record()),
        task(1, 1, kind=other.kind, id=other.id, record=other.record()),
        task(1, 2, kind=seed.kind, id=seed.id, record=seed.record()),
    ]
    grades = ["correct", "wrong", "correct", "malformed", "void", "correct"]
    attempts = [
        *(attempt(1, 0, number=n, text=f"text {n % 5}", grade=grade) for n, grade in enumerate(grades)),
        attempt(1, 1, text="nothing", grade="wrong"),
        attempt(1, 2, text="again"),
    ]
    folder = made(tmp_path / "run", [StepRecord(step=1, tasks=tasks, attempts=attempts)])
    prompt = [dict(message) for message in CODE.kinds[seed.kind].solve_prompt(seed).messages]
    said = printed(capsys, "tasks", folder, "--to", tmp_path / "sft.jsonl", "--as", "sft")
    assert said == f"2 rows for sft are in {tmp_path / 'sft.jsonl'}\n"
    rows = [json.loads(line) for line in (tmp_path / "sft.jsonl").read_text().splitlines()]
    assert [row["messages"][:-1] for row in rows] == [prompt, prompt]
    assert [row["messages"][-1] for row in rows] == [{"role": "assistant", "content": f"text {n}"} for n in (0, 2)]
    call("tasks", folder, "--to", tmp_path / "dpo.jsonl", "--as", "dpo")
    [first, second] = [json.loads(line) for line in (tmp_path / "dpo.jsonl").read_text().splitlines()]
    assert first["prompt"] == second["prompt"] == prompt
    pairs = [(row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in (first, second)]
    assert pairs == [("text 0", "text 1"), ("text 2", "text 3")]
    assert "needs to know where to write" in refusal("tasks", folder, "--as", "sft")
    assert "ends in .jsonl" in refusal("tasks", folder, "--as", "sft", "--to", tmp_path / "x.parquet")
    assert "is there already" in refusal("tasks", folder, "--as", "sft", "--to", tmp_path / "sft.jsonl")
    assert "leave out --rejected" in refusal("tasks", folder, "--rejected", "--as", "sft", "--to", tmp_path / "y.jsonl")


# How members are named


def test_a_member_is_named_in_one_way_everywhere(trained, tmp_path, capsys):
    """By itself, at a step, or by what it is best at; `--member` and `--step` say the same."""
    call("export", trained, "--member", "t1", "--step", 10, "--to", tmp_path / "a")
    call("export", f"{trained}:10/t1", "--to", tmp_path / "b")
    call("export", f"{trained}/t1", "--step", 10, "--to", tmp_path / "c")
    call("export", f"{trained}/teacher", "--to", tmp_path / "d")
    states = {name: peft.load(tmp_path / name) for name in "abcd"}
    assert [tiny.difference(states["a"], states[name]) for name in "bc"] == [0, 0]
    capsys.readouterr()
    found = answer(capsys, "diversity", f"{trained}:10/t1", tmp_path / "a", f"{trained}/teacher", tmp_path / "d")
    assert found["folders"] == [f"{trained}:10/t1", str(tmp_path / "a"), f"{trained}/teacher", str(tmp_path / "d")]
    distances = found["weight_distances"]
    assert [distances[0][1], distances[2][3]] == pytest.approx([0, 0], abs=1e-6)
    assert answer(capsys, "diversity", trained)["folders"] == [f"{trained}/{id}" for id in ("s0", "t0.3", "t1")]
    bred = [
        answer(capsys, "breed", "dare", *parents, "--to", tmp_path / to)
        for to, parents in (("x", [f"{trained}:10/t1", f"{trained}/teacher"]), ("y", [tmp_path / "a", tmp_path / "d"]))
    ]
    assert bred[0]["norm"] == bred[1]["norm"]
    assert tiny.difference(peft.load(tmp_path / "x"), peft.load(tmp_path / "y")) == 0


def test_who_sits_an_exam_is_named_likewise(trained):
    subjects = find_subjects([f"{trained}/teacher", f"{trained}:10/s0"], "all")
    living = checkpoints.population(trained / "checkpoints" / "step-000020")
    best = best_of(trained, living, 20, Role.TEACHER)[0]
    assert list(subjects.members) == [f"{trained}/{best}", f"{trained}:10/s0"]
    assert [group.step for group in subjects.groups] == [20, 10]
    assert any(f"{best} is the best teacher" in note for note in subjects.notes)
    with pytest.raises(InputError, match=f"{best} is named twice"):
        find_subjects([f"{trained}/teacher", f"{trained}/{best}"], "all")


def test_what_cannot_be_named_is_one_line(trained, tmp_path):
    to = ["--to", tmp_path / "x"]
    s0, early = f"{trained}/s0", f"{trained}:10/s0"
    assert "names a member, and so does --member t1; leave out" in refusal("export", s0, "--member", "t1", *to)
    assert "names a step, and so does --step 20" in refusal("export", early, "--step", 20, *to)
    assert "no member s9 at step 20" in refusal("export", f"{trained}/s9", *to)
    assert f"is a whole run; name one of its members, such as {trained}/stu" in refusal("breed", "dare", trained, *to)
    assert "is no PEFT folder and no member of a run" in refusal("diversity", tmp_path / "none", trained)
    assert "needs to know which member; name one, such as" in refusal("retention", trained)
    assert "checkpoints are of steps 10, 20" in refusal("retention", f"{trained}:5/s0")
    assert "is not a run folder" in refusal("crossplay", tmp_path, trained)
    assert "cannot be read: File name too long" in refusal("export", "x" * 300, *to)


# compare


def raced(
    folder: Path, seed: int, solved: Callable[[int], int], *, steps: int = 40, tokens: int = 1000, lines: float = 5.0,
    more: Sequence[MetricRow] = (), **overrides: str,
) -> Path:  # fmt: skip
    """A run whose student solves so many of 100 attempts in each step. `stern`, whatever its name, is a teacher."""
    records = []
    for step in range(1, steps + 1):
        values: Mapping[tuple[str, str], float] = {
            ("race", "sampled_tokens"): tokens, ("race", "trained_tokens"): tokens / 2, ("race", "verifier_runs"): 10,
            ("teacher", "valid"): 0.5, ("race", "lines"): lines + step, ("race", "depth"): 4.0,
            ("race", "cyclomatic"): 2.0, ("race", "variables"): 3.0, ("race", "coverage"): step,
            ("race", "behaviours"): 2 * step, ("teacher", "entropy"): 0.5, ("student", "entropy"): 0.25,
            ("t0", "mu"): 20.0 + seed, ("stern", "mu"): 24.0 + seed, ("s0", "mu"): 25.0,
        }  # fmt: skip
        meetings = [
            meeting(step, solved=solved(step)),
            meeting(step, "code_i"),
            meeting(step, "code_f", match=1, teacher="stern", tasks=0, attempts=0, solved=0),
        ]
        metrics = [
            MetricRow(step=step, subject=subject, kind="", name=name, value=value)
            for (subject, name), value in values.items()
        ]
        metrics += [each for each in more if each.step == step]
        records.append(StepRecord(step=step, matches=meetings, metrics=metrics, timings={"solve": 2.0, "update": 1.0}))
    settings = {"run__seed": str(seed), "run__steps": str(steps), "population__teachers": "2", **overrides}
    return made(folder, records, **settings)


def test_runs_that_differ_in_their_seed_alone_are_one_arm_with_an_interval_over_seeds(tmp_path, capsys):
    a = [raced(tmp_path / f"wide-s{seed}", seed, lambda _, seed=seed: 40 + 10 * seed) for seed in range(3)]
    found = answer(capsys, "compare", *a)
    [arm] = found["arms"]
    assert (arm["name"], arm["seeds"], arm["steps"], arm["adapters"]) == ("wide", [0, 1, 2], [40, 40, 40], 6)
    rate = arm["measures"]["solve rate code_o"]
    # The mean of 0.4, 0.5, 0.6; t of 2 degrees is 4.303, the standard error 0.1 / sqrt(3).
    assert rate["mean"] == pytest.approx(0.5) and rate["half"] == pytest.approx(0.2484, abs=1e-4)
    assert (rate["over"], rate["values"]) == ("seeds", pytest.approx([0.4, 0.5, 0.6]))
    assert arm["measures"]["solve rate code_i"]["half"] == pytest.approx(0)
    assert arm["measures"]["lines, first quarter"]["mean"] == pytest.approx(5 + 5.5)
    assert arm["measures"]["lines, last quarter"]["mean"] == pytest.approx(5 + 35.5)
    assert arm["measures"]["coverage"]["mean"] == 40 and arm["measures"]["behaviours"]["mean"] == 80
    assert arm["measures"]["valid proposals"]["mean"] == 0.5
    assert arm["measures"]["entropy of students"]["mean"] == 0.25
    assert arm["measures"]["rating spread of teachers"]["mean"] == pytest.approx(2)
    assert "rating spread of students" not in arm["measures"], "one student has no spread"
    assert arm["compute"] == {"sampled_tokens": 40_000, "trained_tokens": 20_000, "verifier_runs": 400, "seconds": 120}
    assert arm["compute_per_adapter"]["sampled_tokens"] == pytest.approx(40_000 / 6)
    assert found["differences"] == [] and found["settings"] == {}


def test_only_the_last_quarter_counts_for_what_is_reached(tmp_path, capsys):
    run = raced(tmp_path / "a", 0, lambda step: 90 if step > 30 else 0)
    [arm] = answer(capsys, "compare", run)["arms"]
    assert arm["measures"]["solve rate code_o"]["mean"] == pytest.approx(0.9)


def test_differences_are_taken_seed_by_seed(tmp_path, capsys):
    """Seeds differ much, and each arm's interval is wide; pairs differ little, and theirs is narrow."""
    a = [raced(tmp_path / f"ours-{seed}", seed, lambda _, seed=seed: 20 + 20 * seed) for seed in (0, 1, 2)]
    b = [
        raced(tmp_path / f"theirs-{seed}", seed, lambda _, seed=seed: 29 + 21 * seed, evolution__every="0")
        for seed in (0, 1, 2, 3)
    ]
    found = answer(capsys, "compare", *b[:1], *a, *b[1:])
    assert [arm["name"] for arm in found["arms"]] == ["theirs", "ours"]
    [difference] = found["differences"]
    assert (difference["arm"], difference["against"], difference["seeds"]) == ("ours", "theirs", [0, 1, 2])
    rate = difference["measures"]["solve rate code_o"]
    assert rate["values"] == pytest.approx([-0.09, -0.10, -0.11])
    assert (rate["mean"], rate["half"]) == (pytest.approx(-0.1), pytest.approx(0.02484, abs=1e-4))
    assert found["arms"][1]["measures"]["solve rate code_o"]["half"] > 10 * rate["half"]
    assert found["settings"] == {"evolution.every": [0, 10]}
    text = printed(capsys, "compare", *b, *a)
    assert "Less theirs, seed by seed" in text and "-0.100 ±0.025" in text
    assert "evolution.every: 0 | 10" in text
    assert "± is half of the 95 % interval over seeds" in text


def test_arms_without_a_common_seed_are_not_paired(tmp_path, capsys):
    a = raced(tmp_path / "a", 0, lambda _: 50)
    b = raced(tmp_path / "b", 1, lambda _: 50, evolution__every="0")
    assert answer(capsys, "compare", a, b)["differences"] == []


def test_one_seed_has_an_interval_over_blocks_that_is_marked_or_none(tmp_path, capsys):
    run = raced(tmp_path / "long", 0, lambda step: 40 + (step - 1) // 2 % 5)
    rate = answer(capsys, "compare", run)["arms"][0]["measures"]["solve rate code_o"]
    # The last ten steps in five blocks of two: 0.40, 0.41, 0.42, 0.43, 0.44 in some order.
    assert (rate["over"], rate["mean"]) == ("blocks", pytest.approx(0.42))
    assert rate["half"] == pytest.approx(half_width([0.40, 0.41, 0.42, 0.43, 0.44]))
    text = printed(capsys, "compare", run)
    assert "0.420 ~0.020" in text and "one seed only: long; ~ is over blocks" in text
    assert answer(capsys, "compare", run)["arms"][0]["measures"]["coverage"]["over"] is None
    short = raced(tmp_path / "short", 0, lambda _: 40, steps=8)
    assert answer(capsys, "compare", short)["arms"][0]["measures"]["solve rate code_o"]["half"] is None
    assert "one seed only: short; too few steps for an interval" in printed(capsys, "compare", short)


def test_unequal_compute_is_said(tmp_path, capsys):
    a = raced(tmp_path / "a", 0, lambda _: 50)
    near = raced(tmp_path / "near", 0, lambda _: 50, tokens=1040, evolution__every="0")
    far = raced(tmp_path / "far", 0, lambda _: 50, tokens=2000, evolution__every="5")
    assert not [note for note in answer(capsys, "compare", a, near)["notes"] if "compute" in note]
    notes = [note for note in answer(capsys, "compare", a, far)["notes"] if "compute" in note]
    assert notes == [
        "not at equal compute: far has 2.00 times the sampled tokens of a (80,000 and 40,000)",
        "not at equal compute: far has 2.00 times the trained tokens of a (40,000 and 20,000)",
    ]
    assert notes[0] in printed(capsys, "compare", a, far)


def test_a_single_agent_is_one_adapter(tmp_path, capsys):
    alone = {"population__single": "true", "population__teachers": "1", "population__students": "1"}
    run = raced(tmp_path / "single", 0, lambda _: 50, **alone, evolution__every="0")
    [arm] = answer(capsys, "compare", run)["arms"]
    assert arm["adapters"] == 1 and arm["compute_per_adapter"] == arm["compute"]


def test_how_a_run_is_kept_and_tracked_does_not_make_another_arm(tmp_path, capsys):
    a = raced(tmp_path / "x-0", 0, lambda _: 50)
    b = raced(tmp_path / "x-1", 1, lambda _: 50, run__keep_last="9", track__to="tensorboard", verifier__workers="1")
    assert len(answer(capsys, "compare", a, b)["arms"]) == 1


def test_a_run_of_before_a_setting_that_does_nothing_in_it_is_of_the_same_arm(tmp_path, capsys):
    a, b = (raced(tmp_path / f"x-{seed}", seed, lambda _: 50) for seed in (0, 1))
    config = a / "config.toml"
    config.write_text(config.read_text().replace("scatter", "# scatter"))
    assert len(answer(capsys, "compare", a, b)["arms"]) == 1


def test_whatever_does_nothing_in_a_race_makes_no_other_arm(tmp_path, capsys):
    """As `settings.idle` says: without gradients there is no learning rate to halve, and without evolution no trial."""
    a = raced(tmp_path / "x-0", 0, lambda _: 50, evolution__every="0")
    idle = {"evolution__trial": "8", "evolution__inject": "1", "evolution__pull_rate": "2.0"}
    b = raced(tmp_path / "x-1", 1, lambda _: 50, evolution__every="0", **idle)
    c = raced(tmp_path / "y-0", 0, lambda _: 50, evolution__every="10", evolution__trial="8")
    found = answer(capsys, "compare", a, b, c)
    assert [arm["runs"] for arm in found["arms"]] == [[str(a), str(b)], [str(c)]]
    assert found["settings"] == {"evolution.every": [0, 10], "evolution.trial": [0, 8]}


def test_one_race_of_seed_0_is_one_race(tmp_path, capsys):
    a, *b = [raced(tmp_path / name, int(name[-1]), lambda _: 50) for name in ("a0", "b0", "b1")]
    for run in b:
        (run / "config.toml").write_text(dump(load(str(run / "config.toml"), [("rl.lr", "0.5")])))
    text = printed(capsys, "compare", a, *b)
    assert re.search(r"^races +1 \(seed 0\) +2 \(seeds 0, 1\)$", text, re.M), text


def test_forks_are_told_and_that_they_share_steps(tmp_path, capsys):
    a, b, c = (raced(tmp_path / f"x-{seed}", seed, lambda _: 50) for seed in range(3))
    shares = "runs that share steps are not independent: intervals and verdicts take them as if they were"

    def notes(*runs: Path) -> list[str]:
        return [note for note in answer(capsys, "compare", *runs)["notes"] if "fork" in note or "share steps" in note]

    for run, origin in ((b, a), (c, a)):
        with Store.open(run) as store:
            store.set_facts({FORKED_FROM: f"{origin.absolute()}, step 20"})
    told = [f"{run} is a fork of {a.absolute()}, step 20: the steps up to there are that run's" for run in (b, c)]
    assert notes(a, b) == [told[0], shares]
    assert notes(b, c) == [*told, shares], "of one origin"
    assert notes(b) == [told[0]]
    assert notes(a) == []


def test_values_that_are_not_finite_are_left_out(tmp_path, capsys):
    broken = [MetricRow(step=step, subject="race", kind="", name="reward", value=math.inf) for step in range(1, 41)]
    run = raced(tmp_path / "a", 0, lambda _: 50, more=broken, lines=math.nan)
    [arm] = answer(capsys, "compare", run)["arms"]
    assert "lines, last quarter" not in arm["measures"] and "depth, last quarter" in arm["measures"]


def test_an_unfinished_run_is_compared_and_said(tmp_path, capsys):
    a = raced(tmp_path / "a", 0, lambda _: 50)
    with Store.open(a) as store:
        store.drop_after(17)
    notes = answer(capsys, "compare", a)["notes"]
    assert f"{a} is at step 17 of 40" in notes and any(
        "`redqueen exam RUN RUN` asks all the same" in each for each in notes
    )


def test_what_compare_cannot_do_is_one_line(tmp_path):
    a = raced(tmp_path / "a", 0, lambda _: 50)
    assert "the same settings and the same seed, 0" in refusal("compare", a, a)
    assert "is not a run folder" in refusal("compare", a, tmp_path)
    assert "has no step yet" in refusal("compare", made(tmp_path / "young"))
    (a / "config.toml").unlink()
    assert "there is no settings file" in refusal("compare", a)


def test_a_comparison_of_two_arms_fits_80_columns(tmp_path, capsys):
    a = [raced(tmp_path / f"4t4s-seed{seed}", seed, lambda _, seed=seed: 40 + seed) for seed in (0, 1)]
    b = [raced(tmp_path / f"single-wide-seed{n}", n, lambda _: 30, evolution__every="0") for n in (0, 1)]
    lines = printed(capsys, "compare", *a, *b).splitlines()
    assert lines[0].split() == ["4t4s", "single-wide"]
    table = lines[: next(at for at, line in enumerate(lines) if line.startswith("evolution"))]
    assert max(map(len, table)) <= 80
    [rate] = [line for line in table if line.startswith("solve rate code_o")][:1]
    assert rate.split() == ["solve", "rate", "code_o", "0.405", "±0.064", "0.300", "±0.000"]


NAMES = {
    "what seeds have in common": ([["r/wide-s0", "r/wide-s1"], ["r/long_seed_1", "r/long_seed_2"]], ["wide", "long"]),
    "seeds of two digits": ([["r/wide-s10", "r/wide-s11"], ["4t4s-1", "4t4s-10"]], ["wide", "4t4s"]),
    "no mark before the seed": ([["r/pop8", "r/pop8b"]], ["pop8"]),
    "a single run": ([["r/run7"], ["r/other-1"]], ["run7", "other-1"]),
    "nothing in common": ([["r/anna", "r/bert"]], ["anna"]),
    "the same twice": ([["r/x-1", "r/x-2"], ["r/x-3", "r/x-4"]], ["x-1", "x-3"]),
    "the same folder name": ([["a/run"], ["b/run"]], ["a/run", "b/run"]),
}  # fmt: skip


@pytest.mark.parametrize(("groups", "names"), NAMES.values(), ids=NAMES)
def test_arms_are_called_by_their_folders(groups, names):
    assert arm_names(groups) == names


@pytest.mark.parametrize(
    ("freedom", "t"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (9, 2.2622), (10, 2.2281), (30, 2.0423),
     (120, 1.9799), (1001, 1.9623)],
)  # fmt: skip
def test_students_t_is_that_of_the_tables(freedom, t):
    assert student_t(freedom) == pytest.approx(t, abs=1e-4)


def test_commands_raise_nothing_but_our_own_errors_for_odd_folders(tmp_path):
    (tmp_path / "file").write_text("x")
    for words in (["tasks"], ["compare"], ["export", "--member", "s0", "--to", tmp_path / "x"]):
        for odd in (tmp_path / "none", tmp_path / "file", Path("/dev/null")):
            with pytest.raises(RedQueenError):
                call(words[0], odd, *words[1:])
