# group: cpu
# input: 1
# expect: timeout
# why: overlapping alternatives under a star
import re
def f(x): return re.fullmatch('(?:x|xx|xxx)*y', 'x' * 200) is None
