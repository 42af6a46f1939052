# group: honest
# input: '((1+2)*3)'
# expect: ok:9
# why: a small parser with a class and helpers
class Parser:
    def __init__(self, text): self.text, self.at = text, 0
    def peek(self): return self.text[self.at:self.at + 1]
    def take(self):
        self.at += 1
        return self.text[self.at - 1]
    def atom(self):
        if self.peek() == '(':
            self.take(); value = self.sum(); self.take()
            return value
        return int(self.take())
    def product(self):
        value = self.atom()
        while self.peek() == '*': self.take(); value *= self.atom()
        return value
    def sum(self):
        value = self.product()
        while self.peek() == '+': self.take(); value += self.product()
        return value
def f(text): return Parser(text).sum()
