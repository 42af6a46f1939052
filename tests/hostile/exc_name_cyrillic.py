# group: exception
# input: 1
# expect: exc:badname
# why: an identifier to Python, not ASCII, and so never echoed
def f(x): raise type('\u041e\u0448\u0438\u0431\u043a\u0430', (Exception,), {})()
