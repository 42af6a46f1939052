# group: forge
# input: 1
# expect: violation|exc:PermissionError|noresult|exc:OSError|ok:0
# why: calls the zygote's own methods: it cannot fork, reap or report any more
import sys
def f(x):
    at, done = sys._getframe(1), 0
    while at:
        owner = at.f_locals.get('self')
        for name in [n for n in dir(owner) if n[:2] != '__'] if hasattr(owner, 'serve') else ():
            try: getattr(owner, name)(); done += 1
            except Exception: pass
        at = at.f_back
    return 0 if done <= 1 else done
