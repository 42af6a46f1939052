# group: forge
# input: 1
# expect: ok:1|ok:42|exc*
# why: argument parsing is patched at import time: it can only fool its own call
import ast
class Body:
    keywords, args, func = [], [ast.Constant(42)], ast.Name('f', end_col_offset=1)
ast.parse = lambda *a, **k: ast.Expression(body=ast.Call(func=Body.func, args=Body.args, keywords=[]))
ast.literal_eval = lambda text: 42
def f(x): return x
