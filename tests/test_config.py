"""Settings: what loads, what is refused, and that a refusal is one line that helps."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from redqueen.engine.shapes import random_base
from redqueen.errors import ConfigError
from redqueen.plugins import MATCHMAKERS, REGISTRIES
from redqueen.population.results import Rule
from redqueen.resources import open_engine, place
from redqueen.settings import Affects, Config, affecting, dump, flat, keys, load, override, presets
from redqueen.settings.models import (
    EngineConfig,
    EvolutionConfig,
    MatchConfig,
    PopulationConfig,
    RlConfig,
    VerifierConfig,
)
from redqueen.settings.toml import to_toml
from redqueen.training.checks import check, refuse_idle


def written(folder: Path, text: str) -> str:
    path = folder / "my.toml"
    path.write_text(text)
    return str(path)


def refusal(source: str | None = None, overrides: tuple[tuple[str, str], ...] = ()) -> str:
    with pytest.raises(ConfigError) as caught:
        settings = load(source, overrides)
        check(settings)
        refuse_idle(settings)
    assert caught.value.what
    assert caught.value.mend
    assert str(caught.value).isprintable(), "a refusal is one printable line"
    return str(caught.value)


def test_without_a_source_the_defaults_hold():
    assert load() == Config()


def test_the_default_preset_spells_out_the_defaults_and_names_every_setting():
    assert load("default") == Config()
    text = (files("redqueen.settings") / "presets" / "default.toml").read_text()
    for section, field in Config.model_fields.items():
        [part] = [each for each in text.split("\n[") if each.startswith(f"{section}]")]
        assert all(f"{name} = " in part for name in getattr(field.annotation, "model_fields", {}))


def test_every_preset_loads_and_makes_a_race():
    for name in presets():
        check(load(name))


def test_an_override_wins_over_the_file(tmp_path):
    source = written(tmp_path, '[verifier]\nminimum = "seccomp"\nworkers = 3\n')
    config = load(source, [("verifier.minimum", "full")])
    assert config.verifier.minimum == "full"
    assert config.verifier.workers == 3


def test_an_override_can_mend_a_contradiction_in_the_file(tmp_path):
    source = written(tmp_path, '[verifier]\ntier = "seccomp"\nminimum = "full"\n')
    assert load(source, {"verifier.minimum": "seccomp"}).verifier.tier == "seccomp"


def test_the_last_of_two_overrides_wins():
    assert load(None, [("verifier.workers", "2"), ("verifier.workers", "5")]).verifier.workers == 5


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("verifier.workers", "4", 4),
        ("verifier.workers", "none", None),
        ("verifier.run-unprotected", "true", True),
        ("verifier.run_unprotected", "false", False),
        ("verifier.tier", "full", "full"),
        ("engine.alpha", "8", 8.0),
        ("engine.base", "ORG/MODEL", "ORG/MODEL"),
        ("engine.target-modules", "q_proj", ("q_proj",)),
        ("engine.target-modules", "q_proj, v_proj", ("q_proj", "v_proj")),
        ("engine.target-modules", "none", None),
        ("match.exclude", "t0:s1, t1:s0", ("t0:s1", "t1:s0")),
        ("match.exclude", "", ()),
        ("match.panel", "2", 2),
        ("evolution.share", "0.5", 0.5),
        ("evolution.operators", "dare,my.py:MINE", ("dare", "my.py:MINE")),
        ("evolution.inject", "true", True),
    ],
)
def test_override_text_becomes_a_value_of_the_fields_type(key, text, value):
    section, _, name = key.replace("-", "_").partition(".")
    assert getattr(getattr(load(None, [(key, text)]), section), name) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[verifier]\nminumum = "full"\n', "did you mean verifier.minimum?"),
        ('minimum = "full"\n', "did you mean verifier.minimum?"),
        ('[verifer]\nminimum = "full"\n', "did you mean verifier?"),
        ("[zzz]\nq = 1\n", "the settings are run.seed, run.steps"),
        ('[verifier]\nminimum = "ful"\n', """verifier.minimum cannot be "ful"; use 'full' or 'seccomp'"""),
        ("[verifier]\nworkers = 0\n", "verifier.workers cannot be 0; use 1 or more"),
        ("[verifier]\nworkers = 9999\n", "verifier.workers cannot be 9999; use 1024 or less"),
        ('[verifier]\nworkers = "4"\n', 'verifier.workers cannot be "4"; use a whole number'),
        ("[verifier]\nworkers = true\n", "verifier.workers cannot be true; use a whole number"),
        ("[verifier]\nrun_unprotected = 1\n", "verifier.run_unprotected cannot be 1; use true or false"),
        ("verifier = 3\n", "write it as a section, [verifier]"),
        ("[verifier\n", "is not TOML"),
        ("[verifier]\ntier = best\n", "line 2"),
        ('"a\\nb" = 1\n', "unknown setting 'a\\nb'"),
        ("x = " + "[" * 3000, "nested too deeply"),
        ("[verifier]\nworkers = 0x" + "f" * 9000, "verifier.workers cannot be 0xfff"),
        ("[engine]\ntarget_modules = []\n", "name at least one, or leave it out"),
        ('[engine]\ntarget_modules = "q_proj"\n', 'write a list, such as ["q_proj", "v_proj"]'),
        ('[match]\nexclude = "t0:s0"\n', 'write a list, such as ["t0:s0", "t1:s1"]'),
        ("[evolution]\noperators = []\n", "name at least one, or leave it out"),
        ("[evolution]\nshare = 1.0\n", "evolution.share cannot be 1.0; use a number below 1"),
        ("[population]\nstudents = 0\n", "population.students cannot be 0; use 1 or more"),
        ("[match]\nmaker = 3\n", "match.maker cannot be 3; write it in quotes"),
        ("[engine]\ntarget_modules = [3]\n", "engine.target_modules.0 cannot be 3; write it in quotes"),
        ("[engine]\nalpha = 0\n", "engine.alpha cannot be 0; use a number above 0"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_that_names_it_and_helps(tmp_path, monkeypatch, text, told):
    written(tmp_path, text)
    # Long paths are not shown whole.
    monkeypatch.chdir(tmp_path)
    message = refusal("my.toml")
    assert told in message
    assert "my.toml" in message


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("verifier.minumum", "full", "did you mean verifier.minimum?"),
        ("verifier", "full", "did you mean verifier."),
        ("verifier.workers.x", "1", "did you mean verifier.workers?"),
        ("", "1", "the settings are"),
        ("verifier.workers", "many", 'verifier.workers cannot be "many"; use a whole number'),
        ("verifier.run-unprotected", "maybe", "use true or false"),
        ("engine.target-modules", "q_proj,,v_proj", 'engine.target_modules.1 cannot be ""; write a name'),
        ("engine.alpha", "much", "use a number"),
    ],
)
def test_a_bad_override_is_refused_in_one_line_that_helps(key, text, told):
    assert told in refusal(None, ((key, text),))


def test_a_wrong_override_is_not_blamed_on_the_file(tmp_path):
    source = written(tmp_path, "[verifier]\nworkers = 2\n")
    assert "my.toml" not in refusal(source, (("verifier.workers", "0"),))
    assert "my.toml" not in refusal(source, (("engine.target-modules", ""),))


def test_a_missing_file_names_the_presets(tmp_path):
    message = refusal(str(tmp_path / "nope.toml"))
    assert "there is no settings file" in message
    assert all(name in message for name in presets())


def test_what_is_not_a_text_file_is_refused(tmp_path):
    assert "directory" in refusal(str(tmp_path))
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    assert "not UTF-8" in refusal(str(tmp_path / "latin.toml"))
    refusal("nul\0byte")


@pytest.mark.parametrize(
    "settings",
    [
        {"verifier.tier": "seccomp", "verifier.minimum": "full"},
        {"verifier.run-unprotected": "true", "verifier.minimum": "full"},
        {"verifier.run-unprotected": "true", "verifier.tier": "full"},
    ],
)
def test_settings_that_contradict_each_other_are_refused_by_name(settings):
    message = refusal(None, tuple(settings.items()))
    assert all(key.replace("-", "_") in message for key in settings)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"match.exclude": "t0"}, 'match.exclude cannot hold "t0"; name a teacher'),
        ({"match.exclude": "s0:t0"}, 'such as "t0:s0"'),
        ({"match.exclude": "t0:s4"}, "match.exclude names s4, and there is no such seat; the seats are s0 to s3"),
        ({"match.exclude": "t9:s0", "population.teachers": "1"}, "no such seat; the only one is t0"),
        ({"match.exclude": "t0:s0,t1:s0,t2:s0,t3:s0"}, "nobody for s0 to play"),
        ({"match.exclude": "t1:s0,t1:s1,t1:s2,t1:s3"}, "nobody for t1 to play"),
        ({"match.panel": "5"}, "match.panel = 5 wants more students than population.students = 4"),
        ({"match.panel": "4", "match.exclude": "t2:s2"}, "than match.exclude leaves to t2; use a panel of at most 3"),
        ({"evolution.elites": "4"}, "evolution.elites = 4 spares all of population.teachers = 4"),
        ({"rl.update": "none", "evolution.every": "0"}, "nothing would ever change"),
        ({"rl.update": "none", "population.teachers": "1", "population.students": "1"}, "replaces nobody"),
    ],
)
def test_a_race_that_cannot_be_run_is_refused_before_it_starts(settings, told):
    assert told in refusal(None, tuple(settings.items()))


SINGLE = {"population.single": "true", "population.teachers": "1", "population.students": "1", "evolution.every": "0"}
GENETIC = {"rl.update": "none"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({**SINGLE, "rl.share": "students"}, 'rl.share = "students" would do nothing: there are no two members'),
        ({**SINGLE, "rl.teacher-lr": "1e-5"}, "rl.teacher_lr = 1e-05 would do nothing: one adapter in both roles"),
        ({**SINGLE, "evolution.pull": "0.5"}, "evolution.pull = 0.5 would do nothing: no role has two members"),
        ({**SINGLE, "evolution.trial": "4"}, "evolution.trial = 4 would do nothing: nobody is ever replaced"),
        ({"evolution.every": "0", "evolution.trial": "4"}, "evolution.trial = 4 would do nothing: nobody is ever"),
        ({"evolution.every": "0", "evolution.inject": "true"}, "evolution.inject = true would do nothing: nobody is"),
        ({"population.students": "1", "rl.share": "students"}, 'rl.share = "students" would do nothing'),
        ({"rl.frozen": "students", "rl.share": "students"}, 'rl.share = "students" would do nothing'),
        ({"rl.frozen": "students", "tasks.replay": "2"}, "tasks.replay = 2 would do nothing: no student learns"),
        ({"rl.frozen": "teachers", "rl.teacher-lr": "1e-5"}, "rl.teacher_lr = 1e-05 would do nothing: no teacher"),
        ({**GENETIC, "rl.share": "everybody"}, 'rl.share = "everybody" would do nothing'),
        ({**GENETIC, "rl.teacher-lr": "1e-5"}, "rl.teacher_lr = 1e-05 would do nothing: no teacher learns"),
        ({**GENETIC, "rl.full-rows": "8"}, "rl.full_rows = 8 would do nothing: nobody learns"),
        ({**GENETIC, "rl.half-life": "8"}, "rl.half_life = 8 would do nothing: nobody learns"),
        ({**GENETIC, "tasks.replay": "2"}, "tasks.replay = 2 would do nothing"),
        ({**GENETIC, "evolution.pull": "0.5"}, "evolution.pull = 0.5 would do nothing: no role has two members that"),
    ],
)
def test_what_would_do_nothing_is_refused(settings, told):
    message = refusal(None, tuple(settings.items()))
    assert told in message
    name, off = re.fullmatch(r".*; set (\S+) to (\S+)", message).groups()  # pyright: ignore[reportOptionalMemberAccess]
    mended = override(load(None, settings), {name: off.strip('"')})
    check(mended)
    refuse_idle(mended)


def test_what_a_preset_asks_for_and_would_do_nothing_is_turned_off_as_the_refusal_says():
    pair = (("population.teachers", "1"), ("population.students", "1"))
    assert refusal("demo", pair).endswith("; set evolution.pull to 0.0")


@pytest.mark.parametrize(
    "settings",
    [
        {**SINGLE, "rl.teacher-temperature": "0.8", "tasks.replay": "2", "rl.full-rows": "8"},
        {"population.teachers": "1", "rl.share": "everybody", "evolution.pull": "0.5", "evolution.trial": "4"},
        {"rl.frozen": "teachers", "rl.share": "everybody", "tasks.replay": "2", "evolution.trial": "4"},
        {**GENETIC, "evolution.trial": "4", "rl.teacher-temperature": "0.8"},
        {"evolution.every": "0", "rl.share": "students", "evolution.pull": "0.5"},
    ],
)
def test_what_does_something_for_somebody_is_not(settings):
    check(load(None, settings))
    refuse_idle(load(None, settings))


def test_a_race_of_two_is_fine_as_it_comes():
    check(load(None, {"population.teachers": "1", "population.students": "1"}))


def test_with_the_maker_all_a_teacher_has_one_match_a_step_however_many_students_there_are():
    race = {"match.maker": "all", "population.teachers": "2", "population.students": "8", "evolution.every": "0"}
    few = {"tasks.prompts": "1", "tasks.proposals": "2"}
    assert "2 texts, too few for a teacher to learn from" in refusal(None, tuple((race | few).items()))
    check(load(None, race | {"tasks.prompts": "4", "tasks.proposals": "2"}))


def test_a_field_says_what_the_setting_affects():
    beside = {key for key in keys() if key.startswith(("cluster.", "evals.", "track."))} - {"cluster.shards"}
    kept = {"run.checkpoint_every", "run.keep_last", "run.keep_every", "run.ruler_every", "verifier.workers"}
    assert affecting(Affects.NOTHING) == beside | kept | {"guard.sources"}
    assert (affecting(Affects.LENGTH), affecting(Affects.SEED)) == ({"run.steps", "run.flops"}, {"run.seed"})
    members = {"population.teachers", "population.students", "population.single"}
    adapters = {"engine.base", "engine.rank", "engine.alpha", "engine.target_modules"}
    assert affecting(Affects.MEMBERS) == members | adapters
    assert affecting(*Affects) == keys() == set(flat(Config()))


def test_excluded_pairs_are_read_as_seats():
    settings = load(None, {"match.exclude": "t0:s1,t3:s2"}).match
    assert settings.kept_apart == {("t0", "s1"), ("t3", "s2")}


def test_the_settings_offer_what_is_registered():
    assert get_args(MatchConfig.model_fields["rule"].annotation) == get_args(Rule)
    several = {"tasks.families", "evolution.operators", "evals.suite"}
    usual = flat(Config())
    for registry in REGISTRIES:
        names = usual[registry.setting] if registry.setting in several else [usual[registry.setting]]
        assert {*names} <= {*registry.names()}, "the defaults are there"
        message = refusal(None, ((registry.setting, "nonesuch"),))
        prefixed = (f"{prefix}:{made.stands_for}" for prefix, made in registry.prefixes.items())
        listed = ", ".join((*registry.suites, *registry.builtins, *prefixed))
        taking = "".join(f", {own}:FILE" for own in registry.of_files)
        assert message == f'{registry.setting} cannot be "nonesuch"; use FILE.py:NAME{taking} or one of {listed}'


@pytest.mark.parametrize(
    ("setting", "text", "meant"),
    [
        ("match.maker", "round-robin", "round_robin"),
        ("rl.estimator", "reinforce", "reinforce++"),
        ("rl.reward", "learnable", "learnability"),
        ("evolution.operators", "dare,spektral sigma=0.2", "spectral"),
        ("evolution.selection", "tournaments", "tournament"),
        ("evals.suite", "gsm8k,humaneval", "humaneval_plus"),
    ],
)
def test_a_plug_in_that_is_almost_right_is_put_right(setting, text, meant):
    assert f"; did you mean {meant}? Or use FILE.py:NAME or one of " in refusal(None, ((setting, text),))


def test_settings_load_where_their_plug_ins_are_not(tmp_path):
    """As those of a run do that came from another machine: only a race needs the plug-ins."""
    source = written(tmp_path, '[rl]\nestimator = "theirs"\n[tasks]\nfamilies = ["gone.py:FAMILY"]\n')
    settings = load(source)
    assert (settings.rl.estimator, settings.tasks.families) == ("theirs", ("gone.py:FAMILY",))
    assert load(written(tmp_path, dump(settings))) == settings
    assert "there is no file gone.py" in refusal(source)


def test_settings_do_not_change_once_made():
    with pytest.raises(ValueError, match="frozen"):
        Config().verifier.__setattr__("workers", 3)


def test_a_list_in_the_file_is_a_tuple_in_the_settings(tmp_path):
    source = written(tmp_path, '[engine]\ntarget_modules = ["q_proj", "v_proj"]\n')
    assert load(source).engine.target_modules == ("q_proj", "v_proj")


@pytest.mark.parametrize("asked", ["best", "bfloat16", "float32"])
def test_the_dtype_is_the_asked_one_or_what_suits_the_device(asked):
    on_cpu = {"best": torch.float32}.get(asked) or getattr(torch, asked)
    assert place(EngineConfig(device="cpu", dtype=asked)) == (torch.device("cpu"), on_cpu)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has what the test is about the lack of")
def test_cuda_without_cuda_is_refused_in_one_line():
    assert place(EngineConfig())[0].type == "cpu"
    with pytest.raises(ConfigError, match=r"no CUDA device here; .*cpu"):
        place(EngineConfig(device="cuda"))


def test_an_engine_is_opened_as_the_settings_ask(tmp_path):
    random_base("tiny", device=torch.device("cpu"), dtype=torch.float32).model.save_pretrained(tmp_path)
    settings = EngineConfig(
        base=str(tmp_path),
        rank=4,
        alpha=6,
        target_modules=("q_proj", "v_proj"),
        rows=24,
        device="cpu",
        dtype="float32",
    )
    with open_engine(settings, ["a", "b"]) as engine:
        assert (engine.members, engine.dtype, engine.sampler.backend.rows) == (["a", "b"], torch.float32, 24)
        state = engine.read("b")
    assert (state.rank, state.alpha) == (4, 6.0)
    assert {name.rpartition(".")[2] for name in state.factors} == {"q_proj", "v_proj"}


verifiers = st.builds(
    dict,
    tier=st.sampled_from(["best", "full", "seccomp"]),
    minimum=st.sampled_from(["full", "seccomp"]),
    run_unprotected=st.booleans(),
    workers=st.none() | st.integers(1, 1024),
)
engines = st.builds(
    EngineConfig,
    base=st.text(min_size=1),
    rank=st.integers(1, 4096),
    alpha=st.none() | st.floats(1e-9, 1e9),
    target_modules=st.none() | st.lists(st.text(min_size=1), min_size=1, max_size=3),
    device=st.sampled_from(["best", "cuda", "cpu"]),
)
races = st.builds(
    dict,
    population=st.builds(PopulationConfig, teachers=st.integers(1, 9), students=st.integers(1, 9)),
    match=st.builds(
        MatchConfig,
        maker=st.sampled_from(list(MATCHMAKERS.names())),
        panel=st.none() | st.integers(1, 9),
        exclude=st.lists(st.sampled_from(["t0:s0", "t1:s0", "t0:s1", "t8:s8"]), max_size=2),
    ),
    evolution=st.builds(
        EvolutionConfig,
        every=st.integers(0, 100),
        share=st.floats(0.01, 0.99),
        elites=st.integers(0, 3),
        operators=st.lists(st.text(min_size=1), min_size=1, max_size=3),
    ),
    rl=st.builds(RlConfig, update=st.sampled_from(["reinforce", "none"])),
)


@given(verifiers, engines, races)
def test_what_is_dumped_loads_back_equal(tmp_path_factory, fields, engine, race):
    try:
        config = Config(verifier=VerifierConfig(**fields), engine=engine, **race)
    except ConfigError:
        return
    path = tmp_path_factory.mktemp("dump") / "config.toml"
    path.write_text(dump(config))
    assert load(str(path)) == config


values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)
tables = st.recursive(
    st.dictionaries(st.text(max_size=8), values, max_size=4),
    lambda inner: st.dictionaries(st.text(max_size=8), values | inner, max_size=4),
    max_leaves=6,
)


@given(tables)
def test_any_table_of_plain_values_survives_toml(table):
    assert tomllib.loads(to_toml(table)) == table


@given(st.text())
def test_no_text_makes_the_reader_do_anything_but_load_or_refuse(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("any") / "any.toml"
    path.write_text(text, newline="")
    try:
        load(str(path))
    except ConfigError as error:
        assert str(error).isprintable()


@given(st.text(), st.text())
def test_no_override_does_anything_but_load_or_be_refused(key, text):
    known = ("verifier.workers", "verifier.tier", "engine.target-modules", "engine.alpha", "match.exclude")
    for name in (key, f"verifier.{key}", *known):
        try:
            load(None, [(name, text)])
        except ConfigError as error:
            assert str(error).isprintable()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[tasks]\nprompts = 1\nproposals = 4\n",
            "4 texts, too few for a teacher to learn from; make their product 8",
        ),
        (
            '[population]\nteachers = 2\nstudents = 8\n[tasks]\nprompts = 1\nproposals = 2\n[match]\nmaker = "all"\n',
            "2 texts, too few for a teacher to learn from; make their product 8",
        ),
        ('[tasks]\nattempts = 1\n[rl]\nestimator = "rloo"\n', "nothing to compare; use 2 or more"),
        ('[tasks]\nkinds = ["code_x"]\n', "no such kind; the kinds are code_o, code_i, code_f"),
        ("[tasks]\nmix = [1.0]\n", "tasks.mix has 1 numbers for 3 kinds"),
        ("[population]\nsingle = true\n", "use `--arm single`"),
        ('[guard]\ndeny = ["("]\n', "guard.deny: pattern 1, '(', is no regular expression"),
    ],
)
def test_a_race_that_could_not_be_run_or_learn_is_refused(tmp_path, text, told):
    assert told in refusal(written(tmp_path, text))


def test_a_pattern_on_the_command_line_is_taken_whole():
    assert load(None, [("guard.deny", "x{1,3}")]).guard.deny == ("x{1,3}",)


def test_numbers_of_a_list_may_be_written_on_the_command_line():
    assert load(None, [("tasks.mix", "2, 1,0.5")]).tasks.mix == (2.0, 1.0, 0.5)
