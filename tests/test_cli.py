"""The command line: exit statuses, one-line mistakes, and `redqueen verify` through the real verifier."""

import ast
import contextlib
import functools
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from synthetic import make

from redqueen import __version__
from redqueen.commands.command import Configured
from redqueen.commands.index import COMMANDS
from redqueen.commands.main import exit_status, main
from redqueen.console import printable
from redqueen.settings import keys

REDQUEEN = [sys.executable, "-m", "redqueen"]


@pytest.fixture
def redqueen(capsys):
    """Run a command in this process: exit status, standard output, standard error."""

    def run(*argv: object) -> tuple[int, str, str]:
        status = main([str(word) for word in argv])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def program(tmp_path):
    """Write a program to a file and give its path."""

    def write(source: str, name: str = "program.py"):
        path = tmp_path / name
        path.write_text(source)
        return path

    return write


def mistake(answer: tuple[int, str, str]) -> str:
    """The one line that a user's mistake comes to."""
    status, out, err = answer
    assert status == 2
    assert out == ""
    assert err.startswith("redqueen: ")
    assert err.endswith("\n")
    assert err[:-1].isprintable(), "one line"
    assert not set(err) & set("│╭─"), "no part of a box"
    assert "; " in err, "what is wrong, and how to mend it"
    return err


# The frame


def test_too_few_open_files_are_one_line_that_says_what_to_raise(program):
    """It is the verifier's thread that runs into this limit."""
    files = 8
    words = [*REDQUEEN, "verify", str(program("def f(x):\n    return x\n")), "--input", "1"]
    ended = subprocess.run(
        words,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)),
        capture_output=True,
        text=True,
    )
    assert "ulimit -n 1024" in mistake((ended.returncode, ended.stdout, ended.stderr))


def test_help_lists_every_command(redqueen):
    status, out, _ = redqueen("--help")
    assert status == 0
    assert all(f"  {name} " in out for name in COMMANDS)


