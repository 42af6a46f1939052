"""Where random numbers come from: a key made of what they are for, never of what was drawn before.

A number that is drawn for (run seed, step, phase, member, index) is then the same in a run that was killed and resumed,
and in one where other members drew more or less.
"""

import hashlib
from random import Random

Part = str | int


def key(*parts: Part) -> int:
    """64 bits that depend on every part, its type and its place."""
    text = "".join(f"{type(part).__name__}:{len(str(part))}:{part};" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")


def numbers(*parts: Part) -> Random:
    """A generator of its own for these parts."""
    return Random(key(*parts))
