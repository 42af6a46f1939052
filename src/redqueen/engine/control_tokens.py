"""Control tokens, told from text that spells them.

A tokenizer reads `<|im_end|>` as the token that ends a turn, whoever wrote it. In a prompt such tokens must come from
the chat template alone: the messages are text, most of it a model's. So each spelling of one is replaced by a
placeholder before the messages are rendered, and comes back letter by letter, which no tokenizer reads as a control
token. Without any spelling, the tokens are those that the tokenizer gives the whole text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from transformers import PreTrainedTokenizerBase

_CONTROL_STYLE = re.compile("<[|\uff5c].+[|\uff5c]>", re.DOTALL)
"""Control tokens that their tokenizer does not call special: `<|file_sep|>`, or DeepSeek's with wide bars."""
_MARKS = range(0xF0000, 0xFFFFE)
"""Private-use characters, more of them than a prompt can use; one that it does not use delimits placeholders."""

KNOWN = 1024
"""Texts that are remembered: most messages of a prompt are in many others too."""


@dataclass(frozen=True, slots=True)
class Escaped:
    """What the placeholders of one prompt stand for."""

    tokenizer: PreTrainedTokenizerBase
    mark: str
    texts: tuple[str, ...]

    def encode(self, text: str, *, add_special_tokens: bool) -> tuple[int, ...]:
        """The tokens of a text with placeholders, each replaced by the letters that it stands for."""
        if not self.texts:
            return tuple(self.tokenizer.encode(text, add_special_tokens=add_special_tokens))
        tokens: list[int] = []
        for place, piece in enumerate(re.split(f"{self.mark}([0-9]+){self.mark}", text)):
            for part in self.texts[int(piece)] if place % 2 else [piece]:
                tokens += self.tokenizer.encode(part, add_special_tokens=False)
        before, after = _around(self.tokenizer) if add_special_tokens else ([], [])
        return (*before, *tokens, *after)


def escape(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> tuple[list[str], Escaped]:
    """The texts with a placeholder for every control token that they spell."""
    template = str(tokenizer.chat_template)
    _, spelling = _control_tokens(tokenizer, template)
    used = set().union(*texts)
    mark = next(chr(code) for code in _MARKS if chr(code) not in used)
    spelt: list[str] = []

    def placeholder(text: str) -> str:
        spelt.append(text)
        return f"{mark}{len(spelt) - 1}{mark}"

    escaped: list[str] = []
    for text in texts:
        replaced = spelling.sub(lambda match: placeholder(match[0]), text)
        escaped.append(placeholder(text) if _hides_control(tokenizer, template, replaced) else replaced)
    return escaped, Escaped(tokenizer, mark, tuple(spelt))


@lru_cache(maxsize=KNOWN)
def _hides_control(tokenizer: PreTrainedTokenizerBase, template: str, text: str) -> bool:
    """Whether a text becomes a control token by the tokenizer's normalisation alone, which no pattern finds: full-width
    letters, for example."""
    control_ids, _ = _control_tokens(tokenizer, template)
    return not control_ids.isdisjoint(tokenizer.encode(text, add_special_tokens=False))


@lru_cache(maxsize=4)
def _control_tokens(tokenizer: PreTrainedTokenizerBase, template: str) -> tuple[frozenset[int], re.Pattern[str]]:
    """Ids and spellings of special tokens, of those that the chat template writes, and of those that look like control
    tokens. Other added tokens are plain text in one piece, such as white space or a fence."""
    ids = {
        token.content: number
        for number, token in tokenizer.added_tokens_decoder.items()
        if token.special or token.content in template or _CONTROL_STYLE.fullmatch(token.content)
    }
    ids |= dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
    # A single letter, or white space, cannot be told from text.
    ids = {content: number for content, number in ids.items() if len(content.strip()) > 1}
    longest_first = sorted(ids, key=len, reverse=True)
    spelling = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
    # Whatever is not in the vocabulary becomes the unknown token without spelling it.
    return frozenset(ids.values()) - {getattr(tokenizer, "unk_token_id", None)}, spelling


def _around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """What the tokenizer puts before and after every text."""
    alone, whole = (tokenizer.encode("a", add_special_tokens=special) for special in (False, True))
    start = next(at for at in range(len(whole)) if whole[at : at + len(alone)] == alone)
    return whole[:start], whole[start + len(alone) :]
