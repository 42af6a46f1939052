"""Whether an answer says the same as the right one, by math-verify; for a guest of its own.

sympy evaluates text as Python on the way to an expression, so answers of a model are only ever read in here. The whole
is imported and used once before a zygote shuts itself in: afterwards no module can be read from a file.
"""

import logging

from math_verify import parse, verify  # pyright: ignore[reportMissingImports] (an extra)

logging.disable(logging.CRITICAL)


def same(gold, answer):
    """Both as LaTeX or plain text, the right one first: the comparison is not symmetric."""
    return bool(verify(_read(gold), _read(answer), timeout_seconds=0))


def _read(text):
    return parse("\\boxed{" + text + "}", parsing_timeout=0)


_USED = (
    ("\\frac{1}{2}", "0.5"), ("(1, 2]", "(1,2)"), ("\\{1, 2\\}", "2, 1"), ("x^2 + 2x + 1", "(x+1)^2"),
    ("\\sqrt{8} + \\pi", "2\\sqrt2 + 3.14159265"), ("3 + 4i", "4i + 3"), ("x = 5", "y = 5"), ("50\\%", "0.5"),
    ("\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "\\begin{pmatrix} 1 \\\\ 3 \\end{pmatrix}"), ("1 < x < 2", "(1, 2)"),
    ("\\sin(x)\\cos(x)", "\\frac{\\sin(2x)}{2}"), ("(0, 1) \\cup (2, 3)", "(0,1)"), ("\\text{no}", "no"),
    ("\\log_2 8 + \\ln e", "4"), ("5!", "120"), ("\\binom{5}{2}", "10"), ("x \\geq 2", "[2, \\infty)"),
)  # fmt: skip
for _pair in _USED:
    same(*_pair)
