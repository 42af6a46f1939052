"""CRUXEval-O as races ask: what 800 small functions return, answered after a thought and two worked turns."""

from typing import ClassVar

from redqueen.evals.cruxeval_forms import AskedOutput
from redqueen.tasks.code.code_o import CodeO
from redqueen.tasks.protocol import Form


class CruxEvalOLong(AskedOutput):
    name = "cruxeval_o_long"
    title = "CRUXEval-O as races ask, thinking first"
    tokens = 1_024
    kind: ClassVar = CodeO(Form.LONG)
