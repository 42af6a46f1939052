"""Make the base `pico` from nothing: tokenizer, corpus, training.

    python tools/pico/pretrain_pico.py --work PROGRAMS --to PROGRAMS/pico
    python tools/pico/pretrain_pico.py --work FOLDER --begin PROGRAMS/pico --to src/redqueen/bases/pico \\
        --documents 600_000 --steps 6_000 --lr 1e-3

The first command's base knows programs alone; the second one goes on with documents of all families. Everything made on
the way is kept in the work folder, the training's state every few hundred steps, and the same command goes on where it
was stopped. Only completions are learnt. A step's batch has documents of about one length, so that on CUDA a step is
captured once for each length and replayed: a model this small would otherwise wait for Python. The weights are kept in
bfloat16.
"""

import argparse
import hashlib
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
BATCH_TOKENS = 65_536
"""Of a step, padding included."""
ROUNDED = 32
"""What lengths are rounded up to a multiple of; longer ones to a quarter of the power of two below them, since each
length that there is takes a while to capture."""
EAGER = 3
"""Steps of each length that are taken before one is captured, as CUDA wants."""


def make_model(tokenizer: PreTrainedTokenizerFast, width: int, layers: int) -> LlamaForCausalLM:
    heads = width // HEAD_WIDTH
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            # On a CPU decoding waits for keys and values: all heads look at the same ones.
            num_key_value_heads=1,
            intermediate_size=round(width * 3.5 / 32) * 32,
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


def widened(begin: Path, tokenizer: PreTrainedTokenizerFast, layers: int) -> LlamaForCausalLM:
    """The model of a base with more tokens, each of which begins as the mean of those that it was written with, and
    with layers on top, if it has fewer, which begin by changing nothing."""
    before = LlamaForCausalLM.from_pretrained(begin, dtype=torch.float32)
    config = LlamaConfig.from_pretrained(begin, num_hidden_layers=max(layers, before.config.num_hidden_layers))
    model = LlamaForCausalLM(config)
    model.load_state_dict(before.state_dict(), strict=False)
    for layer in model.model.layers[before.config.num_hidden_layers :]:
        torch.nn.init.zeros_(layer.self_attn.o_proj.weight)
        torch.nn.init.zeros_(layer.mlp.down_proj.weight)
    known = PreTrainedTokenizerFast.from_pretrained(begin)
    old_V_H = model.get_input_embeddings().weight.data
    texts = tokenizer.convert_ids_to_tokens(list(range(len(known), len(tokenizer))))
    new_N_H = [old_V_H[known.encode(text)].mean(0) for text in texts]
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.get_input_embeddings().weight.data = torch.cat([old_V_H, torch.stack(new_N_H)])
    model.tie_weights()
    return model


