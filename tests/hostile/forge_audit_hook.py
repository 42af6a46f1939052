# group: forge
# input: 1
# expect: ok:1|exc:RuntimeError|noresult
# why: an audit hook that vetoes everything cannot be removed; it may cost its own reply
import sys
def f(x):
    def veto(event, args): raise RuntimeError(event)
    sys.addaudithook(veto)
    return 1
