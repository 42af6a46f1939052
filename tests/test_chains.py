"""The base that comes with the package, and the family that it was trained on (tools/chains)."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import torch
from chains import KIND, LEVELS, RATES, TRACE, draw, level, pieces, proposal, uniform_test, write_seeds
from evaluate import examine, proposals, uniform_tasks
from hypothesis import given
from hypothesis import strategies as st
from learn import run
from pretrain import Document, make_tokenizer, propose, solve, train
from tasks.proposing import CODE

from redqueen.commands.main import main
from redqueen.engine.base import load
from redqueen.engine.known import EMBEDDED
from redqueen.engine.local import LocalEngine
from redqueen.settings import load as load_settings
from redqueen.tasks.code import CodeTask
from redqueen.tasks.files import read_seeds
from redqueen.tasks.protocol import Attempt
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import LocalVerifier

CHAINS = st.integers(1, LEVELS).flatmap(lambda at: st.integers().map(lambda seed: draw(at, Random(seed))))


@pytest.fixture(scope="module")
def verifier() -> Iterator[LocalVerifier]:
    with LocalVerifier() as pool:
        yield pool


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    with LocalEngine(load("chains", device=torch.device("cpu"), dtype=torch.float32), rank=4, rows=256) as opened:
        yield opened


# The family


@given(CHAINS)
def test_a_chains_level_is_its_number_of_additions(chain):
    assert level(chain.task.program) == chain.level == len(chain.terms)


@given(CHAINS)
def test_a_chains_answer_is_what_its_program_returns(chain):
    scope: dict = {}
    exec(chain.task.program, scope)
    assert str(scope["f"](chain.given)) == chain.task.outputs[0] == chain.trace[-1]


def test_the_verifier_returns_what_chains_say_and_the_test_is_the_same_every_time(verifier):
    tasks = asyncio.run(uniform_tasks(verifier))
    assert [level(task.program) for task in tasks] == [at for at in range(1, LEVELS + 1) for _ in range(20)]
    assert len({(task.program, task.inputs) for task in tasks}) == 200
    assert tasks[0].program == "def f(x):\n    a = x + 1\n    return a % 10"
    assert uniform_test() == uniform_test()


# The base


def test_the_base_comes_with_the_package_and_is_listed(capsys):
    assert main(["base", "list"]) == 0
    assert "comes with the package" in capsys.readouterr().out
    assert main(["base", "pull", "chains"]) == 0
    assert capsys.readouterr().out == f"chains is here: {EMBEDDED['chains'].folder}\n"
    assert sum(file.stat().st_size for file in EMBEDDED["chains"].folder.iterdir()) < 1e6


def test_the_base_knows_the_prompts_that_the_code_family_writes():
    """A word changed there would leave it with tokens that it has never seen: it would have to be trained anew."""
    tokenizer = load("chains", device=torch.device("cpu"), dtype=torch.float32).tokenizer
    assert tokenizer is not None
    assert tokenizer.get_vocab() == make_tokenizer().get_vocab()
    assert set(pieces()) <= set(tokenizer.get_vocab())


def test_a_text_comes_back_from_its_tokens_as_it_was(engine):
    for text in (proposal(uniform_test()[-1]), "any \u00fcber text\n\n\n```", "x=3=4"):
        assert engine.base.decode(engine.base.encode(text)) == text


def test_it_proposes_valid_chains_of_all_levels_and_mostly_low_ones(engine, verifier):
    proposed = asyncio.run(proposals(engine, verifier, None, 256))
    assert proposed.valid > 0.95
    assert 2.5 < proposed.mean_level < 3.6
    assert set(proposed.levels) == set(range(1, LEVELS + 1))


def test_its_solve_rate_falls_with_the_level_through_what_pays_teachers_best(engine, verifier):
    [result] = asyncio.run(examine(engine, verifier, [None], asyncio.run(uniform_tasks(verifier)), attempts=4))
    assert result.well_formed > 0.98
    assert 0.2 < result.mean < 0.3
    # 80 attempts of each level: three standard errors are at most 0.17.
    assert all(abs(found - wanted) < 0.17 for found, wanted in zip(result.accuracy, RATES, strict=True))
    assert result.accuracy[0] > result.accuracy[2] > 0.26 > result.accuracy[5]


def test_with_a_trace_it_is_right_at_every_level(engine, verifier):
    tasks = asyncio.run(uniform_tasks(verifier))
    [result] = asyncio.run(examine(engine, verifier, [None], tasks, attempts=1, begin=TRACE))
    assert min(result.accuracy) >= 0.9
    assert result.mean >= 0.98


# How it was made


def documents(count: int, make) -> list[Document]:
    base = load("chains", device=torch.device("cpu"), dtype=torch.float32)
    rng = Random(0)
    return [make(base, rng) for _ in range(count)]


def test_documents_are_prompts_and_sound_completions(engine, verifier):
    texts = [engine.base.decode(document.completion) for document in documents(40, propose)]
    assert not any(isinstance(KIND.parse_proposal(text, {}), Rejection) for text in texts)
    made = documents(200, solve)
    by_prompt = {engine.base.encode(KIND.solve_prompt(task).messages): task for task in _asked(made)}
    attempts = [Attempt(by_prompt[each.prompt], engine.base.decode(each.completion)) for each in made]
    verdicts = asyncio.run(KIND.grade(attempts, verifier))
    assert all(verdict.well_formed for verdict in verdicts)
    traced = [verdict.correct for verdict, each in zip(verdicts, attempts, strict=True) if each.text.startswith(TRACE)]
    assert len(traced) > 60
    assert all(traced)


def _asked(made: list[Document]) -> Iterator[CodeTask]:
    """What the documents ask, drawn again as it was drawn."""
    rng = Random(0)
    for _ in made:
        chain = draw(rng.randint(1, LEVELS), rng)
        yield chain.task
        if rng.random() >= 0.5:
            rng.randrange(10)


def test_decisions_weigh_as_much_as_makes_them_as_frequent_as_wanted(engine):
    """Over many documents, what a trace's first token weighs is the part of the attempts that are to have one."""
    made = documents(4000, solve)
    first = engine.base.encode(TRACE)[0]
    for at in (1, 4):
        length = len(engine.base.encode(KIND.solve_prompt(draw(at, Random(0)).task).messages))
        own = [document for document in made if len(document.prompt) == length]
        traces = sum(document.weights[0] for document in own if document.completion[0] == first)
        total = sum(document.weights[0] for document in own)
        assert traces / total == pytest.approx((RATES[at - 1] - 0.1) / 0.9, abs=0.08)


