# group: output
# input: 1
# expect: ok:(-0.0, nan, -inf, (-0+1j))
# why: floats that compare strangely
def f(x): return (-0.0, float('nan'), float('-inf'), complex(-0.0, 1))
