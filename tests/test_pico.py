"""The base `pico` and how it was made (tools/pico): programs, documents, training, and what the base can do."""

import asyncio
import json
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import pretrain_pico
import pytest
import torch
from documents import CODE_F, CODE_I, CODE_O, MIX, Document, document, exam, fixed_pieces, function_task, seeds, task
from grammar import DEPTHS, LEARNT, TYPES, examined, grow, learnable, other_inputs, outputs
from hypothesis import given
from hypothesis import strategies as st
from pretrain_pico import Batches, make_model, rate_at, train
from shards import ASKED, END, REPLY, make_shard, make_tokenizer
from tasks.proposing import CODE

from redqueen.engine.base import Base, load
from redqueen.engine.known import EMBEDDED
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import SampleRequest, Stop
from redqueen.tasks.code import CodeTask
from redqueen.tasks.files import read_seeds
from redqueen.tasks.protocol import Attempt
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import LocalVerifier

FOLDER = EMBEDDED["pico"].folder
PROGRAMS = st.tuples(st.integers(1, DEPTHS), st.integers(0, 2**32)).map(lambda drawn: grow(drawn[0], Random(drawn[1])))


@pytest.fixture(scope="module")
def verifier() -> Iterator[LocalVerifier]:
    with LocalVerifier() as pool:
        yield pool


@pytest.fixture(scope="module")
def base() -> Base:
    return load("pico", device=torch.device("cpu"), dtype=torch.float32)


# Programs


@given(PROGRAMS)
def test_a_program_returns_what_it_was_grown_to(program):
    scope: dict = {}
    exec(program.text, scope)
    assert repr(eval(f"f({program.given})", scope)) == program.output
    inputs = other_inputs(program, 4, Random(1))
    assert inputs[0] == program.given and next(outputs(program, inputs)) == program.output


@given(PROGRAMS)
def test_a_trace_is_what_every_variable_comes_to(program):
    body = "\n".join(line[4:] for line in program.text.partition("def f(")[2].split("\n")[1:-1])
    scope: dict = {}
    exec(program.text.partition("def f(")[0], scope)
    exec(f"{'x, y' if program.second else 'x'} = {program.given}", scope)
    exec(body, scope)
    lines = [line.partition("=") for line in program.trace.splitlines()]
    assert [name for name, _, _ in lines] == [step.name for step in program.steps]
    assert all(values.endswith(repr(scope[name])) for name, _, values in lines)


def test_programs_are_of_the_depth_that_was_asked_for_and_of_every_type():
    programs = [grow(depth, Random(seed)) for depth in range(1, DEPTHS + 1) for seed in range(12)]
    assert [program.depth for program in programs] == [depth for depth in range(1, DEPTHS + 1) for _ in range(12)]
    assert {program.band for program in programs} == {1, 2, 3, 4, 5}
    assert {program.takes for program in programs} == set(TYPES)


def test_what_is_examined_is_never_learnt():
    rng = Random(3)
    for _ in range(60):
        learnt = learnable(rng, rng.randint(1, LEARNT))
        assert not learnt.unseen and not learnt.has_unseen_pair
        new, paired = examined(rng, 4, pair=False), examined(rng, 4, pair=True)
        assert new.unseen and not new.has_unseen_pair
        assert paired.has_unseen_pair


def test_deep_programs_still_depend_on_their_input():
    rng = Random(4)
    varied = []
    for _ in range(60):
        program = grow(8, rng)
        varied.append(len(set(outputs(program, other_inputs(program, 6, rng)))))
    assert sum(varied) / len(varied) > 3


# Documents


@pytest.mark.parametrize("make", list(MIX))
def test_what_a_document_answers_is_right(make, verifier):
    rng = Random(5)
    for _ in range(6):
        one = make(rng)
        asyncio.run(_judge(make.__name__, one, rng, verifier))


async def _judge(name: str, one: Document, rng: Random, verifier: LocalVerifier) -> None:
    if name == "propose_program":
        draft = CODE_O.parse_proposal(one.completion, {})
        assert not isinstance(draft, Rejection)
        assert isinstance((await CODE_O.validate([draft], verifier))[0], CodeTask)
    elif name == "propose_function":
        program = one.prompt.partition("```python\n")[2].partition("\n```")[0]
        draft = CODE_F.parse_proposal(one.completion, {"program": program})
        assert not isinstance(draft, Rejection) and len(draft.inputs) == 8
    elif name == "write_function":
        assert "def f(" in one.completion and "Write the program." in one.prompt
    else:
        program = one.prompt.partition("```python\n")[2].partition("\n```")[0]
        given = (
            (one.prompt if name == "predict_output" else one.completion).partition("```input\n")[2].partition("\n")[0]
        )
        kind = CODE_O if name == "predict_output" else CODE_I
        draft = CODE_O.parse_proposal(f"```python\n{program}\n```\n```input\n{given}\n```", {})
        assert not isinstance(draft, Rejection)
        [made] = await CODE_O.validate([draft], verifier)
        assert isinstance(made, CodeTask)
        [verdict] = await kind.grade([Attempt(made, one.completion, False)], verifier)
        assert verdict.correct


def test_a_function_task_shows_half_of_its_pairs_and_neither_half_is_constant():
    rng = Random(6)
    made = [function_task(learnable(rng, 2), rng) for _ in range(20)]
    for one in made:
        if one is not None:
            assert len(set(one.outputs[: one.shown])) > 1 and len(set(one.outputs[one.shown :])) > 1