def test_the_same_seed_trains_the_same_base():
    made = [train(32, 1, 2, 8, 1e-3, torch.device("cpu"), seed, documents=64) for seed in (0, 0, 1)]
    first, again, other = ([w.detach() for w in base.model.parameters()] for base in made)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_the_seeds_are_low_chains_that_a_run_can_begin_with(tmp_path):
    write_seeds(tmp_path / "seeds.jsonl")
    assert (tmp_path / "seeds.jsonl").read_text() == EMBEDDED["chains"].seeds.read_text()
    seeds = read_seeds(EMBEDDED["chains"].seeds, CODE)
    lines = [json.loads(line) for line in EMBEDDED["chains"].seeds.read_text().splitlines()]
    assert len(seeds) == len(lines) == 12
    assert {level(line["program"]) for line in lines} == {1, 2, 3}


def test_the_experiments_settings_are_sound():
    settings = load_settings(str(Path(__file__).parents[1] / "tools" / "chains" / "chains.toml"))
    assert settings.engine.base == "chains"
    assert settings.tasks.kinds == ("code_o",)


# What is learnt


def test_students_learn_to_work_chains_out_and_their_teachers_write_longer_ones(tmp_path):
    outcome = run("learn", 0, tmp_path, [("run.steps", "6"), ("rl.lr", "4e-3")])
    assert outcome.before < 0.3
    assert outcome.after > 0.7
    assert outcome.level_last > outcome.level_first + 1
