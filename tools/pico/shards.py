"""The tokenizer of `pico`, and its corpus as numbers: documents made on all cores, each once.

The grammar writes a program in one way only, so documents with the same text are those with the same syntax tree.
"""

import multiprocessing
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from documents import Document, document, fixed_pieces
from family_documents import Material, common_words, family_document, mixed
from family_documents import fixed_pieces as other_pieces
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END, ASKED, REPLY = "<|end|>", "<|user|>", "<|assistant|>"
TEMPLATE = "{% for message in messages %}<|user|>{{ message['content'] }}{% endfor %}<|assistant|>"
WORDS = r"\d|[A-Z]|\n *(?:return |for i in |if |else:|while )?| for i in | ?[a-z_]+| ?[^A-Za-z0-9_\s]+ ?| "
"""What a token never crosses: each digit and each letter of a string stands alone."""
VOCABULARY, WIDENED = 640, 960
"""Tokens of a base that knows programs alone, and of one that knows the other families too."""
SHARD = 8192
"""Documents that one process makes at a time."""


def make_tokenizer(samples: Iterator[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(WORDS), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    pieces = fixed_pieces()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(pieces),
        special_tokens=[END, ASKED, REPLY],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(samples, trainer)
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in pieces])
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)
    made.chat_template = TEMPLATE
    return made


def widen(tokenizer: PreTrainedTokenizerFast, programs: Sequence[str], others: Sequence[str]) -> None:
    """Give what the other families' documents say most often a token each; programs keep the tokens that they have."""
    pieces = other_pieces()
    split = re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))))
    words = common_words([split.sub("\n", text) for text in others], lambda text: len(tokenizer.encode(text)))
    known = "\n".join(programs)
    pieces += [word for word in words if word not in known][: WIDENED - len(tokenizer) - len(pieces)]
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in pieces])


def open_tokenizer(work: Path, seed: int, begin: Path | None = None) -> PreTrainedTokenizerFast:
    """The tokenizer, from the work folder if it is there; that of the base to begin from with more tokens."""
    folder = work / "tokenizer"
    if not (folder / "tokenizer.json").is_file():
        rng = Random(f"pico: tokenizer {seed}")
        programs = (_text(document(rng)) for _ in range(10_000))
        if begin is None:
            tokenizer = make_tokenizer(programs)
        else:
            tokenizer = PreTrainedTokenizerFast.from_pretrained(begin)
            material = Material(rng)
            widen(tokenizer, list(programs), [_text(family_document(material, rng)) for _ in range(10_000)])
        tokenizer.save_pretrained(folder)
    return PreTrainedTokenizerFast.from_pretrained(folder)


def _text(one: Document) -> str:
    return f"{one.prompt}\n{one.completion}"


@dataclass(frozen=True, slots=True)
class Shard:
    """Documents as one row of numbers after another."""

    tokens: np.ndarray
    prompts: np.ndarray
    """The length of each prompt."""
    lengths: np.ndarray
    """And of the whole document."""
    firsts: np.ndarray
    """What the first token of each completion weighs."""


NAMES = [field.name for field in fields(Shard)]


def make_shard(number: int, seed: int, tokenizer_file: str, of_all: bool = False) -> Shard:
    """Of programs, or of all families."""
    rng = Random(f"pico: documents {seed} {number}")
    tokenizer = Tokenizer.from_file(tokenizer_file)
    made: dict[tuple[str, str], Document] = {}
    for one in mixed(rng) if of_all else iter(partial(document, rng), None):
        made.setdefault((one.prompt, one.completion), one)
        if len(made) == SHARD:
            break
    documents = list(made.values())
    prompts = tokenizer.encode_batch([f"{ASKED}{one.prompt}{REPLY}" for one in documents])
    completions = tokenizer.encode_batch([f"{one.completion}{END}" for one in documents])
    tokens = [id for asked, answered in zip(prompts, completions, strict=True) for id in (*asked.ids, *answered.ids)]
    asked = np.array([len(each.ids) for each in prompts])
    return Shard(
        np.array(tokens, np.uint16),
        asked,
        asked + np.array([len(each.ids) for each in completions]),
        np.array([one.first for one in documents], np.float32),
    )


def make_corpus(work: Path, documents: int, seed: int, of_all: bool = False) -> Shard:
    """The corpus, from the work folder if it is there."""
    file = work / "corpus.npz"
    if not file.is_file():
        started = time.perf_counter()
        tokenizer_file = str(work / "tokenizer" / "tokenizer.json")
        make = partial(make_shard, seed=seed, tokenizer_file=tokenizer_file, of_all=of_all)
        with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
            shards = pool.map(make, range(-(-documents // SHARD)), chunksize=1)
        fields = {name: np.concatenate([getattr(each, name) for each in shards]) for name in NAMES}
        partial_file = file.with_suffix(".partial.npz")
        np.savez(partial_file, **fields)
        partial_file.rename(file)
        print(f"{len(fields['lengths'])} documents, {time.perf_counter() - started:.0f} s", flush=True)
    with np.load(file) as found:
        return Shard(**{name: found[name] for name in NAMES})
