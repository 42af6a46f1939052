# group: honest
# input: 'area'
# expect: ok:[12, 9]
# why: enums, abstract classes and typing
import abc, enum
from typing import Protocol, NamedTuple
class Kind(enum.Enum):
    AREA = 'area'
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self) -> int: ...
class Rect(Shape):
    def __init__(self, a, b): self.a, self.b = a, b
    def area(self): return self.a * self.b
class Square(Rect):
    def __init__(self, a): super().__init__(a, a)
def f(kind): return [s.area() for s in (Rect(3, 4), Square(3)) if Kind(kind) is Kind.AREA]
