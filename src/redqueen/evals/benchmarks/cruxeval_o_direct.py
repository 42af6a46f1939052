"""CRUXEval-O as races ask: what 800 small functions return, answered at once after two worked turns."""

from typing import ClassVar

from redqueen.evals.cruxeval_forms import AskedOutput
from redqueen.tasks.code.code_o import CodeO
from redqueen.tasks.protocol import Form


class CruxEvalODirect(AskedOutput):
    name = "cruxeval_o_direct"
    title = "CRUXEval-O as races ask, at once"
    tokens = 256
    kind: ClassVar = CodeO(Form.DIRECT)
