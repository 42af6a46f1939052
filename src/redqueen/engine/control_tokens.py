"""Control tokens, told from text that spells them.

A tokenizer reads `<|im_end|>` as the token that ends a turn, whoever wrote it. In a prompt such tokens are the chat
template's alone: what the messages hold is text, most of it a model's. So each spelling of one is taken out of the
messages before they are rendered, and comes back letter by letter, which no tokenizer reads as a control token. Where
nothing is spelt, the tokens are those that the tokenizer gives the whole text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from transformers import PreTrainedTokenizerBase

_LOOKS_LIKE_ONE = re.compile("<[|\uff5c].+[|\uff5c]>", re.DOTALL)
"""Control tokens that their tokenizer does not call special: `<|file_sep|>`, or DeepSeek's with wide bars."""
_STAND_INS = range(0xF0000, 0xFFFFE)
"""Characters that mean nothing, more of them than a prompt has room for; one marks where something was taken out."""


@dataclass(frozen=True, slots=True)
class ControlTokens:
    """The control tokens of a tokenizer."""

    ids: frozenset[int]
    """Those that only a spelling comes to."""
    spelling: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class TakenOut:
    """What was taken out of the texts of one prompt."""

    tokenizer: PreTrainedTokenizerBase
    stand_in: str
    texts: tuple[str, ...]

    def encode(self, text: str, *, add_special_tokens: bool) -> tuple[int, ...]:
        """The tokens of a text made of those that things were taken out of: they are back in it, as text."""
        if not self.texts:
            return tuple(self.tokenizer.encode(text, add_special_tokens=add_special_tokens))
        tokens: list[int] = []
        for place, piece in enumerate(re.split(f"{self.stand_in}([0-9]+){self.stand_in}", text)):
            for part in self.texts[int(piece)] if place % 2 else [piece]:
                tokens += self.tokenizer.encode(part, add_special_tokens=False)
        before, after = _around(self.tokenizer) if add_special_tokens else ([], [])
        return (*before, *tokens, *after)


def take_out(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> tuple[list[str], TakenOut]:
    """The texts without any control token that they spell, and what gives it back."""
    control = _control_tokens(tokenizer, str(tokenizer.chat_template))
    used = set().union(*texts)
    stand_in = next(chr(code) for code in _STAND_INS if chr(code) not in used)
    taken: list[str] = []

    def take(spelt: str) -> str:
        taken.append(spelt)
        return f"{stand_in}{len(taken) - 1}{stand_in}"

    left: list[str] = []
    for text in texts:
        rest = control.spelling.sub(lambda match: take(match[0]), text)
        # What a tokenizer makes the same before it looks, another width of letters for one, no pattern finds.
        hidden = not control.ids.isdisjoint(tokenizer.encode(rest, add_special_tokens=False))
        left.append(take(text) if hidden else rest)
    return left, TakenOut(tokenizer, stand_in, tuple(taken))


@lru_cache(maxsize=4)
def _control_tokens(tokenizer: PreTrainedTokenizerBase, template: str) -> ControlTokens:
    """Special tokens, those that the chat template writes, and those that look like one.

    Other tokens of a list of added ones are text that somebody wanted in one piece: white space, or a fence.
    """
    added = tokenizer.added_tokens_decoder.items()
    ids = {token.content: at for at, token in added if token.special or _is_one(token.content, template)}
    ids |= dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
    # One letter, or white space, is nothing that could be told from text.
    ids = {content: at for content, at in ids.items() if len(content.strip()) > 1}
    longest_first = sorted(ids, key=len, reverse=True)
    spelling = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
    # What is not in the vocabulary comes to the unknown token without spelling it.
    return ControlTokens(frozenset(ids.values()) - {getattr(tokenizer, "unk_token_id", None)}, spelling)


def _is_one(content: str, template: str) -> bool:
    return content in template or _LOOKS_LIKE_ONE.fullmatch(content) is not None


def _around(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """What the tokenizer puts before and after every text."""
    alone, whole = (tokenizer.encode("a", add_special_tokens=special) for special in (False, True))
    start = next(at for at in range(len(whole)) if whole[at : at + len(alone)] == alone)
    return whole[:start], whole[start + len(alone) :]
