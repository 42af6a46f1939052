"""Sampling in one mixed batch gives what each request alone would give, and what the distribution says."""

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from engine import tiny
from redqueen.engine.attention import PrefillAttention
from redqueen.engine.base import Base
from redqueen.engine.decode_attention import SlotDecode
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import Recipe, SampleRequest, ScoreRequest, Stop, Trajectory
from redqueen.errors import InputError


def mixed(count: int, *, members: int = 3, seed: int = 0) -> list[SampleRequest]:
    """Everything that can differ between two requests differs; every third prompt is asked again with another key."""
    random = Random(seed)
    requests: list[SampleRequest] = []
    while len(requests) < count:
        request = SampleRequest(
            prompt=tiny.tokens(random, random.choice([1, 2, 15, 16, 17, 18, 30])),
            member=random.choice([None, *(f"m{i}" for i in range(members))]),
            key=random.getrandbits(64),
            max_tokens=random.choice([1, 4, 7, 10, 14]),
            temperature=random.choice([0.0, 0.7, 1.0, 1.5]),
        )
        again = [replace(request, key=random.getrandbits(64), max_tokens=5), replace(request, member="m0")]
        requests += [request, *again] if len(requests) % 3 == 0 else [request]
    return requests[:count]


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_a_mixed_batch_is_its_requests_one_by_one(architecture):
    """With more requests than rows, so that rows are refilled."""
    requests = mixed(24)
    with tiny.engine(architecture, rows=8) as opened:
        together = tiny.sample(opened, requests)
        for request, one in list(zip(requests, together, strict=True))[::2]:
            [alone] = tiny.sample(opened, [request])
            assert one.tokens == alone.tokens
            assert one.stop == alone.stop == Stop.LENGTH
            assert len(one.tokens) == len(one.logprobs) == request.max_tokens
            assert one.logprobs == pytest.approx(alone.logprobs, abs=1e-5)


def test_neither_rows_nor_order_nor_the_memory_for_keys_and_values_matter():
    requests = mixed(40, seed=1)
    turned = list(range(len(requests)))
    Random(0).shuffle(turned)
    with tiny.engine("llama", rows=64) as wide, tiny.engine("llama", rows=8) as narrow:
        wanted = [one.tokens for one in tiny.sample(wide, requests)]
        assert [one.tokens for one in tiny.sample(narrow, requests)] == wanted
        shuffled = tiny.sample(wide, [requests[at] for at in turned])
        assert [one.tokens for one in shuffled] == [wanted[at] for at in turned]
    with tiny.engine("llama", rows=64) as tight:
        tight.sampler.max_cache_tokens = 3 * 64
        tight.sampler.prefill_tokens = 40
        assert [one.tokens for one in tiny.sample(tight, requests)] == wanted


def test_the_key_decides_and_nothing_else_that_is_random():
    request = SampleRequest(prompt=(1, 2, 3), member="m1", key=0, max_tokens=12)
    keys = [*range(20), 2**63, 2**64 - 1]
    with tiny.engine("llama", rows=16) as opened:
        samples = tiny.sample(opened, [replace(request, key=key) for key in keys])
        assert len({one.tokens for one in samples}) == len(keys)
        torch.manual_seed(5)
        assert tiny.sample(opened, [replace(request, key=key) for key in keys]) == samples
        wrapped = tiny.sample(opened, [replace(request, key=2**64), replace(request, key=-1)])
        assert [one.tokens for one in wrapped] == [samples[0].tokens, samples[-1].tokens]


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_sampler_scorer_and_trainer_agree_on_log_probabilities(architecture):
    requests = mixed(24, seed=2)
    with tiny.engine(architecture) as opened:
        samples = tiny.sample(opened, requests)
        scores = tiny.score(
            opened,
            [
                ScoreRequest(prompt=r.prompt, completion=s.tokens, member=r.member, temperature=r.temperature or 1.0)
                for r, s in zip(requests, samples, strict=True)
            ],
        )
        for one, again in zip(samples, scores, strict=True):
            assert one.logprobs == pytest.approx(again.logprobs, abs=1e-5)
        batch = [
            Trajectory(
                member=r.member, prompt=r.prompt, completion=s.tokens, logprobs=s.logprobs, advantages=1.0,
                temperature=r.temperature or 1.0,
            )
            for r, s in zip(requests, samples, strict=True)
            if r.member is not None
        ]  # fmt: skip
        stats = tiny.update(opened, batch, Recipe(lr=1e-3))
    assert len(stats) == 3
    for one in stats.values():
        assert one.ratio_mean == pytest.approx(1, abs=1e-4) and one.ratio_max == pytest.approx(1, abs=1e-3)
        assert abs(one.kl) <= 1e-6


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_temperature_0_is_what_transformers_generates_greedily(architecture, tmp_path):
    prompts = [tiny.tokens(Random(at), 4 + 11 * at) for at in range(2)]
    who = ["m0", "m1", None]
    with tiny.engine(architecture) as opened:
        samples = tiny.sample(
            opened,
            [
                SampleRequest(prompt=prompt, member=member, key=9, max_tokens=10, temperature=0)
                for member in who
                for prompt in prompts
            ],
        )
        alone = [tiny.with_adapter(architecture, opened.read(m), tmp_path / m) if m else None for m in who]
    wanted = []
    for one in alone:
        generating = one or tiny.model(architecture)
        for prompt in prompts:
            ids = torch.tensor([prompt])
            out = generating.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=10, do_sample=False
            )
            wanted.append(tuple(out[0, len(prompt) :].tolist()))
    assert [one.tokens for one in samples] == wanted


