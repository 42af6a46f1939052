# group: cpu
# input: 1
# expect: exc:PermissionError
# why: select on nothing is a sleep
import select
def f(x): return select.select([], [], [], 60)