def test_the_tokenizer_gives_back_every_document_and_splits_digits():
    rng = Random(7)
    tokenizer = make_tokenizer(one.prompt + one.completion for one in (document(rng) for _ in range(300)))
    for one in (document(rng) for _ in range(30)):
        text = f"{ASKED}{one.prompt}{REPLY}{one.completion}{END}"
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode("1234")) == 4
    assert all(len(tokenizer.encode(piece)) == 1 for piece in fixed_pieces())


def test_a_shard_has_no_document_twice_and_is_the_same_every_time(monkeypatch):
    monkeypatch.setattr("shards.SHARD", 48)
    one, other, third = (make_shard(number, 0, str(FOLDER / "tokenizer.json")) for number in (1, 1, 2))
    assert (one.tokens == other.tokens).all() and (one.lengths == other.lengths).all()
    assert one.tokens[:200].tolist() != third.tokens[:200].tolist()
    starts = [0, *one.lengths.cumsum()]
    texts = {tuple(one.tokens[start:end].tolist()) for start, end in pairwise(starts)}
    assert len(texts) == len(one.lengths) == 48


# Training


def test_training_learns_and_goes_on_where_it_was_stopped(tmp_path, monkeypatch, base):
    monkeypatch.setattr("shards.SHARD", 96)
    monkeypatch.setattr(pretrain_pico, "BATCH_TOKENS", 1024)
    monkeypatch.setattr(pretrain_pico, "SAVE_EVERY", 20)
    batches = Batches(make_shard(0, 0, str(FOLDER / "tokenizer.json")), torch.device("cpu"))

    def trained(folder: Path, *stops: int) -> tuple[dict, list]:
        folder.mkdir()
        for stop in stops:
            torch.manual_seed(0)
            model = make_model(base.tokenizer, 32, 1)  # type: ignore[arg-type]
            with monkeypatch.context() as patched:
                # The schedule is that of the whole training, however far this part of it goes.
                patched.setattr(pretrain_pico, "rate_at", lambda step, _, peak: rate_at(step, 40, peak))
                curve = train(model, batches, stop, 3e-3, 0, folder)
        return model.state_dict(), curve

    unbroken, curve = trained(tmp_path / "unbroken", 40)
    resumed, _ = trained(tmp_path / "resumed", 20, 40)
    assert all(torch.equal(unbroken[name], resumed[name]) for name in unbroken)
    assert curve[-1][0] == 40 and curve[-1][1] < 6.0


def test_the_first_token_of_a_completion_weighs_what_its_document_says():
    shard = make_shard_of([Document("a", "b", 0.5), Document("a", "bc")])
    length, tokens_B_T, weights_B_T = Batches(shard, torch.device("cpu")).draw(Random(0))
    assert length == tokens_B_T.shape[1] == 32
    found = {tuple(weight for weight in weights if weight) for weights in weights_B_T.tolist()}
    assert found == {(0.5, 1.0), (1.0, 1.0, 1.0)}
    assert {tuple(row[3:6]) for row in tokens_B_T.tolist()} == {(6, 0, 0), (6, 7, 0)}


def make_shard_of(documents: list[Document]):
    import numpy as np
    from shards import Shard

    rows = [[1, 5, 2, *range(6, 6 + len(one.completion)), 0] for one in documents]
    return Shard(
        np.array([token for row in rows for token in row], np.uint16),
        np.array([3] * len(rows)),
        np.array([len(row) for row in rows]),
        np.array([one.first for one in documents], np.float32),
    )


# The base


def test_the_base_is_small_and_its_seeds_and_exam_are_what_the_scripts_make(verifier):
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 10_000_000
    written = [json.loads(line) for line in (FOLDER / "exam.jsonl").read_text().splitlines()]
    assert written[:48] == list(islice(exam(), 48))
    assert len(written) == 6 * 3 * 24 and len({row["program"] for row in written}) == len(written)
    assert [json.loads(line) for line in EMBEDDED["pico"].seeds.read_text().splitlines()] == seeds()
    assert len(read_seeds(EMBEDDED["pico"].seeds, CODE)) == 24


def test_the_base_proposes_valid_tasks_and_solves_some_of_the_easy_ones(base, verifier):
    rng = Random(8)
    easy = [examined(rng, rng.randint(1, 4), pair=False) for _ in range(24)]
    references = [[task(learnable(rng, rng.randint(1, 4))) for _ in range(2)] for _ in range(24)]
    asked = [CODE_O.propose_prompt(each, rng) for each in references]
    asked += [CODE_O.solve_prompt(task(program)) for program in easy]
    with LocalEngine(base, rank=4) as engine:
        samples = asyncio.run(
            engine.sample(
                [
                    SampleRequest(prompt=base.encode(prompt.messages), member=None, key=10 * at + turn, max_tokens=128)
                    for at, prompt in enumerate(asked)
                    for turn in range(4)
                ]
            )
        )
    assert sum(sample.stop is not Stop.LENGTH for sample in samples) > 0.95 * len(samples)
    drafts = [CODE_O.parse_proposal(sample.text, {}) for sample in samples[:96]]
    valid = asyncio.run(CODE_O.validate([draft for draft in drafts if not isinstance(draft, Rejection)], verifier))
    assert sum(isinstance(each, CodeTask) for each in valid) > 0.6 * 96
    attempts = [Attempt(task(easy[at // 4]), sample.text, False) for at, sample in enumerate(samples[96:])]
    verdicts = asyncio.run(CODE_O.grade(attempts, verifier))
    assert 0.2 < sum(verdict.correct for verdict in verdicts) / 96 < 0.8
