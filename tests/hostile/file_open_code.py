# group: file
# input: 1
# expect: exc:PermissionError
# why: the import system's own way of opening files
import io
def f(x): return io.open_code('/etc/passwd').read(10)
