# group: source
# input: 5
# expect: ok:32
# why: f is a partial
import functools
f = functools.partial(pow, 2)
