"""A program with nothing in it that it does not compute with, as everybody sees and runs it.

Comments and docstrings do nothing when a program runs, and much to whoever reads it: a false remark or the beginning
of another turn makes any task hard, and teaches nothing. They are taken out once, when a proposal is read; the layout
stays otherwise, and a program that has none stays as it is. A string is written on one line, so that no line of a
prompt is a program's to write, and three backticks, which would end the block that shows them, are refused.
"""

import ast
import io
import tokenize
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redqueen.tasks.code.key import is_remark
from redqueen.tasks.code.program import parse_source, read_program
from redqueen.tasks.verdicts import Reason, Rejection

_STRINGS = frozenset(
    getattr(tokenize, name) for name in ("STRING", "FSTRING_MIDDLE", "TSTRING_MIDDLE") if hasattr(tokenize, name)
)
_SILENT = frozenset({tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT})
_ASIDE = Rejection(Reason.SYNTAX, "its comments and strings cannot be told from the rest")


@dataclass(frozen=True, slots=True)
class _Remark:
    """A statement that says something and does nothing."""

    lines: tuple[int, int]
    """Its first and its last."""
    stands_in: bool
    """Whether nothing else is in its body, so that something must be."""

    def has(self, line: int) -> bool:
        return self.lines[0] <= line <= self.lines[1]


def read_plain(text: str) -> str | Rejection:
    """A program that keeps the contract, without comments and remarks, each of its strings on one line."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    tree = parse_source(text)
    if isinstance(tree, Rejection):
        return tree
    try:
        plain = _plain(text, tree)
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        return _ASIDE  # text that Python's parser takes and its other tools do not
    if isinstance(plain, Rejection):
        return plain
    checked = read_program(plain)
    return checked if isinstance(checked, Rejection) else refuse_fence(plain) or plain


def plain_message(text: str) -> str:
    """A hint in one line: it has no room for another turn."""
    return " ".join(text.split())


def refuse_fence(*texts: str) -> Rejection | None:
    """Why these cannot be shown in a fenced block; a tokenizer may make other letters the same as backticks."""
    if any("```" in unicodedata.normalize("NFKC", text) for text in texts):
        return Rejection(Reason.FENCE, "three backticks in a row")
    return None


def _plain(text: str, tree: ast.Module) -> str | Rejection:
    tokens = _tokens(text)
    remarks = [_Remark(_around(tokens, line), stands_in) for line, stands_in in _remarks(tree)]
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    spread = [token for token in tokens if _spread(token) and not any(remark.has(token.start[0]) for remark in remarks)]
    if not (remarks or comments or spread):
        return text
    wanted = _without_remarks(_parse(text))
    candidates = [] if spread else [_cut(text, comments, remarks)]
    return next((plain for plain in (*candidates, ast.unparse(wanted)) if _is(plain, wanted)), _ASIDE)


def _is(plain: str, wanted: ast.Module) -> bool:
    """Whether a text is the wanted program, and nothing else."""
    try:
        same = ast.dump(_parse(plain)) == ast.dump(wanted)
    except SyntaxError:
        return False
    return same and not any(token.type == tokenize.COMMENT or _spread(token) for token in _tokens(plain))


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def _spread(token: tokenize.TokenInfo) -> bool:
    """Whether it is a string, or a part of one, that spans lines."""
    return token.type in _STRINGS and token.start[0] != token.end[0]


def _parse(text: str) -> ast.Module:
    """A tree to change; `parse_source` has taken the text, and gives a tree that is for looking at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _around(tokens: Sequence[tokenize.TokenInfo], line: int) -> tuple[int, int]:
    """The first and the last of the lines that Python reads as one with this, for brackets and strings that span it."""
    first = 0
    for token in tokens:
        if token.type == tokenize.NEWLINE:
            if first <= line <= token.start[0]:
                return first, token.start[0]
            first = 0
        elif not first and token.type not in _SILENT:
            first = token.start[0]
    raise ValueError(f"no statement in line {line}")


def _remarks(tree: ast.Module) -> Iterator[tuple[int, bool]]:
    """The line of each, and whether a body needs something in its place."""
    for node in ast.walk(tree):
        for _, statements in ast.iter_fields(node):
            remarks = list(filter(is_remark, statements)) if isinstance(statements, list) else []
            nothing_else = len(remarks) == len(statements) if remarks else False
            for place, remark in enumerate(remarks):
                yield remark.lineno, nothing_else and not place and node is not tree


def _without_remarks(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        for name, statements in ast.iter_fields(node):
            if isinstance(statements, list) and any(map(is_remark, statements)):
                kept = [statement for statement in statements if not is_remark(statement)]
                setattr(node, name, kept if kept or node is tree else [ast.Pass()])
    return tree


def _cut(text: str, comments: Sequence[tokenize.TokenInfo], remarks: Sequence[_Remark]) -> str:
    """The text without the lines of its remarks: the program, unless they share lines with something else."""
    lines = dict(enumerate(text.split("\n"), 1))
    for comment in comments:
        row, column = comment.start
        lines[row] = lines[row][:column].rstrip()
    gone = {comment.start[0] for comment in comments if not lines[comment.start[0]]}
    for remark in remarks:
        first, last = remark.lines
        if remark.stands_in:
            lines[first] = lines[first][: -len(lines[first].lstrip())] + "pass"
        gone.update(range(first + remark.stands_in, last + 1))
    return "\n".join(line for row, line in lines.items() if row not in gone).strip("\n")
