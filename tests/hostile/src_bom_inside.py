# group: source
# input: 1
# expect: exc:SyntaxError
# why: a byte order mark that is not at the start
﻿def f(x): return x
