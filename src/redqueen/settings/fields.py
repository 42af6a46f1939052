"""What a field of the settings says about itself, beside its type and its help: how it is written, what it affects."""

import math
import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError


class Affects(Enum):
    """What another value would change. A field that does not say so affects the race."""

    NOTHING = auto()
    """What is kept, shown or measured beside the race: it may change on resume, and between runs that are compared."""
    LENGTH = auto()
    """How long the race goes on: it may change on resume."""
    SEED = auto()
    """Which race of an arm it is: runs that differ in it alone are compared as one arm."""
    RACE = auto()
    """What the members do and learn."""
    MEMBERS = auto()
    """What the members are: a fork keeps it too."""


@dataclass(frozen=True, slots=True)
class Metavar:
    """What stands for the value in a command's help."""

    text: str


def _as_tuple(value: Any) -> Any:
    # Settings are frozen, lists in TOML are not.
    return tuple(value) if isinstance(value, list) else value


def _as_numbers(value: Any) -> Any:
    # On the command line they come as text.
    if isinstance(value, list):
        return tuple(float(item) if _is_number(item) else item for item in value)
    return value


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(MiB|GiB|MB|GB|%)", re.ASCII)
_BYTES = {"MiB": 1 << 20, "GiB": 1 << 30, "MB": 10**6, "GB": 10**9}


def bytes_in(size: str, whole: int) -> int:
    """What a size such as 24GiB comes to, or a share of the whole such as 80%."""
    found = _SIZE.fullmatch(size)
    assert found is not None
    number, unit = float(found[1]), found[2]
    return int(number * (whole / 100 if unit == "%" else _BYTES[unit]))


def _as_size(value: str) -> str:
    if _SIZE.fullmatch(value) is None or not 0 < bytes_in(value, 100) <= (100 if "%" in value else math.inf):
        raise PydanticCustomError("size", "write a size such as 24GiB or 800MiB, or a share such as 80%")
    return value


Size = Annotated[str, AfterValidator(_as_size), Metavar("SIZE|SHARE")]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_as_tuple)]
Plugin = Annotated[Name, Metavar("NAME|FILE.py:NAME")]
Plugins = Annotated[Names, Field(min_length=1), Metavar("NAME,FILE.py:NAME")]
Weights = Annotated[tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...], BeforeValidator(_as_numbers)]