def chi_square(counts: Counter, wanted: torch.Tensor) -> float:
    total = sum(counts.values())
    return sum((counts[at] - total * p) ** 2 / (total * p) for at, p in enumerate(wanted.flatten().tolist()))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_tokens_come_as_often_as_their_probability_says(temperature):
    """Pairs of tokens, so that draws which depend on each other would show."""
    with tiny.engine(tiny.base("llama", vocab_size=6), members=1, rows=64) as opened:
        request = SampleRequest(prompt=(3, 1), member="m0", key=0, max_tokens=2, temperature=temperature)
        samples = tiny.sample(opened, [replace(request, key=key) for key in range(2000)])
        pairs = [(a, b) for a in range(6) for b in range(6)]
        scores = tiny.score(
            opened,
            [ScoreRequest(prompt=(3, 1), completion=pair, member="m0", temperature=temperature) for pair in pairs],
        )
    wanted = torch.tensor([sum(one.logprobs) for one in scores]).exp()
    assert float(wanted.sum()) == pytest.approx(1, abs=1e-5)
    counts = Counter(6 * one.tokens[0] + one.tokens[1] for one in samples)
    # 35 degrees of freedom: one fair sampler in 100,000 is above 84.
    assert chi_square(counts, wanted) < 84
    flatter = wanted**0.8 / (wanted**0.8).sum()
    assert chi_square(counts, flatter) > 84, "a distribution that is a little off would not be told apart"


def watch(opened: LocalEngine, kind: type) -> list[int]:
    """The sizes of an engine's passes of one kind, as they happen."""
    batches: list[int] = []
    hidden = opened.body.hidden

    def watched(token_N, routing, attention, **options):
        if isinstance(attention, kind):
            batches.append(attention.batch)
        return hidden(token_N, routing, attention, **options)

    opened.body.hidden = watched
    return batches


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_a_prompt_that_is_asked_k_times_is_read_once(architecture):
    prompts = [tiny.tokens(Random(at), 20) for at in range(3)]
    requests = [
        SampleRequest(prompt=prompt, member=member, key=key, max_tokens=8)
        for key in range(4)
        for prompt in prompts
        for member in ("m0", "m1")
    ]
    with tiny.engine(architecture, rows=32) as opened:
        counts = watch(opened, PrefillAttention)
        samples = tiny.sample(opened, requests)
        assert sum(counts) == 6
        alone = [one for request in requests[::5] for one in tiny.sample(opened, [request])]
    assert [one.tokens for one in samples[::5]] == [one.tokens for one in alone]


def test_an_end_token_ends_a_completion_and_is_its_last():
    requests = mixed(24, seed=3)
    with tiny.engine("llama") as opened:
        unending = tiny.sample(opened, requests)
    ends = frozenset(range(0, tiny.VOCABULARY, 5))
    with tiny.engine(replace(tiny.base("llama"), eos_ids=ends)) as opened:
        samples = tiny.sample(opened, requests)
    assert {one.stop for one in samples} == {Stop.EOS, Stop.LENGTH}
    for one, whole, request in zip(samples, unending, requests, strict=True):
        at = next((at for at, token in enumerate(whole.tokens) if token in ends), None)
        assert one.tokens == (whole.tokens if at is None else whole.tokens[: at + 1])
        assert one.stop == (Stop.LENGTH if at is None else Stop.EOS)
        assert len(one.logprobs) == len(one.tokens) <= request.max_tokens


# Stop strings

WORDS = ["ello", " w", "orld", "##", "## E", "ND", " ,", " n't"]
END = 256 + len(WORDS)
STAND_INS = bytes_to_unicode()


