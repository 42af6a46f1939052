"""CRUXEval-I as races ask: inputs that give 800 functions' outputs, answered after a thought after two worked turns."""

from typing import ClassVar

from redqueen.evals.cruxeval_forms import AskedInput
from redqueen.tasks.code.code_i import CodeI
from redqueen.tasks.protocol import Form


class CruxEvalILong(AskedInput):
    name = "cruxeval_i_long"
    title = "CRUXEval-I as races ask, thinking first"
    tokens = 1_024
    kind: ClassVar = CodeI(Form.LONG)
