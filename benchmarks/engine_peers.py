"""Alternatives to the engine: PEFT with `generate` and a plain training loop, and vLLM.

Each is written as its users write it, and whatever a peer leaves out makes it faster: PEFT returns no log-probabilities
and does one batch only, since all its batches are alike. Only requested tokens count: a batch that runs until its
longest row ends computes more for the others.
"""

import importlib.util
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from redqueen.bench.engine import RunOnce, SamplingPeer, States
from redqueen.engine import peft as peft_folders
from redqueen.engine.base import Base
from redqueen.engine.protocol import Recipe, SampleRequest, Trajectory

MAX_MICRO_TOKENS = 16_384
"""More per micro-batch do not make the training loop faster."""


def samplers(open_base: Callable[[], Base], states: States, rows: int) -> tuple[list[SamplingPeer], list[str]]:
    """Those that are installed, and notes about the others."""
    missing = _missing("peft", "vllm")
    notes = list(missing.values())
    peers: list[SamplingPeer] = []
    if len(missing) < 2:
        base = open_base()
        if "vllm" not in missing:
            peers.append(Vllm(base, states))
        if "peft" not in missing:
            peers.insert(0, PeftGenerate(base, states, rows))
            notes.insert(0, f"{PeftGenerate.name} does the first {rows} requests only, in one batch")
    return peers, notes


def trainers(open_base: Callable[[], Base], states: States, micro_tokens: int) -> tuple[list["PeftLoop"], list[str]]:
    missing = _missing("peft")
    return [] if missing else [PeftLoop(open_base(), states, min(micro_tokens, MAX_MICRO_TOKENS))], list(
        missing.values()
    )


def _missing(*names: str) -> dict[str, str]:
    return {
        name: f"{name} is not installed: `pip install {name}` brings it into the comparison"
        for name in names
        if importlib.util.find_spec(name) is None
    }


def _adapted(base: Base, states: States, *, exact: bool) -> Any:
    """The base with every member as a PEFT adapter. `exact` keeps them in float32, for training."""
    import peft

    first = next(iter(states.values()))
    config = peft.LoraConfig(
        r=first.rank,
        lora_alpha=first.alpha,  # pyright: ignore[reportArgumentType] (a fraction serves as well)
        target_modules=list(first.factors),
        task_type="CAUSAL_LM",
    )
    model: Any = None
    for name in states:
        if model is None:
            model = peft.get_peft_model(base.model, config, name, autocast_adapter_dtype=exact)
        else:
            model.add_adapter(name, config, autocast_adapter_dtype=exact)
    with torch.no_grad():
        for name, state in states.items():
            for module, (a_R_I, b_O_R) in state.factors.items():
                layer = model.base_model.model.get_submodule(module)
                layer.lora_A[name].weight.copy_(a_R_I)
                layer.lora_B[name].weight.copy_(b_O_R)
    return model


class PeftGenerate:
    """`generate` on left-padded prompts; several adapters in one batch are named row by row."""

    name = "PEFT + generate"

    def __init__(self, base: Base, states: States, rows: int) -> None:
        from transformers import GenerationConfig

        self.rows = rows
        self.model = _adapted(base, states, exact=False).eval()
        self.device = base.model.device
        # Not the base's own: temperature 1 alone, and no end before the limit.
        self.model.generation_config = base.model.generation_config = GenerationConfig(
            do_sample=True, temperature=1.0, top_k=0, top_p=1.0, pad_token_id=0, eos_token_id=None
        )

    def sampling(self, requests: Sequence[SampleRequest]) -> RunOnce:
        batch = requests[: self.rows]
        width = max(len(request.prompt) for request in batch)
        token_B_T = torch.zeros(len(batch), width, dtype=torch.int64)
        known_B_T = torch.zeros_like(token_B_T)
        for row, request in enumerate(batch):
            token_B_T[row, width - len(request.prompt) :] = torch.tensor(request.prompt)
            known_B_T[row, width - len(request.prompt) :] = 1
        inputs = {"input_ids": token_B_T.to(self.device), "attention_mask": known_B_T.to(self.device)}
        writers = [str(request.member) for request in batch]
        mixed = {"adapter_names": writers} if len(set(writers)) > 1 else {}
        most = max(request.max_tokens for request in batch)

        def run() -> int:
            if not mixed:
                self.model.set_adapter(writers[0])
            with torch.inference_mode():
                out = self.model.generate(**inputs, **mixed, max_new_tokens=most)
            assert out.shape[1] == width + most
            return sum(request.max_tokens for request in batch)

        return run


