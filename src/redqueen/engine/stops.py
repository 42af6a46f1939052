"""Stop strings, matched in bytes as tokens arrive.

Decoding the whole text again for every token would cost more than sampling it, and a token need not end where a
character does; bytes can be joined one token at a time.
"""

from typing import Any

from transformers import PreTrainedTokenizerBase


def _byte_level() -> dict[str, int]:
    """The printable characters of byte-level vocabularies -> their bytes."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    shifted = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + at): byte for at, byte in enumerate(shifted)}


_BYTES = _byte_level()


class TokenBytes(dict[int, bytes]):
    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        self._byte_level = "ByteLevel" in repr(getattr(backend, "decoder", None))
        self._added = {number: token.content for number, token in tokenizer.added_tokens_decoder.items()}

    def __missing__(self, token: int) -> bytes:
        piece = self[token] = self._piece(token)
        return piece

    def _piece(self, token: int) -> bytes:
        if token in self._added:
            return self._added[token].encode()
        text = self._tokenizer.convert_ids_to_tokens(token)
        if not isinstance(text, str):  # padding of the embedding matrix
            return b""
        if self._byte_level and all(char in _BYTES for char in text):
            return bytes(_BYTES[char] for char in text)
        if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
            return bytes([int(text[3:5], 16)])
        return text.replace("▁", " ").encode()


class StopMatcher:
    """Watches one completion."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = [stop.encode() for stop in stops]
        self._keep = max(map(len, self._stops)) - 1
        self._tail = b""

    def add(self, piece: bytes) -> bool:
        """Whether the completion now contains a stop string."""
        text = self._tail + piece
        self._tail = text[-self._keep :] if self._keep else b""
        return any(stop in text for stop in self._stops)


def cut(text: str, stops: tuple[str, ...]) -> str:
    """The text before the first stop string."""
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text
