# group: stack
# input: 1
# expect: exc:RecursionError
# why: the C accelerator of json recurses per bracket
import json
def f(x): return json.loads('[' * 100_000)
