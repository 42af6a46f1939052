# group: forge
# input: 1
# expect: ok:'fake'
# why: its own finder answers any import: fine, and gone with the process
import sys, types
class Finder:
    def find_spec(self, name, path=None, target=None):
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, self)
    def create_module(self, spec): return types.ModuleType(spec.name)
    def exec_module(self, module): module.word = 'fake'
def f(x):
    sys.meta_path.insert(0, Finder())
    import rq_no_such_module
    return rq_no_such_module.word
