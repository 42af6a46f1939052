# group: honest
# input: 3
# expect: ok:[('b', 1.5), ('c', 2.0), ('a', 3.25)]
# why: dataclasses with ordering and defaults
from dataclasses import dataclass, field
@dataclass(order=True)
class Item:
    weight: float
    name: str = field(compare=False)
    tags: list = field(default_factory=list, compare=False)
def f(n):
    items = [Item(3.25, 'a'), Item(1.5, 'b'), Item(2.0, 'c')][:n]
    return [(i.name, i.weight) for i in sorted(items)]
