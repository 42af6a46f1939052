# group: file
# input: 1
# expect: exc:PermissionError
# why: reads the secret through io.FileIO
import io
def f(x): return io.FileIO('/tmp/redqueen-canary/secret.txt').read()
