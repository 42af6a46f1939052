# group: file
# input: 1
# expect: exc:PermissionError|violation
# why: types into the terminal that started the trainer
import fcntl
def f(x):
    for fd in (0, 1, 2, 3): fcntl.ioctl(fd, 0x5412, b' ')
    return 'typed'