def imported(names: tuple[str, ...], *words: str) -> list[str]:
    """Which of these modules a command imports, in a process of its own."""
    code = f"""
import sys
from redqueen.commands.main import main
assert main(sys.argv[1:]) == 0
print([name for name in {names} if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return ast.literal_eval(ended.stdout.splitlines()[-1])


def test_help_comes_without_torch_or_the_verifier():
    assert imported(("torch", "redqueen.verifier"), "--help") == []


@pytest.mark.parametrize("words", ["tasks 0", "compare 0 1", "report 0 -o page.html"])
def test_what_only_reads_a_run_comes_without_torch(tmp_path, monkeypatch, words):
    for seed in range(2):
        make(tmp_path / str(seed), steps=3, members=4, tasks=12, seed=seed)
    monkeypatch.chdir(tmp_path)
    assert imported(("torch", "transformers"), *words.split()) == []


def test_the_live_page_comes_without_torch():
    code = "import sys, redqueen.ui.page.server; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_commands_help_shows_the_settings_that_it_uses_and_no_others(redqueen, name):
    status, out, err = redqueen(*name.split(), "--help")
    assert (status, err) == (0, "")
    command = COMMANDS[name].load()
    configured = issubclass(command, Configured)
    uses = (command.uses if configured else ()) or ()
    assert all(any(key == each or key.startswith(f"{each}.") for key in keys()) for each in uses), "they are there"
    all_of_them = configured and command.uses is None
    used = {key for key in keys() if all_of_them or {key, key.partition(".")[0]} & set(uses)}
    shown = set(re.findall(r"^[│ ]+--([a-z]+\.[a-z-]+)", out, re.MULTILINE))
    assert {key.replace("-", "_") for key in shown} == used
    assert ("--config" in out) == configured


def test_a_setting_is_written_in_a_commands_help_as_in_that_of_train(redqueen):
    written = "--evolution.operators NAME,FILE.py:NAME"
    for name in ("train", "bench operators"):
        assert written in redqueen(*name.split(), "--help")[1]


def test_help_of_a_group_lists_its_commands(redqueen):
    status, out, _ = redqueen("bench", "--help")
    assert status == 0
    assert "bench verifier" in out
    assert "doctor" not in out


def test_version(redqueen):
    assert redqueen("--version") == (0, f"redqueen {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "a command is missing"),
        ("docter", "did you mean `redqueen doctor`?"),
        ("bench verifer", "did you mean `redqueen bench verifier`?"),
        ("bnech step", "did you mean `redqueen bench step`?"),
        ("trian demo --run runs/a", "did you mean `redqueen train`?"),
        ("bench", "try `redqueen bench verifier`"),
        ("xyzzy", "try `redqueen --help`"),
        ("--jsno", "unknown option --jsno"),
        ("doctor --jsno", "did you mean --json?"),
        ("doctor --json=yes", "--json takes no value"),
        ("doctor -x", "unknown option -x"),
        ("train demo --steps 5", "unknown option --steps; did you mean --run.steps?"),
        ("train demo --step=5", "unknown option --step; did you mean --run.steps?"),
        ("train demo --run-steps 5", "did you mean --run.steps?"),
        ("train --every 5", "did you mean --evals.every or --evolution.every or --oversight.every?"),
        ("train demo --learning 1", "unknown option --learning; try `redqueen train --help`"),
        ("bench update --shpae 7b", "did you mean --shape?"),
        ("train dmeo", "there is no settings file dmeo; did you mean demo?"),
        ("train demo --arm singel", "there is no arm singel; did you mean single?"),
        ("train demo --track.to wandbb", "there is no tracker wandbb; did you mean wandb?"),
        ("train demo --rl.estimator rlo", 'rl.estimator cannot be "rlo"; did you mean rloo?'),
        ("exam pico --tasks funktions", "there is no exam funktions, and no such file; did you mean functions?"),
        ("base pull smollm-135m", "did you mean smollm2-135m?"),
        ("doctor extra", "unexpected argument extra"),
        ("doctor --config", "--config needs a value"),
        ("doctor --config nowhere.toml", "there is no settings file nowhere.toml"),
        ("doctor --config None", "there is no settings file None"),
        ("doctor --verifier.minumum full", "did you mean verifier.minimum?"),
        ("doctor --verifier.minimum=ful", "use 'full' or 'seccomp'"),
        ("doctor --verifier.minimum", "--verifier.minimum needs a value"),
        ("exam pico --tasks.prompts 3", "exam does not use --tasks.prompts"),
        ("exam pico --tasks.promts 3", "did you mean tasks.prompts?"),
        ("compare a b --rl.lr 1", "compare has no settings, so --rl.lr cannot be used"),
        ("compare a b --config demo", "unknown option --config"),
        ("train demo --tasks.seeds nowhere.jsonl", "nowhere.jsonl: No such file or directory; give a file"),
        ("tasks . --rejected --reason dupl", "nothing is rejected for dupl; the reasons are "),
        ("verify", "verify needs FILE"),
        ("verify nowhere.py", "nowhere.py cannot be read: No such file"),
        ("verify a.py b.py", "unexpected argument b.py"),
        ("verify a.py --cpu soon", "redqueen: Error parsing --cpu: "),
        ("verify a.py --cpu nan", "--cpu cannot be nan"),
        ("verify a.py --cpu -1", "--cpu cannot be -1"),
        ("verify a.py --memory 0", "--memory cannot be 0"),
        ("verify a.py --input 1 --stdin -", "--input and --stdin exclude each other"),
        ("bench verifier --soak 0", "--soak cannot be 0"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(redqueen, words, told):
    assert told in mistake(redqueen(*words.split()))


def test_a_mistake_with_control_characters_is_still_one_printable_line(redqueen):
    mistake(redqueen("a\nb\x1b[31m"))
    mistake(redqueen("verify", "a\nb\x1b[31m.py"))
    mistake(redqueen("verify", "a.py", "--cpu", "a\nb\x1b[31m"))


@pytest.mark.parametrize("word", ["--help", "doctor"])
def test_a_reader_that_goes_away_causes_no_traceback(word):
    child = subprocess.Popen([*REDQUEEN, word], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == 141


def test_control_c_ends_quietly_with_130(program):
    endless = program("while True: pass")
    # Started in the background, the suite itself may have been told to ignore it.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    child = subprocess.Popen([*REDQUEEN, "verify", endless, "--cpu", "60"], stderr=subprocess.PIPE, preexec_fn=heed)  # noqa: PLW1509 (there are none)
    while not has_children(child.pid):  # from then on it is at work, not still importing
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    assert child.stderr.read() == b""
    assert child.wait() == 130


def has_children(pid: int) -> bool:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may have ended meanwhile
            if int(stat.read_text(errors="replace").rpartition(")")[2].split()[1]) == pid:
                return True
    return False


def test_what_is_printed_cannot_steer_a_terminal():
    assert printable("a\x1b[31m\r\n\u202e\udc80é") == "a\\x1b[31m\\r\\n\\u202e\\udc80é"


def test_a_complaint_reads_the_same_on_a_terminal_without_box_characters():
    words = [*REDQUEEN, "verify", "a.py", "--cpu", "soon"]
    plain, boxed = (
        subprocess.run(words, env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, text=True)
        for encoding in ("ascii", "utf-8")
    )
    assert plain.stderr == boxed.stderr
    assert plain.stderr.startswith("redqueen: Error parsing --cpu: ")


# examples


def test_every_bundled_example_comes_out_as_stated(redqueen):
    status, out, err = redqueen("examples")
    assert (status, err) == (0, "")
    assert "all as stated" in out


# check


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("check",), "check needs FAMILY"),
        (("check", "cod"), "did you mean code?"),
        (("check", "nowhere.py:X"), "there is no file nowhere.py"),
        (("check", "code", "--tasks", 0), "--tasks cannot be 0"),
    ],
)
def test_a_family_that_is_not_there_is_told(redqueen, words, told):
    """Families that are there: tests/tasks/test_soundness.py."""
    assert told in mistake(redqueen(*words))


# verify


def test_verify_calls_f_and_prints_one_json_line(redqueen, program):
    status, out, err = redqueen("verify", program("def f(a, b): return a * b"), "--input", "6, 7", "--json")
    assert (status, err) == (0, "")
    assert out.endswith("\n")
    assert out.count("\n") == 1
    answer = json.loads(out)
    assert list(answer) == ["verdict", "value", "tier", "cpu_ms", "runs"]
    assert (answer["verdict"], answer["value"]) == ("ok:42", "42")
    assert answer["tier"] in ("full", "seccomp")
    assert answer["cpu_ms"] > 0


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ([], "ok:((), [])"),
        (["--input", ""], "ok:((), [])"),
        (["--input", "1, [2, 3]"], "ok:((1, [2, 3]), [])"),
        (["--input", "n=5"], "ok:((), [('n', 5)])"),
        (["--input", "-5"], "ok:((-5,), [])"),
        (["--input=-5"], "ok:((-5,), [])"),
        (["--input", "-5, n=-1"], "ok:((-5,), [('n', -1)])"),
        (["--input", "'--json'"], "ok:(('--json',), [])"),
        (["--input", "None"], "ok:((None,), [])"),
        (["--input", "-n"], "exc:ValueError"),
        (["--input", "a=1=2"], "exc:SyntaxError"),
    ],
)
def test_input_is_what_stands_between_the_parentheses_of_a_call(redqueen, program, words, verdict):
    source = "def f(*args, **kwargs): return args, list(kwargs.items())"
    assert json.loads(redqueen("verify", program(source), *words, "--json")[1])["verdict"] == verdict


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        ("def f(): return 1 / 0", "exc:ZeroDivisionError"),
        ("def f():\n    while True: pass", "timeout"),
        ("def f(): return object()", "opaque"),
        ("def f(: pass", "exc:SyntaxError"),
        ("", "exc:NameError"),
    ],
)
def test_every_verdict_is_an_answer_and_status_0(redqueen, program, source, verdict):
    status, out, err = redqueen("verify", program(source), "--json")
    answer = json.loads(out)
    assert (status, err, answer["verdict"], answer["value"]) == (0, "", verdict, None)
    status, out, err = redqueen("verify", program(source))
    assert (status, err) == (0, "")
    assert out.startswith(verdict)


def test_a_whole_program_reads_stdin_and_shows_what_it_prints(redqueen, program):
    echo = program("import sys\nfor line in sys.stdin: print(line.strip().upper())")
    text = program("one\ntwo\n", "in.txt")
    status, out, _ = redqueen("verify", echo, "--stdin", text)
    assert status == 0
    assert out.startswith("ok\n  ONE\n  TWO\n(")
    assert json.loads(redqueen("verify", echo, "--stdin", text, "--json")[1])["value"] == r"'ONE\nTWO\n'"


def test_a_dash_means_what_is_piped_in(program):
    echo = program("print(input()[::-1])")
    done = subprocess.run([*REDQUEEN, "verify", echo, "--stdin", "-"], input="abc\n", capture_output=True, text=True)
    assert done.stdout.startswith("ok\n  cba\n(")


def test_what_a_program_prints_cannot_steer_the_terminal_or_pass_for_our_lines(redqueen, program):
    sly = program(r"print('\x1b[2Jok:42\n(0.0 ms of CPU time, isolation full)\r', end='')")
    out = redqueen("verify", sly, "--stdin", program("", "empty"))[1]
    assert all(line.isprintable() for line in out.splitlines())
    ours = [line for line in out.splitlines() if not line.startswith("  ")]
    assert ours[0] == "ok"
    assert len(ours) == 2


def test_a_program_may_import_the_modules_it_is_given(redqueen, program):
    first, second = program("ONE = 1", "first.py"), program("import first\nTWO = first.ONE + 1", "second.py")
    main_file = program("import second\ndef f(): return second.TWO")
    out = redqueen("verify", main_file, "--module", first, "--module", second, "--json")[1]
    assert json.loads(out)["verdict"] == "ok:2"


def test_a_module_that_cannot_be_imported_by_its_name_is_a_mistake(redqueen, program):
    mistake(redqueen("verify", program("def f(): pass"), "--module", program("", "not-a-name.py")))


def test_numpy_is_there_when_asked_for(redqueen, program):
    source = program("import numpy as np\ndef f(): return int(np.arange(4).sum())")
    assert json.loads(redqueen("verify", source, "--numpy", "--json")[1])["verdict"] == "ok:6"


def test_limits_can_be_raised(redqueen, program):
    slow = program("def f():\n    for _ in range(15_000_000): pass\n    return 1")
    large = program("def f(): return len(bytearray(400 << 20))", "large.py")
    assert json.loads(redqueen("verify", slow, "--cpu", "0.05", "--json")[1])["verdict"] == "timeout"
    assert json.loads(redqueen("verify", slow, "--cpu", "20", "--json")[1])["verdict"] == "ok:1"
    assert json.loads(redqueen("verify", large, "--json")[1])["verdict"] == "memory"
    assert json.loads(redqueen("verify", large, "--memory", "1000", "--cpu", "5", "--json")[1])["value"] == str(
        400 << 20
    )


def test_a_setting_reaches_the_verifier(redqueen, program):
    source = program("def f(): return 1")
    out = redqueen("verify", source, "--verifier.tier", "seccomp", "--json")[1]
    assert json.loads(out)["tier"] == "seccomp"
    settings = program('[verifier]\ntier = "seccomp"\n', "my.toml")
    assert json.loads(redqueen("verify", source, "--config", settings, "--json")[1])["tier"] == "seccomp"


def test_a_file_that_is_no_program_is_a_mistake(redqueen, program, tmp_path):
    assert "directory" in mistake(redqueen("verify", tmp_path))
    (tmp_path / "latin.py").write_bytes(b"# caf\xe9\n")
    assert "not UTF-8" in mistake(redqueen("verify", tmp_path / "latin.py"))
    assert "more than" in mistake(redqueen("verify", "/dev/zero"))


def test_an_exit_inside_a_command_is_never_taken_for_success(capsys):
    assert exit_status(lambda: sys.exit(0)) == 1
    assert "SystemExit: 0" in capsys.readouterr().err
