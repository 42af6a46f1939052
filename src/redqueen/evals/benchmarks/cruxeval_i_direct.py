"""CRUXEval-I as races ask: inputs that give 800 functions' outputs, answered at once after two worked turns."""

from typing import ClassVar

from redqueen.evals.cruxeval_forms import AskedInput
from redqueen.tasks.code.code_i import CodeI
from redqueen.tasks.protocol import Form


class CruxEvalIDirect(AskedInput):
    name = "cruxeval_i_direct"
    title = "CRUXEval-I as races ask, at once"
    tokens = 256
    kind: ClassVar = CodeI(Form.DIRECT)