class PeftLoop:
    """One adapter after the other: its sequences in micro-batches, forward and backward, then a step of AdamW."""

    name = "PEFT, one by one"

    def __init__(self, base: Base, states: States, micro_tokens: int) -> None:
        self.model = _adapted(base, states, exact=True).train()
        self.device = base.model.device
        self.micro_tokens = micro_tokens
        self.optimisers: dict[str, torch.optim.Optimizer] = {}

    def at_once(self, batch: Sequence[Trajectory]) -> int:
        longest = max(map(_length, batch))
        per_member = max(Counter(trajectory.member for trajectory in batch).values())
        return min(per_member, max(1, self.micro_tokens // longest))

    def updating(self, batch: Sequence[Trajectory], recipe: Recipe) -> RunOnce:
        by_member: dict[str, list[Trajectory]] = {}
        for trajectory in sorted(batch, key=_length, reverse=True):
            by_member.setdefault(trajectory.member, []).append(trajectory)

        def run() -> int:
            for member, trajectories in by_member.items():
                while not self._step(member, trajectories, recipe):
                    self.micro_tokens //= 2
                    torch.cuda.empty_cache()
            return sum(map(_length, batch))

        return run

    def _step(self, member: str, batch: list[Trajectory], recipe: Recipe) -> bool:
        """Whether there was memory for it."""
        self.model.set_adapter(member)
        weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        if member not in self.optimisers:
            self.optimisers[member] = torch.optim.AdamW(
                weights, recipe.lr, recipe.betas, recipe.eps, recipe.weight_decay, fused=True
            )
        self.optimisers[member].zero_grad()
        size = self.at_once(batch)
        try:
            for at in range(0, len(batch), size):
                self._loss(batch[at : at + size], recipe).backward()
        except torch.OutOfMemoryError:
            if self.micro_tokens < 64:
                raise
            return False
        if recipe.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(weights, recipe.max_grad_norm)
        self.optimisers[member].step()
        return True

    def _loss(self, batch: list[Trajectory], recipe: Recipe) -> Tensor:
        token_B_T = torch.zeros(len(batch), max(map(_length, batch)), dtype=torch.int64)
        known_B_T, trained_B_T = torch.zeros_like(token_B_T), torch.zeros(token_B_T.shape, dtype=torch.bool)
        for row, trajectory in enumerate(batch):
            start, end = len(trajectory.prompt), _length(trajectory)
            token_B_T[row, :end] = torch.tensor((*trajectory.prompt, *trajectory.completion))
            known_B_T[row, :end] = 1
            trained_B_T[row, start:end] = True
        sampled_M = torch.tensor([logprob for t in batch for logprob in t.logprobs], device=self.device)
        advantage_M = torch.tensor([t.advantages for t in batch for _ in t.completion], device=self.device)
        token_B_T, trained_B_T = token_B_T.to(self.device), trained_B_T.to(self.device)
        out = self.model(input_ids=token_B_T, attention_mask=known_B_T.to(self.device), use_cache=False)
        logits_M_V = out.logits[:, :-1][trained_B_T[:, 1:]].float()
        logprob_M = -F.cross_entropy(logits_M_V, token_B_T[trained_B_T], reduction="none")
        weight_M = (logprob_M.detach() - sampled_M).exp().clamp(max=recipe.ratio_cap) * advantage_M
        return -(weight_M * logprob_M).sum() / recipe.normaliser


def _length(trajectory: Trajectory) -> int:
    return len(trajectory.prompt) + len(trajectory.completion)


class Vllm:
    """Multi-LoRA batches of vLLM; written by its documentation and not yet run."""

    name = "vLLM"

    def __init__(self, base: Base, states: States) -> None:
        import vllm  # pyright: ignore[reportMissingImports]
        from vllm.lora.request import LoRARequest  # pyright: ignore[reportMissingImports]

        self._folder = tempfile.TemporaryDirectory()
        place = Path(self._folder.name)
        base.model.save_pretrained(place / "base")
        modules = [name for name, _ in base.model.named_modules()]
        self._adapters = {}
        for number, (name, state) in enumerate(states.items(), 1):
            peft_folders.save(state, place / name, base_name=str(place / "base"), modules=modules)
            self._adapters[name] = LoRARequest(name, number, str(place / name))
        share: dict[str, float] = {}
        if base.model.device.type == "cuda":
            free, total = torch.cuda.mem_get_info(base.model.device)
            # It allocates its share at once: the others need memory too.
            share = {"gpu_memory_utilization": 0.7 * free / total}
        rank = next(iter(states.values())).rank
        self._engine = vllm.LLM(
            str(place / "base"),
            skip_tokenizer_init=True,
            dtype=str(base.model.dtype).removeprefix("torch."),
            enable_lora=True,
            max_loras=len(states),
            # A power of two.
            max_lora_rank=max(8, 1 << (rank - 1).bit_length()),
            **share,
        )
        self._parameters = vllm.SamplingParams

    def sampling(self, requests: Sequence[SampleRequest]) -> RunOnce:
        prompts = [{"prompt_token_ids": list(request.prompt)} for request in requests]
        limits = [
            self._parameters(
                temperature=1.0, max_tokens=request.max_tokens, ignore_eos=True, logprobs=0, detokenize=False
            )
            for request in requests
        ]
        adapters = [self._adapters[str(request.member)] for request in requests]

        def run() -> int:
            done = self._engine.generate(prompts, limits, lora_request=adapters, use_tqdm=False)
            return sum(len(output.outputs[0].token_ids) for output in done)

        return run
