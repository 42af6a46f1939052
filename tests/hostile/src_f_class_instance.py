# group: source
# input: 5
# expect: opaque
# why: f is a class, so its result is an instance
class f:
    def __init__(self, x): self.x = x