class Batches:
    """The corpus on a device, in batches of one length each; this share of them is of programs."""

    def __init__(self, corpus: Shard, device: torch.device, programs: float):
        self.device = device
        self.tokens_D = torch.from_numpy(corpus.tokens.astype(np.int32)).to(device)
        lengths_N = torch.from_numpy(corpus.lengths)
        self.lengths_N, self.prompts_N = lengths_N.to(device), torch.from_numpy(corpus.prompts).to(device)
        self.starts_N = (lengths_N.cumsum(0) - lengths_N).to(device)
        self.firsts_N = torch.from_numpy(corpus.firsts).to(device)
        steps_N = (2 ** ((lengths_N - 1).clamp_min(1).log2().floor().long() - 2)).clamp_min(ROUNDED)
        rounded_N = -(-lengths_N // steps_N) * steps_N
        starts = corpus.lengths.cumsum() - corpus.lengths
        programs_N = torch.from_numpy(np.maximum.reduceat(corpus.tokens, starts) < VOCABULARY)
        self.of_length = {
            (bool(program), int(length)): rows
            for program in (False, True)
            for length in rounded_N.unique()
            if len(rows := ((rounded_N == length) & (programs_N == program)).nonzero()[:, 0])
        }
        there = {program: int((programs_N == program).sum()) for program in (False, True)}
        wanted = {False: 1 - programs, True: programs}
        self.shares = [wanted[program] * len(rows) / there[program] for (program, _), rows in self.of_length.items()]

    def draw(self, rng: Random) -> tuple[int, Tensor, Tensor]:
        """A length, and tokens with what each weighs, padded on the right to it: nothing looks ahead, so padding needs
        no mask."""
        (program, length) = rng.choices(list(self.of_length), self.shares)[0]
        rows = self.of_length[program, length]
        drawn_B = rows[torch.tensor([rng.randrange(len(rows)) for _ in range(BATCH_TOKENS // length)])].to(self.device)
        lengths_B, prompts_B = self.lengths_N[drawn_B, None], self.prompts_N[drawn_B, None]
        places_T = torch.arange(length, device=self.device)
        index_B_T = (self.starts_N[drawn_B, None] + places_T).clamp_max(len(self.tokens_D) - 1)
        inside_B_T = places_T < lengths_B
        tokens_B_T = torch.where(inside_B_T, self.tokens_D[index_B_T].long(), 0)
        weights_B_T = (inside_B_T & (places_T >= prompts_B)).float()
        weights_B_T = torch.where(places_T == prompts_B, self.firsts_N[drawn_B, None], weights_B_T)
        return length, tokens_B_T, weights_B_T


def loss_of(model: Any, tokens_B_T: Tensor, weights_B_T: Tensor) -> Tensor:
    hidden_B_T_H = model.model(input_ids=tokens_B_T, use_cache=False).last_hidden_state[:, :-1]
    weights_M = weights_B_T[:, 1:].flatten()
    logits_M_V = model.lm_head(hidden_B_T_H).flatten(0, 1).float()
    losses_M = F.cross_entropy(logits_M_V, tokens_B_T[:, 1:].flatten(), reduction="none")
    return (losses_M * weights_M).sum() / weights_M.sum()


def rate_at(step: int, steps: int, peak: float) -> float:
    """Of learning: up for the first fiftieth, then down to nothing along half a cosine."""
    warm = max(1, steps // 50)
    if step < warm:
        return peak * (step + 1) / warm
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


class Training:
    """A model and its optimiser, and on CUDA the captured step of each length."""

    def __init__(self, model: Any, device: torch.device):
        self.model, self.device = model, device
        self.cuda = device.type == "cuda"
        matrices = [weight for weight in model.parameters() if weight.ndim > 1]
        vectors = [weight for weight in model.parameters() if weight.ndim == 1]
        groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
        self.rate = torch.zeros((), device=device)
        self.optimiser = torch.optim.AdamW(
            groups, lr=self.rate, betas=(0.9, 0.98), fused=self.cuda, foreach=False, capturable=self.cuda
        )
        self.loss = torch.zeros((), device=device)
        """The sum since it was last read."""
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}
        self._seen: dict[int, int] = {}
        self._pool: Any = None

    def step(self, length: int, tokens_B_T: Tensor, weights_B_T: Tensor, rate: float) -> None:
        self.rate.fill_(rate)
        self._seen[length] = self._seen.get(length, 0) + 1
        if not self.cuda or self._seen[length] <= EAGER:
            self._take(tokens_B_T, weights_B_T)
            return
        if length not in self._graphs:
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            self.optimiser.zero_grad(set_to_none=True)
            with torch.cuda.graph(graph, pool=self._pool):
                self._take(tokens_B_T, weights_B_T)
            self._pool = graph.pool()
            self._graphs[length] = graph, tokens_B_T, weights_B_T
        graph, tokens, weights = self._graphs[length]
        if tokens is not tokens_B_T:
            tokens.copy_(tokens_B_T)
            weights.copy_(weights_B_T)
        graph.replay()

    def _take(self, tokens_B_T: Tensor, weights_B_T: Tensor) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.cuda, cache_enabled=False):
            loss = loss_of(self.model, tokens_B_T, weights_B_T)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.loss += loss.detach()


def train(model: Any, batches: Batches, steps: int, peak: float, seed: int, work: Path) -> list[tuple[int, float]]:
    """Take all steps that the work folder does not have yet; the loss every hundred."""
    training = Training(model, batches.device)
    saved = work / "training.pt"
    begin, curve = 0, []
    if saved.is_file():
        state = torch.load(saved, map_location=batches.device, weights_only=True)
        model.load_state_dict(state["model"])
        training.optimiser.load_state_dict(state["optimiser"])
        for group in training.optimiser.param_groups:
            group |= {"lr": training.rate, "fused": training.cuda, "capturable": training.cuda}
        begin, curve = state["step"], state["curve"]
    started = time.perf_counter()
    counted = begin
    for step in range(begin, steps):
        training.step(*batches.draw(Random(f"pico: batches {seed} {step}")), rate_at(step, steps, peak))
        if (step + 1) % 100 == 0 or step + 1 == steps:
            curve.append((step + 1, round(training.loss.item() / (step + 1 - counted), 4)))
            training.loss.zero_()
            counted = step + 1
            print(f"step {step + 1}: loss {curve[-1][1]:.4f}, {time.perf_counter() - started:.1f} s", flush=True)
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == steps:
            optimiser = training.optimiser.state_dict()
            torch.save(
                {"model": model.state_dict(), "optimiser": optimiser, "step": step + 1, "curve": curve},
                saved.with_suffix(".partial"),
            )
            saved.with_suffix(".partial").rename(saved)
    return curve


def save(model: Any, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for name, rows in (("seeds", seeds()), ("exam", exam())):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def foreign(work: Path, asked: dict[str, Any]) -> str | None:
    """What a work folder was begun with that is asked for otherwise now; a new one keeps what is asked."""
    recipe = {name: asked[name] for name in ("width", "layers", "documents", "steps", "lr", "programs", "seed")}
    recipe["begin"] = str(asked["begin"])
    names = ("grammar.py", "documents.py", "family_documents.py", "shards.py")
    sources = [Path(__file__).with_name(name).read_bytes() for name in names]
    recipe["sources"] = hashlib.sha256(b"".join(sources)).hexdigest()[:16]
    file = work / "recipe.json"
    if not file.is_file():
        file.write_text(json.dumps(recipe) + "\n")
    begun = json.loads(file.read_text())
    return next((f"{name} = {begun.get(name)}" for name in recipe if begun.get(name) != recipe[name]), None)


def main() -> None:
    options = argparse.ArgumentParser(description="Make the base `pico` from nothing.")
    options.add_argument("--work", type=Path, required=True, help="for what an interrupted run goes on from")
    options.add_argument("--to", type=Path, required=True, help="the folder to write; what is there is replaced")
    options.add_argument("--begin", type=Path, help="a base of programs to go on from, with documents of all families")
    options.add_argument("--width", type=int, default=128, help=f"a multiple of {HEAD_WIDTH}")
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--documents", type=int, default=1_000_000)
    options.add_argument("--steps", type=int, default=12_000)
    options.add_argument("--lr", type=float, default=3e-3)
    options.add_argument("--programs", type=float, default=0.75, help="share of batches, beside documents of families")
    options.add_argument("--device", type=torch.device, default=None, help="CUDA if there is any")
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    if asked.to.exists() and not (asked.to / "config.json").is_file():
        options.error(f"{asked.to} is there and holds no model: name another folder")
    device = asked.device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(asked.seed)
    asked.work.mkdir(parents=True, exist_ok=True)
    if (odd := foreign(asked.work, vars(asked))) is not None:
        options.error(f"{asked.work} was begun with {odd}: name another folder")
    tokenizer = open_tokenizer(asked.work, asked.seed, asked.begin)
    corpus = make_corpus(asked.work, asked.documents, asked.seed, of_all=asked.begin is not None)
    print(f"{len(corpus.tokens) / 1e6:.1f} million tokens", flush=True)
    model: Any = (
        make_model(tokenizer, asked.width, asked.layers)
        if asked.begin is None
        else widened(asked.begin, tokenizer, asked.layers)
    )
    model.to(device)
    curve = train(model, Batches(corpus, device, asked.programs), asked.steps, asked.lr, asked.seed, asked.work)
    save(model, tokenizer, asked.to)
    (asked.work / "curve.json").write_text(json.dumps(curve))
    size = sum(file.stat().st_size for file in asked.to.iterdir())
    parameters = sum(weight.numel() for weight in model.parameters())
    print(f"{asked.to}: {parameters / 1e6:.2f} million parameters, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
