"""Races of a few seconds, on a base that knows nothing and on one that can propose and solve, and what they leave."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

from redqueen.engine.flops import ModelSize
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import Ask, Chain, MemberState, OptimiserState, Sample, SampleRequest, Trajectory
from redqueen.phases.clock import Clock
from redqueen.phases.race import Race
from redqueen.phases.state import State
from redqueen.phases.view import Quiet
from redqueen.runs import CHECKPOINTS, checkpoints
from redqueen.runs.records_file import RECORDS
from redqueen.settings import Config
from redqueen.training.setup import Start, open_races
from redqueen.training.train import train

END = "<end>"
CHANGES = dict[str, dict[str, Any]]
Pairs = Mapping[str, tuple[torch.Tensor, torch.Tensor]]


def settings(base: str = "chains", changes: CHANGES | None = None) -> Config:
    """A race in which every phase has something to do, as short as that can be."""
    sections: dict[str, dict[str, Any]] = {
        "run": {"steps": 1, "checkpoint_every": 1, "measure_every": 1},
        "verifier": {"workers": 2},
        "engine": {"base": base, "rank": 4, "device": "cpu", "dtype": "float32"},
        "population": {"teachers": 2, "students": 2},
        "tasks": {
            "kinds": ["code_o"],
            "form": "short",
            "prompts": 2,
            "proposals": 4,
            "attempts": 4,
            "proposal_tokens": 48,
            "attempt_tokens": 48,
            "seeds": "chains",
        },
        "evolution": {"every": 0},
        "guard": {"duplicates": "allow", "shortcuts": "allow", "entropy_floor": 0.0},
        "rl": {"lr": 1e-3, "warmup": 0},
    }
    for section, values in (changes or {}).items():
        sections[section] = {**sections.get(section, {}), **values}
    return Config.model_validate(sections)


def random_base(folder: Path, positions: int = 4096) -> Path:
    """A folder with a base of a few thousand weights that nobody trained, and a tokenizer of bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({token: place for place, token in enumerate([END, *alphabet])}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)
    config = LlamaConfig(
        vocab_size=len(alphabet) + 1,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=positions,
        bos_token_id=None,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    logging.disable_progress_bar()
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Ran:
    """A race that was run, and what it left on the disk."""

    folder: Path
    settings: Config

    def rows(self, table: str, **where: Any) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.folder / RECORDS)) as db:
            db.row_factory = sqlite3.Row
            rows = [dict(row) for row in db.execute(f"SELECT * FROM {table} ORDER BY 1, 2")]
        return [row for row in rows if all(row[name] == value for name, value in where.items())]

    def figures(self, name: str, step: int = 1) -> dict[str, float]:
        """A figure of all kinds together, by subject."""
        return {row["subject"]: row["value"] for row in self.rows("metrics", name=name, step=step, kind="")}

    def members(self, step: int) -> dict[str, MemberState]:
        return checkpoints.load(self.folder / CHECKPOINTS / checkpoints.name(step)).members

    def alarms(self, measure: str) -> dict[str, str]:
        return {row["subject"]: row["says"] for row in self.rows("alarms", measure=measure)}

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Everything that two equal races have alike."""
        return {name: self.rows(name) for name in ("matches", "tasks", "rejections", "attempts", "events", "metrics")}


@dataclass
class Asked:
    """What an engine was asked, call by call."""

    samples: list[Sequence[SampleRequest]] = field(default_factory=list)
    answers: list[tuple[SampleRequest, Sample]] = field(default_factory=list)
    updates: list[Sequence[Trajectory]] = field(default_factory=list)
    sizes: list[ModelSize] = field(default_factory=list)
    """Of the engines that updated."""


@contextmanager
def listening() -> Iterator[Asked]:
    """All that engines are asked for as long as this lasts."""
    asked = Asked()
    stream, update = LocalEngine.stream, LocalEngine.update

    def streamed(self: LocalEngine, chains: Sequence[Chain[Any]]) -> Any:
        requests: list[SampleRequest] = []
        asked.samples.append(requests)

        def heard(chain: Chain[Any]) -> Chain[Any]:
            async def listen(ask: Ask) -> Any:
                async def asks(own: Sequence[SampleRequest]) -> list[Sample]:
                    requests.extend(own)
                    samples = await ask(own)
                    asked.answers.extend(zip(own, samples, strict=True))
                    return samples

                return await chain(asks)

            return listen

        return stream(self, [heard(chain) for chain in chains])

    def updated(self: LocalEngine, batch: Sequence[Trajectory], *more: Any) -> Any:
        asked.updates.append(batch)
        asked.sizes.append(self.size)
        return update(self, batch, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "stream", streamed)
        patch.setattr(LocalEngine, "update", updated)
        yield asked


def race_to_the_end(folder: Path, of: Config) -> Ran:
    assert train(of, folder, Quiet()).steps == of.run.steps
    return Ran(folder, of)


class Shelf:
    """A journal's place in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.steps: list[int] = []

    def journal_get(self, keys: Sequence[str]) -> Mapping[str, Any]:
        return {key: json.loads(self.kept[key]) for key in keys if key in self.kept}

    def journal_put(self, step: int, entries: Mapping[str, Any]) -> None:
        self.steps.append(step)
        self.kept |= {key: json.dumps(value) for key, value in entries.items()}


@contextmanager
def at_the_start(of: Config) -> Iterator[tuple[Race, State, LocalEngine]]:
    """A race that is to be led by hand, its first state, and its engine."""
    with open_races([Start.new(of, shelf=Shelf())]) as stage:
        yield stage.only.race, stage.only.state, stage.local


def clock(step: int) -> Clock:
    return Clock(step, Quiet(), lambda: False)


def same_weights(ours: MemberState, theirs: MemberState) -> bool:
    """Bit for bit."""
    return _same(ours.factors, theirs.factors)


def same_moments(ours: OptimiserState, theirs: OptimiserState) -> bool:
    """Bit for bit."""
    return _same(ours.exp_avg, theirs.exp_avg) and _same(ours.exp_avg_sq, theirs.exp_avg_sq)


def _same(ours: Pairs, theirs: Pairs) -> bool:
    return ours.keys() == theirs.keys() and all(
        torch.equal(a, b) for module in ours for a, b in zip(ours[module], theirs[module], strict=True)
    )


def untouched(member: MemberState) -> bool:
    """As a fresh member is: B = 0."""
    return not any(bool(b_O_R.any()) for _, b_O_R in member.factors.values())
