# group: file
# input: 1
# expect: exc:PermissionError
# why: loads a file as a module by its path
import importlib.util
def f(x):
    spec = importlib.util.spec_from_file_location('m', '/tmp/redqueen-canary/secret.txt.py')
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
