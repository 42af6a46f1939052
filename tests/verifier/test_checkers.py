"""Checkers: our own functions, called in guests with whatever a model wrote."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import start

from redqueen.errors import InputError, MachineError
from redqueen.verifier import (
    Checker,
    Job,
    Limits,
    LocalVerifier,
    Outcome,
    Status,
    Tier,
    checkers,
    parcels,
    pool,
    zygotes,
)
from redqueen.verifier.checkers import GUEST, MATH_VERIFY
from redqueen.verifier.guest import literals
from redqueen.verifier.sharded_desk import ShardedDesk
from redqueen.verifier.supervisor import slots

ECHO = "def echo(*values):\n    return list(values)\n"
LIMITS = Limits(cpu_s=0.3)
MORE_THAN_A_SHARD = 2


@pytest.fixture(scope="module", params=["full", "seccomp", "none", "shards"])
def checking(request) -> Iterator[LocalVerifier]:
    """A pool of every tier, and one with shards."""
    shards = request.param == "shards"
    with pytest.MonkeyPatch.context() as patch:
        if shards:
            patch.setattr(pool, "WORKERS_PER_SHARD", 1)
        tier = Tier.SECCOMP if shards else Tier(request.param)
        made = start(tier, workers=MORE_THAN_A_SHARD, run_unprotected=tier is Tier.NONE)
    with made as verifier:
        assert isinstance(verifier._desk, ShardedDesk) == shards
        yield verifier


Write = Callable[..., Checker]


@pytest.fixture
def write(tmp_path) -> Write:
    """Makes a checker of a source."""

    def written(source: str, name: str = "judging", imports: tuple[str, ...] = ()) -> Checker:
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return Checker(str(path), imports)

    return written


def verdicts(outcome: Outcome) -> list[str]:
    return [result.verdict for result in outcome.results]


def check(verifier: LocalVerifier, checker: Checker, function: str, *calls: tuple[object, ...]) -> list[str]:
    [outcome] = verifier.run_sync([Job.check(checker, function, calls, limits=LIMITS)])
    return verdicts(outcome)


HOSTILE = (
    "__import__('os').system('touch MARKER')", "'); open('MARKER', 'w'); ('", '"""\nopen("MARKER", "w")\n"""',
    "\\", "\\'", "'''\"\"\"", "{0.__class__}", "%s%n", "\x00", "a\x00b", "\r\n\u2028\x0c", "\ud800", "1\udfff3",
    "caf\u00e9 \u221e \u200b\u202e \U0001f600", "\\N{BULLET} \\x41", "inf", "nan", "set()", "{1, 2}", "f(", ")" * 3000,
    "(" * 3000, "\u00e9" * 50_000, "", " ",
)  # fmt: skip


def test_hostile_text_arrives_unharmed_as_a_plain_string_and_is_never_executed(checking, write, tmp_path) -> None:
    marker = tmp_path / "was_here"
    texts = [text.replace("MARKER", str(marker)) for text in HOSTILE]
    checker = write("def seen(text):\n    return [type(text) is str, len(text), [ord(each) for each in text[:2000]]]\n")
    jobs = [Job.check(checker, "seen", [(text,)], limits=LIMITS) for text in texts]
    outcomes = checking.run_sync([*jobs, Job.check(checker, "seen", [(text,) for text in texts], limits=LIMITS)])
    expected = [f"ok:{[True, len(text), list(map(ord, text[:2000]))]}" for text in texts]
    assert [verdict for outcome in outcomes[:-1] for verdict in verdicts(outcome)] == expected
    assert verdicts(outcomes[-1]) == expected
    assert not marker.exists()


def test_plain_values_pass_both_ways_with_their_types(checking, write) -> None:
    call = (None, True, 1, -2.5, 3j, "x", b"\xff", [1, (2,)], {"a": {"b": [None]}}, {3, 1}, set(), 10**300)
    [outcome] = checking.run_sync([Job.check(write(ECHO), "echo", [call, ()])])
    assert [result.value and literals.parse(result.value) for result in outcome.results] == [list(call), []]
    assert outcome.results[0].value == literals.encode(list(call), 10_000)


def test_what_is_no_plain_value_is_refused_before_it_is_sent(write) -> None:
    class Text(str):
        pass

    checker = write(ECHO)
    for value in (object(), Text("x"), Path(), bytearray()):
        with pytest.raises(TypeError, match="plain values"):
            Job.check(checker, "echo", [(value,)])
    for value in (float("inf"), [float("nan")], {1: (float("-inf"), "x")}, complex(0, float("inf"))):
        with pytest.raises(ValueError, match="no literals"):
            Job.check(checker, "echo", [(value,)])
    with pytest.raises(TypeError, match="tuple of arguments"):
        Job.check(checker, "echo", ["text"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="too deep"):
        Job.check(checker, "echo", [(10**5000,)])
    with pytest.raises(ValueError, match="a name"):
        Job.check(checker, "echo; import os", [("x",)])
    with pytest.raises(ValueError, match="at least one text"):
        Job.check(checker, "echo", [])
    with pytest.raises(ValueError, match="numpy"):
        Job(mode=Job.check(checker, "echo", [()]).mode, texts=("",), numpy=True, checker=checker)


def test_a_checker_is_loaded_once_per_zygote_however_many_calls_there_are(checking, write, tmp_path) -> None:
    loads = tmp_path / "loads"
    checker = write(f"with open({str(loads)!r}, 'a') as file:\n    file.write('x')\n{ECHO}")
    jobs = [Job.check(checker, "echo", [(number,)]) for number in range(60)]
    outcomes = checking.run_sync(jobs)
    assert [verdicts(outcome) for outcome in outcomes] == [[f"ok:[{number}]"] for number in range(60)]
    assert 1 <= len(loads.read_text()) <= checking.zygote_count() < 60


def test_a_loop_is_a_timeout_of_its_job_and_of_no_other(checking, write) -> None:
    checker = write("def spin(text):\n    while text == 'loop': pass\n    return text.upper()\n")
    jobs = [Job.check(checker, "spin", [("loop" if at % 3 == 0 else "x",)] * 2, limits=LIMITS) for at in range(9)]
    expected = [["timeout" if at % 3 == 0 else "ok:'X'"] * 2 for at in range(9)]
    assert [verdicts(outcome) for outcome in checking.run_sync(jobs)] == expected


def test_a_checker_that_loads_slowly_holds_up_nobody_else(checking, write, tmp_path) -> None:
    go = tmp_path / "go"
    checker = write(f"import os, time\nwhile not os.path.exists({str(go)!r}):\n    time.sleep(0.01)\n{ECHO}")
    try:
        more_than_there_is_room_for = 3 * slots(MORE_THAN_A_SHARD)
        under_way = checking.submit([Job.check(checker, "echo", [("x",)])] * more_than_there_is_room_for)
        assert verdicts(checking.run_sync([Job.calls("def f():\n    return 1", [""])])[0]) == ["ok:1"]
        assert not under_way.done()
    finally:
        go.touch()
    assert {outcome.results[0].verdict for outcome in under_way.result()} == {"ok:['x']"}


def test_a_call_leaves_nothing_behind_for_the_next_job(checking, write) -> None:
    checker = write("seen = []\ndef count(text):\n    seen.append(text)\n    return len(seen)\n")
    outcomes = checking.run_sync([Job.check(checker, "count", [("x",), ("y",)])] * 5)
    assert [verdicts(outcome) for outcome in outcomes] == [["ok:1", "ok:2"]] * 5


def test_an_exception_has_its_name_and_other_calls_go_on(checking, write) -> None:
    checker = write("""
        class Odd(ValueError): pass
        def judge(text):
            if text == "odd": raise Odd(text)
            if text == "deep": return judge(text)
            if text == "huge": return bytearray(1 << 40) and 1
            if text == "long": return "x" * 1_000_000
            return object() if text == "live" else int(text)
    """)
    got = check(checking, checker, "judge", *[(text,) for text in ("odd", "1", "x", "deep", "huge", "long", "live")])
    assert got == ["exc:Odd", "ok:1", "exc:ValueError", "exc:RecursionError", "memory", "toolong", "opaque"]
    assert check(checking, checker, "no_such_function", ("x",)) == ["exc:ImportError"]


def test_two_checkers_of_one_name_do_not_mix(checking, write) -> None:
    both = [write(f"def which():\n    return {name!r}\n", f"{name}/judging") for name in ("one", "two")]
    outcomes = checking.run_sync([Job.check(checker, "which", [()]) for checker in both * 5])
    assert [verdicts(outcome) for outcome in outcomes] == [["ok:'one'"], ["ok:'two'"]] * 5


def test_one_checker_is_loaded_with_different_data(checking, write, tmp_path) -> None:
    checker = write("""
        import sys

        TOLD = open(sys.argv[1]).read() if len(sys.argv) > 1 else "nothing"

        def told():
            return [TOLD, len(sys.argv) > 1]
        """)
    for name in ("one", "other"):
        (tmp_path / name).write_text(name)
    own = [Checker(checker.file, data=str(tmp_path / name)) for name in ("one", "other")]
    outcomes = checking.run_sync([Job.check(each, "told", [()], limits=LIMITS) for each in (*own, checker)])
    told = [literals.parse(outcome.results[0].value or "")[0] for outcome in outcomes]
    assert told == ["one", "other", "nothing"]


def test_data_that_is_not_there_is_named(any_verifier, write, tmp_path) -> None:
    checker = write(ECHO)
    with pytest.raises(InputError, match=r"there is no file .*gone, which the checker"):
        check(any_verifier, Checker(checker.file, data=str(tmp_path / "gone")), "echo", ())
    with pytest.raises(InputError, match="cannot read gone"):
        Checker(checker.file, data="gone")


def test_sqlite_works_in_memory_and_reaches_no_file(checking, write, tmp_path) -> None:
    checker = write("""
        import sqlite3
        def answer(script, query):
            database = sqlite3.connect(":memory:")
            database.executescript(script)
            return database.execute(query).fetchall()
    """)
    table = "create table t(a int, b text); insert into t values (1, 'caf\u00e9'), (2, null), (3, 'z');"
    many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) "
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) "
    assert check(
        checking,
        checker,
        "answer",
        (table, "select a, b from t order by b desc"),
        ("create table t(a);" + many + "insert into t select i * 7919 % 20011 from n;", "select max(a) from t"),
        (many, "select group_concat(i) from n where i > (select count(*) from n) - 2"),
    )[:2] == ["ok:[(3, 'z'), (1, 'caf\\xe9'), (2, None)]", "ok:[(20010,)]"]
    assert check(checking, checker, "answer", (table, endless + "select count(*) from n")) == ["timeout"]
    if checking.tier is not Tier.NONE:
        stolen = tmp_path / "stolen"
        attach = f"attach '{stolen}' as other; create table other.t(a);"
        assert check(checking, checker, "answer", (attach, "select 1")) == ["exc:OperationalError"]
        assert not stolen.exists()


def test_a_checker_may_use_all_of_the_standard_library_and_what_lies_beside_it(checking, write, tmp_path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('this is not the json that was meant')\n")
    checker = write("""
        import json, fractions, re, decimal, unicodedata, xml.etree.ElementTree as tree
        import beside, sys
        def use(text):
            return [json.loads(text), str(fractions.Fraction(1, 3)), re.sub("a", "b", "aa"), beside.WORD,
                    unicodedata.name("\u00e9"), tree.fromstring("<a>x</a>").text]
        def path():
            return sys.path
        def late():
            import beside_but_late
    """)
    (tmp_path / "beside_but_late.py").write_text("")
    assert check(checking, checker, "use", ("[1]",)) == [
        "ok:[[1], '1/3', 'bb', 'beside', 'LATIN SMALL LETTER E WITH ACUTE', 'x']"
    ]
    assert check(checking, checker, "path", ()) == ["ok:[]"], "no guest sees where anything lies"
    assert check(checking, checker, "late", ()) == ["exc:ModuleNotFoundError"]


@pytest.mark.parametrize("shards", [False, True], ids=["one process", "shards"])
def test_installed_packages_are_found_where_they_are_named(shards, write, tmp_path, monkeypatch) -> None:
    packages = tmp_path / "packages"
    (packages / "checked_package").mkdir(parents=True)
    (packages / "checked_package" / "__init__.py").write_text("from checked_module import WORD\n")
    (packages / "checked_module.py").write_text("WORD = 'installed'\n")
    (packages / "judging.py").write_text("raise RuntimeError('this is not the checker')\n")
    monkeypatch.syspath_prepend(packages)
    if shards:
        monkeypatch.setattr(pool, "WORKERS_PER_SHARD", 1)
    source = "def word():\n    import checked_package\n    return checked_package.WORD\n"
    with start(Tier.SECCOMP, workers=MORE_THAN_A_SHARD) as verifier:
        assert check(verifier, write(source), "word", ()) == ["exc:ModuleNotFoundError"]
        assert check(verifier, write(source, imports=("checked_package",)), "word", ()) == ["ok:'installed'"]
        with pytest.raises(InputError, match=r"judging\.py imports no_such_package, which this Python does not have"):
            check(verifier, write(source, imports=("json", "no_such_package.part")), "word", ())


BROKEN = {
    "does not compile": ("x = (\n", "SyntaxError: '(' was never closed (judging.py, line 1)"),
    "raises": ("\n\nx = 1\nraise ValueError('not\\n  today \u221e')\n", "line 4: ValueError: not today \\u221e"),
    "calls what raises": ("def f():\n    return 1 / 0\nf()\n", "line 2: ZeroDivisionError: division by zero"),
    "imports what is not there": ("import os\nimport no_such_module\n", "No module named 'no_such_module'"),
    "leaves": ("import sys\nsys.exit('gone')\n", "line 2: SystemExit: gone"),
    "starts a thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n",
        "RuntimeError: it starts threads",
    ),
    "brings a module of the guest's own name": (
        "import sys\nsys.modules['wire'] = sys\n", "ImportError: it imports a module called wire"
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("shards", [False, True], ids=["one process", "shards"])
def test_a_checker_that_cannot_be_loaded_is_refused_in_one_line_at_once(shards, how, write, monkeypatch) -> None:
    if shards:
        monkeypatch.setattr(pool, "WORKERS_PER_SHARD", 1)
    spawn, spawned = zygotes.Zygote._spawn, []

    def counted(zygote, *arguments):
        spawned.append(zygote.flavour.checker)
        return spawn(zygote, *arguments)

    monkeypatch.setattr(zygotes.Zygote, "_spawn", counted)
    source, why = BROKEN[how]
    checker = write(source)
    with start(Tier.SECCOMP, workers=MORE_THAN_A_SHARD) as verifier:
        assert isinstance(verifier._desk, ShardedDesk) == shards
        jobs = [Job.check(checker, "echo", [("x",)], seeds=2)] * 20
        with pytest.raises(InputError) as caught:
            verifier.run_sync(jobs)
        assert caught.value.what.startswith(f"the checker {checker.file} cannot be loaded: ")
        assert why in caught.value.what
        assert "\n" not in str(caught.value)
        if not shards:
            assert spawned.count(checker) <= 2 * MORE_THAN_A_SHARD, "nobody tries again what cannot come right"
        assert verdicts(verifier.run_sync([Job.calls("def f():\n    return 1", [""])])[0]) == ["ok:1"]
        # A shard may be loading the broken file still.
        mended = write(ECHO, "mended" if shards else "judging")
        assert check(verifier, mended, "echo", (1,)) == ["ok:[1]"]


def test_a_checker_that_is_not_there_is_named(any_verifier, tmp_path) -> None:
    with pytest.raises(InputError, match=r"there is no checker .*nowhere\.py"):
        check(any_verifier, Checker(str(tmp_path / "nowhere.py")), "f", ())


def test_a_checker_that_is_never_loaded_is_ended(tmp_path) -> None:
    script = (
        "import json, sys\nsys.path.insert(0, sys.argv[1])\nimport zygote\nzygote._MOST_S = 0.2\n"
        "print(json.dumps(zygote._load(sys.argv[2], [], None, sys.argv[1])))"
    )
    for how in ("while True: pass", "import time\ntime.sleep(60)"):
        (tmp_path / "judging.py").write_text(how)
        words = [sys.executable, "-c", script, str(GUEST), str(tmp_path / "judging.py")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=50)
        word, why = json.loads(done.stdout)
        assert word in ("broken", "busy"), "busy where the machine let it run for less than half of that"
        assert word == "busy" or why.endswith("TimeoutError: loading it takes more than 0.2 s")


def test_a_machine_that_is_short_of_memory_is_not_the_checkers_fault(tmp_path) -> None:
    (tmp_path / "judging.py").write_text("raise MemoryError")
    script = (
        "import json, sys\nsys.path.insert(0, sys.argv[1])\nimport zygote\n"
        "print(json.dumps(zygote._load(sys.argv[2], [], None, sys.argv[1])))"
    )
    words = [sys.executable, "-c", script, str(GUEST), str(tmp_path / "judging.py")]
    assert json.loads(subprocess.run(words, capture_output=True, text=True).stdout)[0] == "busy"


@pytest.mark.parametrize("name", ["my-tasks", "2nd", "caf\u00e9", "wire", "service", "program", "json", "sympy"])
def test_a_file_whose_name_would_be_mistaken_is_refused(name, tmp_path) -> None:
    file = str(tmp_path / f"{name}.py")
    with pytest.raises(InputError, match=r"file another name|letters, digits") as caught:
        Checker(file, ("sympy",))
    assert file in str(caught.value)


def test_a_checker_is_an_absolute_path_and_a_tuple() -> None:
    with pytest.raises(InputError, match="absolute path"):
        Checker("judging.py")
    with pytest.raises(InputError, match="absolute path"):
        Checker("/judging.txt")
    with pytest.raises(TypeError, match="tuple"):
        Checker("/judging.py", ["numpy"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no module"):
        Checker("/judging.py", ("numpy,os",))
    assert {Checker("/judging.py", ("a",)): 1}[Checker("/judging.py", ("a",))] == 1


def test_a_job_and_its_refusal_pass_to_a_shard_and_back(write) -> None:
    job = Job.check(write(ECHO, imports=("json",)), "echo", [("\u00e9",)], seeds=3)
    assert parcels.unpack_job(parcels.pack_job(job)) == job
    assert all(text.isascii() for text in job.texts)
    error = checkers.broken(MATH_VERIFY, "why")
    back = parcels.unpack_error(parcels.pack_error(error))
    assert (type(back), str(back)) == (InputError, str(error))
    assert isinstance(parcels.unpack_error(parcels.pack_error(MachineError("what", "mend"))), MachineError)


def test_zygotes_with_a_checker_hold_little_else(write) -> None:
    flavour = zygotes.flavour_for(Job.check(write(ECHO), "echo", [("\u00e9 \\N{BULLET} import json",)]), 0)
    assert flavour.modules is zygotes.Modules.CORE
    assert flavour.checker == write(ECHO)


def test_several_seeds_tell_a_checker_that_is_not_deterministic(any_verifier, write) -> None:
    checker = write("def order():\n    return list({'a', 'b', 'c', 'd', 'e', 'f'})\n")
    [outcome] = any_verifier.run_sync([Job.check(checker, "order", [()], seeds=2)])
    assert outcome.status is Status.NONDETERMINISTIC