def byte_level() -> PreTrainedTokenizerFast:
    """Tokens are bytes and words of bytes, as in GPT-2's vocabulary and most others."""
    words = {"".join(STAND_INS[byte] for byte in word.encode()): 256 + at for at, word in enumerate(WORDS)}
    plain = Tokenizer(models.BPE(vocab={STAND_INS[byte]: byte for byte in range(256)} | words, merges=[]))
    plain.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<end>", clean_up_tokenization_spaces=True)


def byte_fallback() -> PreTrainedTokenizerFast:
    """Tokens are words with a mark for their blanks, and bytes for the rest, as in Llama 2's vocabulary."""
    words = {word.replace(" ", "\u2581"): 256 + at for at, word in enumerate(WORDS)}
    bytes_ = {f"<0x{byte:02X}>": byte for byte in range(256)}
    plain = Tokenizer(models.BPE(vocab=bytes_ | words, merges=[], byte_fallback=True))
    plain.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<end>")


def pieces(*script: str) -> list[int]:
    """The tokens of words, of the end, and of whatever else byte by byte."""
    ids: list[int] = []
    for word in script:
        ids += [256 + WORDS.index(word)] if word in WORDS else [END] if word == "<end>" else word.encode()
    return ids


def scripted(script: list[int], tokenizer: PreTrainedTokenizerFast) -> LocalEngine:
    """An engine whose base continues any prompt with the script: each token is followed by its successor.

    The base is real: its layers add nothing, its embeddings are orthogonal and its head knows who comes next.
    """
    size = len(tokenizer)
    assert len(set(script)) == len(script), "nothing can have two successors"
    made = tiny.model("mistral", vocab_size=size, hidden_size=320)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if "o_proj" in name or "down_proj" in name:
                weight.zero_()
            elif "norm" in name:
                weight.fill_(1)
        made.get_input_embeddings().weight.copy_(torch.eye(320)[:size])
        head = torch.zeros(size, 320)
        others = [token for token in range(size) if token not in script]
        for before, after in [*pairwise(script), *pairwise([script[-1], *others])]:
            head[after, before] = 10
        made.get_output_embeddings().weight.copy_(head)
    return LocalEngine(Base("script", made, tokenizer, frozenset()), members=["m0"], rank=2)


STOPS = {
    "one token": (["h", "ello", "##", "a"], ("##",), "hello", 3),
    "over several tokens": (["h", "ello", "#", "## E", "ND", "a"], ("### END",), "hello", 5),
    "ends inside a token": (["h", "ello", "## E", "a"], ("##",), "hello", 3),
    "begins inside a token": (["h", "ello", "## E", "ND", "a"], ("END",), "hello## ", 4),
    "characters of several tokens": (["h", "é", "a", "日ж", "b"], ("日ж",), "héa", 9),
    "begins with a part of itself": (["#", "## E", "N", "E", "ND", "a"], ("END",), "### EN", 5),
    "the first that comes": (["h", "ello", " w", "orld"], ("world", "w", "o w"), "hell", 3),
    "a special token by its name": (["h", "ello", "<end>", "a"], ("<end>",), "hello", 3),
    "blanks stay": (["a", " ,", " n't", "b", "#"], ("#",), "a , n'tb", 5),
    "never": (["h", "ello", " w", "orld"], ("END",), "hello world", 4),
}


@pytest.mark.parametrize("tokenizer", [byte_level, byte_fallback])
@pytest.mark.parametrize(("script", "stop", "text", "length"), STOPS.values(), ids=STOPS)
def test_a_stop_string_ends_the_completion_and_is_cut_off_its_text(script, stop, text, length, tokenizer):
    ids = pieces("\n", *script)
    with scripted(ids, tokenizer()) as opened:
        request = SampleRequest(prompt=(ids[0],), key=0, max_tokens=len(ids) - 1, temperature=0, stop=stop)
        [plain] = tiny.sample(opened, [replace(request, stop=())])
        assert list(plain.tokens) == ids[1:] and plain.stop == Stop.LENGTH
        assert plain.text == "".join(script).replace("<end>", "")
        [sample] = tiny.sample(opened, [request])
    assert list(sample.tokens) == ids[1 : length + 1]
    assert sample.text == text
    assert sample.stop == (Stop.LENGTH if text == plain.text else Stop.STRING)


