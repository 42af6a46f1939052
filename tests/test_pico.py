"""The base `pico` and how it was made (tools/pico): programs, documents, training, and what the base can do."""

import asyncio
import json
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import family_documents
import pretrain_pico
import pytest
import torch
from documents import CODE_F, CODE_I, CODE_O, MIX, Document, document, exam, fixed_pieces, function_task, seeds, task
from family_documents import (
    FAMILIES,
    LOGIC_S,
    MATH_N,
    MATH_W,
    PROOF_F,
    PROOF_O,
    Material,
    family_document,
    kept_out,
    worked_out,
)
from grammar import DEPTHS, LEARNT, TYPES, examined, grow, learnable, other_inputs, outputs
from hypothesis import given
from hypothesis import strategies as st
from pretrain_pico import Batches, make_model, rate_at, train, widened
from shards import ASKED, END, REPLY, WIDENED, make_shard, make_tokenizer, widen
from tasks.proposing import CODE
from transformers import PreTrainedTokenizerFast

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


KINDS = {kind.name: kind for kind in (LOGIC_S, MATH_W, MATH_N, PROOF_F, PROOF_O)}
FIELDS = {"logic_s": "puzzle", "math_w": "story", "math_n": "problem", "proof_f": "proof", "proof_o": "proof"}


@pytest.fixture(scope="module")
def material() -> Material:
    return Material(Random(9), dict.fromkeys(KINDS, 10))


@pytest.mark.parametrize("name", KINDS)
def test_tasks_by_lot_are_sound_and_new_and_their_answers_right(name, material, verifier):
    made = [one for band in material.bands[name] for one in band]
    rows = [{FIELDS[name]: one.task.steps if name.startswith("proof") else one.task.body} for one in made]
    drafts = [draft for row in rows for draft in FAMILIES[name].drafts(row, KINDS[name])]
    assert asyncio.run(KINDS[name].validate(drafts, verifier)) == [one.task for one in made]
    attempts = [Attempt(one.task, one.trace + one.block, False) for one in made]
    assert all(verdict.correct for verdict in asyncio.run(KINDS[name].grade(attempts, verifier)))
    assert kept_out(name).isdisjoint(one.task.near_key for one in made)
    assert {seed.near_key for seed in FAMILIES[name].seeds if seed.kind == name} <= kept_out(name)


@pytest.mark.parametrize(
    ("make", "name"),
    [(family_documents.solve_puzzle, "logic_s"), (family_documents.solve_problem, "math_n")],
)
def test_answers_are_right_under_other_names_too(make, name, material, verifier):
    rng = Random(10)
    documents = [make(material, rng) for _ in range(12)]
    texts = [one.prompt.partition("\n")[2].partition("\n```")[0] for one in documents]
    drafts = [draft for text in texts for draft in FAMILIES[name].drafts({FIELDS[name]: text}, KINDS[name])]
    tasks = asyncio.run(KINDS[name].validate(drafts, verifier))
    attempts = [Attempt(task, one.completion, False) for task, one in zip(tasks, documents, strict=True)]
    assert all(verdict.correct for verdict in asyncio.run(KINDS[name].grade(attempts, verifier)))
    assert len(set(texts)) == 12


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (family_documents.propose_puzzle, "logic_s"),
        (family_documents.propose_story, "math_w"),
        (family_documents.propose_problem, "math_n"),
        (family_documents.propose_proof, "proof_f"),
    ],
)
def test_most_of_what_teachers_are_to_write_makes_tasks(make, name, material, verifier):
    """Not all: what is drawn by lot is drawn anew."""
    rng = Random(11)
    drafts = [KINDS[name].parse_proposal(make(material, rng).completion, {}) for _ in range(24)]
    said = asyncio.run(KINDS[name].validate(drafts, verifier))
    assert sum(not isinstance(one, Rejection) for one in said) > 16


def test_a_story_is_worked_out_in_the_order_in_which_one_follows_from_another():
    told = (
        "Ben has 17 more apples than Ann. Ann has 24 apples. Ann gives 5 apples to Ben. How many apples does Ben have?"
    )
    assert worked_out(told) == "Ann 24\nBen 41\nAnn 19\nBen 46\n"
    together = (
        "Tara and Kim have 85 stamps together. Tara has 4 times as many stamps as Kim. How many stamps does Kim have?"
    )
    assert worked_out(together) == "Kim 17\nTara 68\n"


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


def test_a_wider_tokenizer_keeps_what_programs_are_written_with(material):
    rng = Random(12)
    before = PreTrainedTokenizerFast.from_pretrained(FOLDER)
    wider = PreTrainedTokenizerFast.from_pretrained(FOLDER)
    programs = [one.prompt + one.completion for one in (document(rng) for _ in range(300))]
    drawn = [family_document(material, rng) for _ in range(300)]
    others = [one.prompt + one.completion for one in drawn]
    widen(wider, programs, others)
    assert len(before) + 50 < len(wider) <= WIDENED
    assert [wider.encode(text) for text in programs] == [before.encode(text) for text in programs]
    assert all(wider.decode(wider.encode(text)) == text for text in others)
    assert all(len(wider.encode(piece)) == 1 for piece in family_documents.fixed_pieces())
    assert sum(len(wider.encode(text)) for text in others) < 0.7 * sum(len(before.encode(text)) for text in others)


@pytest.mark.parametrize("layers", [4, 5])
def test_a_base_that_is_widened_says_the_same_of_programs(base, layers):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(FOLDER)
    rng = Random(13)
    known = len(tokenizer)
    parts = tokenizer.encode("zqw")
    tokenizer.add_tokens(["zqw"])
    model = widened(FOLDER, tokenizer, layers)
    text = document(rng).prompt
    tokens_B_T = torch.tensor([tokenizer.encode(text)])
    with torch.no_grad():
        mine, its = model(tokens_B_T).logits, base.model(tokens_B_T).logits
    assert torch.equal(mine[..., :known], its)
    embeddings_V_H = model.get_input_embeddings().weight
    assert model.config.num_hidden_layers == len(model.model.layers) == layers
    assert len(parts) == 3 and torch.equal(embeddings_V_H[known], embeddings_V_H[parts].mean(0))


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
    batches = Batches(make_shard(0, 0, str(FOLDER / "tokenizer.json")), torch.device("cpu"), 0.75)

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
    length, tokens_B_T, weights_B_T = Batches(shard, torch.device("cpu"), 0.75).draw(Random(0))
    assert length == tokens_B_T.shape[1] == 32
    found = {tuple(weight for weight in weights if weight) for weights in weights_B_T.tolist()}
    assert found == {(0.5, 1.0), (1.0, 1.0, 1.0)}
    assert {tuple(row[3:6]) for row in tokens_B_T.tolist()} == {(6, 0, 0), (6, 7, 0)}


def test_batches_have_programs_as_often_as_asked():
    import numpy as np
    from shards import VOCABULARY, Shard

    program, other = [1, 5, 2, 6, 0], [1, VOCABULARY, 2, 7, 0]
    tokens = np.array([*program, *other * 9], np.uint16)
    lengths, prompts = np.full(10, 5), np.full(10, 3)
    batches = Batches(Shard(tokens, prompts, lengths, np.ones(10, np.float32)), torch.device("cpu"), 0.75)
    drawn = [batches.draw(Random(number))[1] for number in range(200)]
    assert all(len(set(tokens_B_T[:, 1].tolist())) == 1 for tokens_B_T in drawn)
    assert 130 < sum(int(tokens_B_T[0, 1]) == 5 for tokens_B_T in drawn) < 170


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
