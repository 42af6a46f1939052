# group: honest
# input: 4
# expect: ok:[0, 1, 4, 9]
# why: a coroutine driven by hand
async def square(n): return n * n
def run(c):
    try: c.send(None)
    except StopIteration as e: return e.value
def f(n): return [run(square(i)) for i in range(n)]
