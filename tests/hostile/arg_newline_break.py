# group: forge
# input: @'1)\nimport os\nos._exit(0)\n(2'@
# expect: exc:ValueError|exc:SyntaxError
# why: statements after a line break
def f(x): return x
