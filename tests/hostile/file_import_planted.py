# group: file
# input: 1
# expect: exc:ModuleNotFoundError|exc:ImportError|exc:PermissionError
# why: imports from a folder that anybody can write to
import sys
def f(x):
    sys.path[:0] = ['/tmp/redqueen-canary', '']
    sys.path_importer_cache.clear()
    import secret
    return secret.__name__
