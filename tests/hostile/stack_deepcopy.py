# group: stack
# input: 1
# expect: exc:RecursionError
# why: deepcopy of a linked list
import copy
def f(x):
    node = None
    for i in range(20_000): node = {'next': node}
    return copy.deepcopy(node)
