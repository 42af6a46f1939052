"""One frozen base and any number of members on it, sampled, scored and trained together.

Names are looked up when first used: whoever only lists bases should not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redqueen.engine.base import Base as Base
    from redqueen.engine.base import load as load
    from redqueen.engine.local import LocalEngine as LocalEngine
    from redqueen.engine.protocol import Engine as Engine
    from redqueen.engine.protocol import MemberState as MemberState
    from redqueen.engine.protocol import Recipe as Recipe
    from redqueen.engine.protocol import Sample as Sample
    from redqueen.engine.protocol import SampleRequest as SampleRequest
    from redqueen.engine.protocol import Score as Score
    from redqueen.engine.protocol import ScoreRequest as ScoreRequest
    from redqueen.engine.protocol import Stop as Stop
    from redqueen.engine.protocol import Trajectory as Trajectory
    from redqueen.engine.protocol import UpdateStats as UpdateStats

_HOMES = {
    "redqueen.engine.base": ("Base", "load"),
    "redqueen.engine.local": ("LocalEngine",),
    "redqueen.engine.protocol": (
        "Engine", "MemberState", "Recipe", "Sample", "SampleRequest", "Score", "ScoreRequest", "Stop", "Trajectory",
        "UpdateStats",
    ),
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
