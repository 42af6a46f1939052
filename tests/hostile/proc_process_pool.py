# group: process
# input: 1
# expect: exc:PermissionError|exc:NotImplementedError
# why: a process pool needs semaphores, pipes and forks
import concurrent.futures
def f(x):
    with concurrent.futures.ProcessPoolExecutor(1) as pool: return pool.submit(abs, -1).result(timeout=5)
