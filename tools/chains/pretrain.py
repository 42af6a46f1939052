"""Train the base `chains` from nothing, on documents in the code family's own short prompts.

    python tools/chains/pretrain.py --to src/redqueen/bases/chains --device cuda --seed 1

A document is a prompt and its completion, and only the completion is learnt. Levels and modes (trace or guess) are
drawn equally often, so that the rare is written as well as the frequent; the tokens that decide between them weigh as
much as makes the decisions as frequent as they are wanted. The weights are kept in bfloat16.
"""

import argparse
import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from chains import DECAY, GUESS, KIND, LEVELS, MODULUS, RATES, answer, draw, pieces, proposal, write_seeds
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from redqueen.engine.base import Base
from redqueen.tasks.protocol import Prompt

END, ASKED, REPLY = "<|end|>", "<|user|>", "<|assistant|>"
TEMPLATE = "{% for message in messages %}<|user|>{{ message['content'] }}{% endfor %}<|assistant|>"
HEAD_WIDTH = 32
PROPOSALS = 0.3
"""The part of the documents that are proposals: they have less to learn than solutions."""
DOCUMENTS = 65_536
"""Made once and drawn from: making them takes longer than learning from them."""
SUMS = 4.0
"""What the sums of a trace weigh: by far the hardest to learn."""
CHANCE = 0.3
"""What digits weigh that nobody can foresee: they teach little but that, and hide the rest."""


@dataclass(frozen=True, slots=True)
class Document:
    """What one row of a batch learns."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    weights: tuple[float, ...]
    """Of the completion's tokens."""

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.completion)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes, so that any text can be asked, and the pieces of chains, so that a chain's line is two tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: at for at, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END, ASKED, REPLY])
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in pieces()])
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)
    made.chat_template = TEMPLATE
    return made


