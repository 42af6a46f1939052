"""Who may ask the server for what."""

import hashlib
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from redqueen.commands.main import main
from redqueen.runs.store import Store
from redqueen.ui.page.server import Address, application

QUESTIONS = (
    "",
    "runs.json",
    "run.json",
    "about.json",
    "tasks.json",
    "task.json?step=1&place=0",
    "page.js",
    "plot.js",
)


def client(folders: list[Path], token: str = "") -> TestClient:
    return TestClient(application(folders, token), base_url="http://localhost:1234", raise_server_exceptions=False)


def test_everything_answers_and_forbids_the_browser_to_ask_elsewhere(recorded):
    for question in QUESTIONS:
        answer = client([recorded]).get(f"/{question}")
        assert answer.status_code == 200, question
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]


def test_with_a_token_nothing_answers_without_it(recorded):
    page = client([recorded], token="secret")
    for question in QUESTIONS:
        assert page.get(f"/{question}").status_code == 404
        assert page.get(f"/secre/{question}").status_code == 404
        assert page.get(f"/secret/{question}").status_code == 200, question


def test_a_name_that_somebody_pointed_here_is_refused(recorded):
    assert client([recorded]).get("/run.json", headers={"host": "evil.example"}).status_code == 400


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("run.json?run=1", "there is no run 1"),
        ("run.json?run=-1", "run cannot be -1"),
        ("tasks.json?since=x", "since cannot be x"),
        ("tasks.json?min_rate=2", "min_rate cannot be 2"),
        ("tasks.json?max_rate=nan", "max_rate cannot be nan"),
        ("task.json?step=99&place=0", "there is no proposal 99:0"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(recorded, question, told):
    answer = client([recorded]).get(f"/{question}")
    assert answer.status_code == 400
    assert told in answer.json()["error"]


def test_only_reading_is_allowed_and_nothing_is_changed(recorded):
    before = hashlib.sha256((recorded / "records.sqlite").read_bytes()).hexdigest()
    page = client([recorded])
    for question in QUESTIONS:
        page.get(f"/{question}")
        assert page.post(f"/{question}").status_code == 405
    assert hashlib.sha256((recorded / "records.sqlite").read_bytes()).hexdigest() == before


def test_no_file_but_our_own_is_handed_out(recorded):
    page = client([recorded])
    for path in ("../config.toml", "config.toml", "%2e%2e/config.toml", "assets/__init__.py", "__init__.py"):
        assert page.get(f"/{path}").status_code == 404


def test_halves_of_characters_and_numbers_that_json_lacks_are_answered(recorded, tmp_path):
    run = tmp_path / "odd"
    shutil.copytree(recorded, run)
    with Store.open(run) as store:
        task = next(store.tasks())
        broken = "def f():\n    return '\ud800'".encode("utf-8", "surrogatepass")
        store._db.execute("UPDATE tasks SET text = ?, record = '{}' WHERE step = 12", (broken,))
        store._db.execute("UPDATE attempts SET text = ?, reward = 9e999", (broken,))
    page = client([run])
    assert page.get("/tasks.json").json()["rows"]
    found = page.get(f"/task.json?step={task.step}&place={task.place}").json()
    assert found["attempts"][0]["reward"] is None
    assert "\ud800" in found["attempts"][0]["text"]
    assert main(["report", str(run), "-o", str(tmp_path / "odd.html")]) == 0


def test_runs_of_one_name_are_told_apart(recorded, tmp_path):
    assert client([recorded, tmp_path / "other"]).get("/runs.json").json() == {"runs": ["recorded", "other"]}
    alike = [tmp_path / "x" / "demo", tmp_path / "y" / "demo"]
    assert client(alike).get("/runs.json").json() == {"runs": [str(each) for each in alike]}


def test_steps_that_are_not_there_are_not_answered(recorded):
    view = client([recorded]).get("/run.json?since=99").json()
    assert (view["since"], view["step"]) == (12, 12)
    assert set(map(len, view["series"].values())) <= {0}


def test_a_run_that_has_gone_is_said_to_be(recorded, tmp_path):
    answer = client([tmp_path / "gone"]).get("/run.json")
    assert answer.status_code == 400
    assert "is not a run folder" in answer.json()["error"]


def test_addresses_of_both_families():
    assert Address("127.0.0.1", 80, "").url == "http://127.0.0.1:80/"
    assert Address("fe80::1", 80, "token").url == "http://[fe80::1]:80/token/"
    assert Address("::", 80, "token").url == f"http://{socket.gethostname()}:80/token/"


def test_a_folder_without_a_run_is_refused(tmp_path, capsys):
    assert main(["watch", str(tmp_path)]) == 2
    assert "is not a run folder" in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(recorded, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["watch", str(recorded), "--port", str(port)]) == 2
    assert f"port {port} of 127.0.0.1 cannot be used" in capsys.readouterr().err
    assert main(["watch", str(recorded), "--port", "70000"]) == 2


def test_elsewhere_than_on_this_machine_the_address_has_a_token(recorded):
    command = [sys.executable, "-m", "redqueen", "watch", str(recorded), "--host", "0.0.0.0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        first = server.stdout.readline()
        server.terminate()
    found = re.fullmatch(r"the page is at http://\S+:\d+/([\w-]{20,})/\n", first)
    assert found is not None, first
