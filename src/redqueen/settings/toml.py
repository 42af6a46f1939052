"""Plain values as TOML, and as a message shows them."""

import json
import re
from collections.abc import Mapping
from typing import Any


def to_toml(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """A table of plain values, lists of them and further tables as TOML."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {value_text(value)}" for key, value in table.items() if key not in inner]
    if path:
        lines.insert(0, f"[{'.'.join(_key(part) for part in path)}]")
    blocks = ["\n".join(lines) + "\n"] if lines else []
    return "\n".join(blocks + [to_toml(value, (*path, key)) for key, value in inner.items()])


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else value_text(key)


def value_text(value: object) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            # JSON's escapes are TOML's, but for DEL, which TOML wants escaped as well.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(value_text(item) for item in value)}]"
        case _:
            raise TypeError(f"no TOML for {type(value).__name__}")


def shown(value: object, *, quote: bool = False) -> str:
    """A value for a message, as TOML would have it: one line, printable, short."""
    if isinstance(value, int) and value.bit_length() > 64:
        # `repr` of a very large number would run into Python's limit on digits; hexadecimal has none.
        text = hex(value)
    elif isinstance(value, str):
        plain = bool(value) and value.isprintable() and " " not in value and not quote
        text = value if plain else f'"{value}"' if value.isprintable() else repr(value)
    else:
        text = value_text(value) if isinstance(value, bool | int | float) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