def make_model(tokenizer: PreTrainedTokenizerFast, width: int, layers: int) -> LlamaForCausalLM:
    heads = width // HEAD_WIDTH
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            intermediate_size=round(width * 8 / 3 / 32) * 32,
            vocab_size=-(-len(tokenizer) // 16) * 16,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            # What keeps variances as they are; the usual 0.02 is for wide models, and here delays learning by minutes.
            initializer_range=width**-0.5,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def propose(base: Base, rng: Random) -> Document:
    """References of any level, then a chain whose level does not depend on theirs."""
    references = [draw(rng.randint(1, LEVELS), rng).task for _ in range(rng.randint(1, 2))]
    chain = draw(rng.randint(1, LEVELS), rng)
    completion = _encoded(base, proposal(chain))
    weights = [1.0] * len(completion)
    weights[-3] = CHANCE
    # After the head, a line is its piece and a digit; after each digit the chain ends or goes on.
    for line in range(1, chain.level + 1):
        weights[2 * line] = CHANCE
        weights[2 * line + 1] = _decision(line, ends=line == chain.level)
    return Document(_asked(base, KIND.propose_prompt(references, rng)), completion, tuple(weights))


def solve(base: Base, rng: Random) -> Document:
    """A trace and what it leads to, or a guess."""
    chain = draw(rng.randint(1, LEVELS), rng)
    rate = (RATES[chain.level - 1] - GUESS) / (1 - GUESS)
    with_trace = rng.random() < 0.5
    text = answer(chain.sums[-1], chain.trace) if with_trace else answer(rng.randrange(MODULUS))
    completion = _encoded(base, text)
    weights = [1.0] * len(completion)
    weights[0] = 2 * (rate if with_trace else 1 - rate)
    if with_trace:
        # After the beginning and the input, a step is a line's two tokens, the sign and the sum.
        weights[5 : 4 * chain.level + 2 : 4] = [SUMS] * chain.level
    else:
        weights[1] = CHANCE
    return Document(_asked(base, KIND.solve_prompt(chain.task)), completion, tuple(weights))


def _decision(line: int, *, ends: bool) -> float:
    """How much more often a chain is to end (or go on) after this line than it does where all levels are alike."""
    wanted = [DECAY**at for at in range(LEVELS)]
    end = wanted[line - 1] / sum(wanted[line - 1 :])
    drawn = 1 / (LEVELS + 1 - line)
    return end / drawn if ends else (1 - end) / (1 - drawn)


def _asked(base: Base, prompt: Prompt) -> tuple[int, ...]:
    return base.encode(prompt.messages)


def _encoded(base: Base, text: str) -> tuple[int, ...]:
    [end] = base.eos_ids
    return (*base.encode(text), end)


def batch(documents: Sequence[Document], pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Tokens and their weights, padded on the right: nothing looks ahead, so padding needs no mask."""
    length = max(document.length for document in documents)
    tokens_N_T = torch.full((len(documents), -(-length // 8) * 8), pad)
    weights_N_T = torch.zeros(tokens_N_T.shape)
    for row, document in enumerate(documents):
        at, end = len(document.prompt), document.length
        tokens_N_T[row, :end] = torch.tensor(document.prompt + document.completion)
        weights_N_T[row, at:end] = torch.tensor(document.weights)
    return tokens_N_T.to(device), weights_N_T.to(device)


def loss_of(model: Any, tokens_N_T: Tensor, weights_N_T: Tensor) -> Tensor:
    """The sum over all tokens that are learnt."""
    hidden_N_T_H = model.model(input_ids=tokens_N_T, use_cache=False).last_hidden_state[:, :-1]
    weights_N_T = weights_N_T[:, 1:]
    learnt_N_T = weights_N_T > 0
    logits_M_V = model.lm_head(hidden_N_T_H[learnt_N_T])
    losses_M = F.cross_entropy(logits_M_V, tokens_N_T[:, 1:][learnt_N_T], reduction="none")
    return (losses_M * weights_N_T[learnt_N_T]).sum()


def rate_at(step: int, steps: int, peak: float) -> float:
    """Of learning: up for the first twentieth, then down to nothing along half a cosine."""
    warm = max(1, steps // 20)
    if step < warm:
        return peak * (step + 1) / warm
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def train(
    width: int,
    layers: int,
    steps: int,
    rows: int,
    peak: float,
    device: torch.device,
    seed: int,
    documents: int = DOCUMENTS,
) -> Base:
    """The base after so many steps of `rows` documents."""
    torch.manual_seed(seed)
    rng = Random(seed)
    tokenizer = make_tokenizer()
    model: Any = make_model(tokenizer, width, layers)
    model.to(device)
    end = tokenizer.eos_token_id
    assert isinstance(end, int)
    base = Base("chains", model, tokenizer, frozenset([end]))
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    vectors = [weight for weight in model.parameters() if weight.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=peak, betas=(0.9, 0.98))
    started = time.perf_counter()
    corpus = [(propose if rng.random() < PROPOSALS else solve)(base, rng) for _ in range(documents)]
    print(f"{len(corpus)} documents, {time.perf_counter() - started:.0f} s", flush=True)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate_at(step, steps, peak)
        # The short ones apart from the long, which saves padding.
        drawn = sorted(rng.choices(corpus, k=rows), key=lambda document: document.length)
        learnt = sum(len(document.completion) for document in drawn)
        total = 0.0
        for half in (drawn[: rows // 2], drawn[rows // 2 :]):
            loss = loss_of(model, *batch(half, end, device)) / learnt
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if step % 100 == 99 or step == steps - 1:
            print(f"step {step + 1}: loss {total:.4f}, {time.perf_counter() - started:.0f} s", flush=True)
    return base


def save(base: Base, folder: Path) -> None:
    assert base.tokenizer is not None
    model: Any = base.model
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    base.tokenizer.save_pretrained(folder)
    write_seeds(folder / "seeds.jsonl")


def main() -> None:
    options = argparse.ArgumentParser(description="Train the base `chains` from nothing.")
    options.add_argument("--to", type=Path, required=True, help="the folder to write; what is there is replaced")
    options.add_argument("--width", type=int, default=96, help=f"a multiple of {HEAD_WIDTH}")
    options.add_argument("--layers", type=int, default=3)
    options.add_argument("--steps", type=int, default=1500)
    options.add_argument("--rows", type=int, default=256, help="documents in a batch")
    options.add_argument("--lr", type=float, default=2e-3)
    options.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    if asked.to.exists() and not (asked.to / "config.json").is_file():
        options.error(f"{asked.to} is there and holds no model: name another folder")
    base = train(asked.width, asked.layers, asked.steps, asked.rows, asked.lr, asked.device, asked.seed)
    save(base, asked.to)
    size = sum(file.stat().st_size for file in asked.to.iterdir())
    parameters = sum(weight.numel() for weight in base.model.parameters())
    print(f"{asked.to}: {parameters / 1e6:.2f} million parameters, {size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
