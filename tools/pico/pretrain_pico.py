"""Make the base `pico` from nothing: tokenizer, corpus, training.

    python tools/pico/pretrain_pico.py --work FOLDER --to src/redqueen/bases/pico

Everything made on the way is kept in the work folder, the training's state every few hundred steps, and the same
command goes on where it was stopped. Only completions are learnt. The weights are kept in bfloat16.
"""

import argparse
import json
import math
import shutil
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from documents import exam, seeds
from shards import VOCABULARY, Shard, make_corpus, open_tokenizer
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HEAD_WIDTH = 32
SAVE_EVERY = 500
BATCH_TOKENS = 32_768
"""In each of the two batches of a step, padding included."""


def make_model(tokenizer: PreTrainedTokenizerFast, width: int, layers: int) -> LlamaForCausalLM:
    heads = width // HEAD_WIDTH
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            intermediate_size=round(width * 8 / 3 / 32) * 32,
            vocab_size=VOCABULARY,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            # What keeps variances as they are; the usual 0.02 is for wide models.
            initializer_range=width**-0.5,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


class Batches:
    """The corpus on a device, and batches of documents of about one length."""

    def __init__(self, corpus: Shard, device: torch.device):
        self.tokens_D = torch.from_numpy(corpus.tokens.astype(np.int32)).to(device)
        lengths = torch.from_numpy(corpus.lengths)
        self.lengths_N, self.prompts_N = lengths.to(device), torch.from_numpy(corpus.prompts).to(device)
        self.starts_N = (lengths.cumsum(0) - lengths).to(device)
        self.firsts_N = torch.from_numpy(corpus.firsts).to(device)
        order = lengths.argsort(stable=True)
        ranked = lengths[order]
        self.rows: list[Tensor] = []
        at = 0
        while at < len(order):
            # As many as fit when all are as long as the longest of them.
            count = BATCH_TOKENS // int(ranked[min(len(order) - 1, at + BATCH_TOKENS // int(ranked[at]))])
            self.rows.append(order[at : at + count].to(device))
            at += count
        self.device = device

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        """Tokens and what each weighs, padded on the right: nothing looks ahead, so padding needs no mask."""
        rows = self.rows[number]
        lengths_B, prompts_B = self.lengths_N[rows, None], self.prompts_N[rows, None]
        places_T = torch.arange(int(lengths_B.max()), device=self.device)
        index_B_T = (self.starts_N[rows, None] + places_T).clamp_max(len(self.tokens_D) - 1)
        inside_B_T = places_T < lengths_B
        tokens_B_T = torch.where(inside_B_T, self.tokens_D[index_B_T].long(), 0)
        weights_B_T = (inside_B_T & (places_T >= prompts_B)).float()
        weights_B_T = torch.where(places_T == prompts_B, self.firsts_N[rows, None], weights_B_T)
        return tokens_B_T, weights_B_T


def loss_of(model: Any, tokens_B_T: Tensor, weights_B_T: Tensor) -> Tensor:
    hidden_B_T_H = model.model(input_ids=tokens_B_T, use_cache=False).last_hidden_state[:, :-1]
    weights_B_T = weights_B_T[:, 1:]
    learnt_B_T = weights_B_T > 0
    logits_M_V = model.lm_head(hidden_B_T_H[learnt_B_T]).float()
    losses_M = F.cross_entropy(logits_M_V, tokens_B_T[:, 1:][learnt_B_T], reduction="none")
    return (losses_M * weights_B_T[learnt_B_T]).sum() / weights_B_T.sum()


def rate_at(step: int, steps: int, peak: float) -> float:
    """Of learning: up for the first fiftieth, then down to nothing along half a cosine."""
    warm = max(1, steps // 50)
    if step < warm:
        return peak * (step + 1) / warm
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def train(model: Any, batches: Batches, steps: int, peak: float, seed: int, work: Path) -> list[tuple[int, float]]:
    """Take all steps that the work folder does not have yet; the loss every hundred."""
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    vectors = [weight for weight in model.parameters() if weight.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    device = batches.device
    optimiser = torch.optim.AdamW(groups, lr=peak, betas=(0.9, 0.98), fused=device.type == "cuda")
    saved = work / "training.pt"
    begin, curve = 0, []
    if saved.is_file():
        state = torch.load(saved, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        begin, curve = state["step"], state["curve"]
    started = time.perf_counter()
    losses: list[Tensor] = []
    for step in range(begin, steps):
        rng = Random(f"pico: batches {seed} {step}")
        for group in optimiser.param_groups:
            group["lr"] = rate_at(step, steps, peak)
        for number in rng.sample(range(len(batches.rows)), 2):
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = loss_of(model, *batches[number]) / 2
            loss.backward()
            losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if (step + 1) % 100 == 0 or step + 1 == steps:
            curve.append((step + 1, round(2 * torch.stack(losses).mean().item(), 4)))
            losses = []
            print(f"step {step + 1}: loss {curve[-1][1]:.4f}, {time.perf_counter() - started:.0f} s", flush=True)
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == steps:
            state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step + 1, "curve": curve}
            torch.save(state, saved.with_suffix(".partial"))
            saved.with_suffix(".partial").rename(saved)
    return curve


def save(model: Any, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name, rows in (("seeds", seeds()), ("exam", exam())):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def main() -> None:
    options = argparse.ArgumentParser(description="Make the base `pico` from nothing.")
    options.add_argument("--work", type=Path, required=True, help="for what an interrupted run goes on from")
    options.add_argument("--to", type=Path, required=True, help="the folder to write; what is there is replaced")
    options.add_argument("--width", type=int, default=128, help=f"a multiple of {HEAD_WIDTH}")
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--documents", type=int, default=600_000)
    options.add_argument("--steps", type=int, default=3900)
    options.add_argument("--lr", type=float, default=3e-3)
    options.add_argument("--device", type=torch.device, default=None, help="CUDA if there is any")
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    if asked.to.exists() and not (asked.to / "config.json").is_file():
        options.error(f"{asked.to} is there and holds no model: name another folder")
    device = asked.device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(asked.seed)
    asked.work.mkdir(parents=True, exist_ok=True)
    tokenizer = open_tokenizer(asked.work, asked.seed)
    corpus = make_corpus(asked.work, asked.documents, asked.seed)
    print(f"{len(corpus.tokens) / 1e6:.1f} million tokens", flush=True)
    model: Any = make_model(tokenizer, asked.width, asked.layers)
    model.to(device)
    curve = train(model, Batches(corpus, device), asked.steps, asked.lr, asked.seed, asked.work)
    save(model, tokenizer, asked.to)
    (asked.work / "curve.json").write_text(json.dumps(curve))
    size = sum(file.stat().st_size for file in asked.to.iterdir())
    parameters = sum(weight.numel() for weight in model.parameters())
    print(f"{asked.to}: {parameters / 1e6:.2f} million parameters, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
