# group: process
# input: 1
# expect: exc:RuntimeError
# why: a thread pool starts its threads on submit
import concurrent.futures
def f(x):
    with concurrent.futures.ThreadPoolExecutor(2) as pool: return pool.submit(abs, -1).result(timeout=5)
