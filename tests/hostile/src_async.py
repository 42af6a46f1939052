# group: source
# input: 1
# expect: opaque
# why: an async generator is no value
async def f(x):
    yield x