def test_requests_in_one_batch_have_their_own_stop_strings():
    ids = pieces("\n", "h", "ello", " w", "orld")
    stops = [(), ("ello",), ("wor",), ("h",), ("nothing", "w")]
    request = SampleRequest(prompt=(ids[0],), key=0, max_tokens=4, temperature=0)
    with scripted(ids, byte_level()) as opened:
        samples = tiny.sample(opened, [replace(request, stop=stop) for stop in stops])
    assert [one.text for one in samples] == ["hello world", "h", "hello ", "", "hello "]


# Refusals, and callers that share a batch

GOOD = SampleRequest(prompt=(1, 2, 3), member="m0", key=1, max_tokens=4)
BAD = {
    "an empty prompt": replace(GOOD, prompt=()),
    "no token": replace(GOOD, max_tokens=0),
    "an unknown member": replace(GOOD, member="m9"),
    "longer than the base": replace(GOOD, max_tokens=126),
    "a token beyond the vocabulary": replace(GOOD, prompt=(1, tiny.VOCABULARY)),
    "a negative token": replace(GOOD, prompt=(-1, 2)),
    "a negative temperature": replace(GOOD, temperature=-0.5),
    "not a temperature": replace(GOOD, temperature=float("nan")),
    "a stop string without a tokenizer": replace(GOOD, stop=("a",)),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_request_is_refused_in_one_line_and_harms_nobody_else(bad):
    async def callers(opened):
        return await asyncio.gather(
            opened.sample([GOOD]), opened.sample([GOOD, bad]), opened.sample([GOOD]), return_exceptions=True
        )

    with tiny.engine("llama") as opened:
        alone = tiny.sample(opened, [GOOD])
        first, refused, last = asyncio.run(callers(opened))
        assert isinstance(refused, InputError) and "\n" not in str(refused)
        assert first[0].tokens == last[0].tokens == alone[0].tokens


def test_a_completion_may_fill_the_base_to_its_last_position():
    with tiny.engine("llama") as opened:
        short, full = (tiny.sample(opened, [replace(GOOD, max_tokens=count)])[0] for count in (4, 125))
        assert len(full.tokens) == 125 and full.tokens[:4] == short.tokens
        again = ScoreRequest(prompt=GOOD.prompt, completion=full.tokens, member="m0")
        assert full.logprobs == pytest.approx(tiny.score(opened, [again])[0].logprobs, abs=1e-5)


def test_an_empty_stop_string_is_refused():
    with scripted(pieces("a", "b"), byte_level()) as opened, pytest.raises(InputError, match="empty"):
        tiny.sample(opened, [SampleRequest(prompt=(1,), key=0, max_tokens=1, stop=("a", ""))])


def test_callers_at_the_same_time_share_a_batch_and_get_what_they_would_get_alone():
    one, two = mixed(15, seed=4), mixed(11, seed=5)

    async def both(opened):
        return await asyncio.gather(opened.sample(one), opened.sample(two))

    with tiny.engine("llama", rows=64) as opened:
        alone = [tiny.sample(opened, requests) for requests in (one, two)]
        steps = watch(opened, SlotDecode)
        together = asyncio.run(both(opened))
    assert [[s.tokens for s in samples] for samples in together] == [[s.tokens for s in samples] for samples in alone]
    assert len(steps) == 14, "no more steps than the longest completion has tokens"


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_a_member_whose_weights_are_broken_spoils_nobody_else(architecture):
    """Neither beside it nor in the places where its sequences were."""
    requests = [r for r in mixed(40, seed=6) if r.member in ("m0", None)]
    broken = [replace(request, member="m1") for request in requests]
    with tiny.engine(architecture, rows=16) as opened:
        right = [one.tokens for one in tiny.sample(opened, requests)]
        state = opened.read("m1")
        factors = {name: (a * float("nan"), b) for name, (a, b) in state.factors.items()}
        opened.write("m1", replace(state, factors=factors))
        beside = tiny.sample(opened, [one for pair in zip(requests, broken, strict=True) for one in pair])
        assert [one.tokens for one in beside[::2]] == right
        assert [one.tokens for one in tiny.sample(opened, requests)] == right


def test_nothing_asked_is_nothing_answered():
    with tiny.engine("llama") as opened:
        assert tiny.sample(opened, []) == [] and tiny.score(opened, []) == []
        assert tiny.update(opened, [], Recipe(lr=1.0)) == {}
        assert len(tiny.sample(opened, [GOOD])) == 1


def test_a_base_without_members_samples():
    with LocalEngine(tiny.base("llama"), members=[], rank=4, alpha=6.0) as bare, tiny.engine("llama") as opened:
        request = replace(GOOD, member=None)
        assert tiny.sample(bare, [request])[0].tokens == tiny.sample(opened, [request])[0].tokens
