# group: honest
# input: {'a': {'b': 1, 'c': 4}, 'b': {'c': 2}, 'c': {}}, 'a'
# expect: ok:{'a': 0, 'b': 1, 'c': 3}
# why: shortest paths with a heap
import heapq
def f(graph, start):
    best, todo = {}, [(0, start)]
    while todo:
        cost, node = heapq.heappop(todo)
        if node in best: continue
        best[node] = cost
        for other, step in graph[node].items(): heapq.heappush(todo, (cost + step, other))
    return best
