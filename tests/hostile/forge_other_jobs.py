# group: forge
# input: 1
# expect: ok:0
# why: no source of another program is reachable, in this process or left over in the zygote
import gc
def f(x):
    mark, own, seen = '# gro' + 'up: ', 'forge_other' + '_jobs', set()
    for o in gc.get_objects():
        for r in gc.get_referents(o):
            if type(r) is str and r.startswith(mark) and len(r) > 40 and 'no source of another' not in r: seen.add(r)
    return len(seen)
