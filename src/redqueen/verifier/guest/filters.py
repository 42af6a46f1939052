"""The system-call filters, as tables and as the BPF programs made from them.

Every call of the kernel falls in one of four classes. ALLOWED calls are what a running interpreter needs. ZYGOTE calls
are needed before the guest's code starts; a small filter of the child refuses them from then on (installing the whole
filter in every child would cost far more). REFUSED calls return EACCES, so that a program sees a PermissionError. Every
other call kills the process. Numbers are for x86-64 and aarch64 (`-`: the architecture has no such call).
"""

_ALLOWED = """
exit 60 93, exit_group 231 94, brk 12 214, munmap 11 215, mremap 25 216, madvise 28 233, futex 202 98,
clock_gettime 228 113, clock_getres 229 114, gettimeofday 96 169, time 201 -, getpid 39 172, gettid 186 178,
getppid 110 173, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177,
rt_sigreturn 15 139, rt_sigprocmask 14 135, restart_syscall 219 128, close 3 57, close_range 436 436,
times 100 153, getrusage 98 165, getcpu 309 168, write 1 64, mmap 9 222, mprotect 10 226
"""

_ZYGOTE = """
read 0 63, recvmsg 47 212, clone 56 220, wait4 61 260, poll 7 -, ppoll 271 73, setsid 112 157, prctl 157 167,
prlimit64 302 261, timer_create 222 107, timer_settime 223 110, kill 62 129, set_robust_list 273 99,
rseq 334 293
"""

_REFUSED = """
open 2 -, openat 257 56, openat2 437 437, creat 85 -, stat 4 -, lstat 6 -, fstat 5 80, newfstatat 262 79,
statx 332 291, access 21 -, faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78,
getdents 78 -, getdents64 217 61, chdir 80 49, fchdir 81 50, getcwd 79 17, chroot 161 51, mkdir 83 -,
mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35, rename 82 -, renameat 264 38, renameat2 316 276,
link 86 -, linkat 265 37, symlink 88 -, symlinkat 266 36, mknod 133 -, mknodat 259 33, chmod 90 -, fchmod 91 52,
fchmodat 268 53, chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, truncate 76 45, ftruncate 77 46,
fallocate 285 47, utime 132 -, utimes 235 -, utimensat 280 88, futimesat 261 -, lseek 8 62, pread64 17 67,
pwrite64 18 68, readv 19 65, writev 20 66, preadv 295 69, pwritev 296 70, sendfile 40 71,
copy_file_range 326 285, splice 275 76, dup 32 23, dup2 33 -, dup3 292 24, fcntl 72 25, ioctl 16 29, pipe 22 -,
pipe2 293 59, flock 73 32, fsync 74 82, fdatasync 75 83, sync 162 81, statfs 137 43, fstatfs 138 44,
umask 95 166, getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10, setxattr 188 5, lsetxattr 189 6,
fsetxattr 190 7, listxattr 194 11, llistxattr 195 12, flistxattr 196 13, socket 41 198, socketpair 53 199,
connect 42 203, bind 49 200, listen 50 201, accept 43 202, accept4 288 242, sendto 44 206, recvfrom 45 207,
sendmsg 46 211, sendmmsg 307 269, recvmmsg 299 243, getsockname 51 204, getpeername 52 205, setsockopt 54 208,
getsockopt 55 209, shutdown 48 210, execve 59 221, execveat 322 281, fork 57 -, vfork 58 -, clone3 435 435,
waitid 247 95, tkill 200 130, tgkill 234 131, rt_sigaction 13 134, rt_sigpending 127 136,
rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, rt_sigtimedwait 128 137,
sigaltstack 131 132, pidfd_send_signal 424 424, pidfd_open 434 434, alarm 37 -, setitimer 38 103,
getitimer 36 102, nanosleep 35 101, clock_nanosleep 230 115, clock_settime 227 112, settimeofday 164 170,
select 23 -, pselect6 270 72, epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -,
epoll_pwait 281 22, eventfd 284 -, eventfd2 290 19, timerfd_create 283 85, signalfd 282 -, signalfd4 289 74,
inotify_init 253 -, inotify_init1 294 26, getrlimit 97 163, setrlimit 160 164, getpriority 140 141,
setpriority 141 140, sched_yield 24 124, sched_getaffinity 204 123, sched_setaffinity 203 122,
sched_getscheduler 145 120,
sched_setscheduler 144 119, sched_getparam 143 121, sched_setparam 142 118, sched_get_priority_max 146 125,
sched_get_priority_min 147 126, sched_rr_get_interval 148 127, getrandom 318 278, uname 63 160, sysinfo 99 179,
getgroups 115 158, setgroups 116 159, setuid 105 146, setgid 106 144, setreuid 113 145, setregid 114 143,
setresuid 117 147, setresgid 119 149, getresuid 118 148, getresgid 120 150, setpgid 109 154, getpgid 121 155,
getpgrp 111 -, getsid 124 156, sethostname 170 161, setdomainname 171 162, mlock 149 228, munlock 150 229,
mlockall 151 230, munlockall 152 231, msync 26 227, mincore 27 232
"""

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""Machine name as the kernel spells it -> AUDIT_ARCH value that the filter sees."""

KILL = 0x80000000
REFUSE = 0x00050000 | 13
TRY_AGAIN = 0x00050000 | 11
ALLOW = 0x7FFF0000

REPLY_FD = 3
"""The only descriptor that a guest may write to."""

_PROT_EXEC = 4
_FORK_FLAGS = 0x01200000 | 17
"""CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID and SIGCHLD: what fork() passes. Any other flag is refused."""
_OTHERS_CLOCKS = 0xFFFFFFF0
"""Bits in the id of a process's, a thread's or a descriptor's clock; the kernel's fixed clocks lie below 16."""
_FUTEX_COMMAND = 0x7F
_FUTEX = {1: ALLOW, 10: ALLOW, 9: TRY_AGAIN, 0: KILL}
"""Command -> action; any other is refused. Nobody can wake a process of one thread, and a sleeping one would not use up
its time. So locks, whose waits try again, spin until that time is over, and a wait without a lock is killed."""
_WAITS = ("poll", "ppoll")
"""Killed in a child: some machines build pause() on them, which takes a refusal for a wake-up."""

_NR, _ARCH = 0, 4
_LOAD, _AND, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06


def calls(table, machine):
    """Name -> number of a table's calls on one architecture."""
    column = list(ARCHITECTURES).index(machine) + 1
    rows = (row.split() for row in table.replace("\n", " ").split(","))
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


def number(name, machine):
    """The number of a call that one of the tables lists."""
    return calls(",".join((_ALLOWED, _ZYGOTE, _REFUSED)), machine)[name]


def zygote_filter(machine):
    """The whole policy, installed once per zygote and inherited by every child."""
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQ, 1, 0, ARCHITECTURES[machine]),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NR),
    ]
    for name in ("mmap", "mprotect"):
        code += _when(number(name, machine), argument=2, bits=_PROT_EXEC)
    for name in ("clock_gettime", "clock_getres"):
        code += _when(number(name, machine), argument=0, bits=_OTHERS_CLOCKS)
    code += _when(number("clone", machine), argument=0, bits=0xFFFFFFFF ^ _FORK_FLAGS)
    code += _by(number("futex", machine), argument=1, bits=_FUTEX_COMMAND, actions=_FUTEX)
    actions = dict.fromkeys((*calls(_ALLOWED, machine).values(), *calls(_ZYGOTE, machine).values()), ALLOW)
    actions |= dict.fromkeys(calls(_REFUSED, machine).values(), REFUSE)
    for first, action in _ranges(actions):
        code += [(_JUMP_GE, 1, 0, first), (_RETURN, 0, 0, action)]
    return _assemble([*code, (_RETURN, 0, 0, KILL)])


def child_filter(machine):
    """What a child gives up just before it runs untrusted code; the zygote's filter still holds."""
    code = [
        (_LOAD, 0, 0, _NR),
        (_JUMP_EQ, 0, 4, number("write", machine)),
        (_LOAD, 0, 0, _argument(0)),
        (_JUMP_EQ, 0, 1, REPLY_FD),
        (_RETURN, 0, 0, ALLOW),
        (_RETURN, 0, 0, REFUSE),
    ]
    given_up = calls(_ZYGOTE, machine)
    waits = {name: given_up.pop(name) for name in _WAITS if name in given_up}
    for names, action in ((waits, KILL), (given_up, REFUSE)):
        for nr in names.values():
            code += [(_JUMP_EQ, 0, 1, nr), (_RETURN, 0, 0, action)]
    return _assemble([*code, (_RETURN, 0, 0, ALLOW)])


def _when(nr, argument, bits):
    """If this is call `nr`: refuse it when any of `bits` is set in the argument, else allow it."""
    return [
        (_JUMP_EQ, 0, 4, nr),
        (_LOAD, 0, 0, _argument(argument)),
        (_JUMP_SET, 1, 0, bits),
        (_RETURN, 0, 0, ALLOW),
        (_RETURN, 0, 0, REFUSE),
    ]


def _by(nr, argument, bits, actions):
    """If this is call `nr`: the action for the argument's `bits`, or refuse it where there is none."""
    body = [(_LOAD, 0, 0, _argument(argument)), (_AND, 0, 0, bits)]
    for value, action in actions.items():
        body += [(_JUMP_EQ, 0, 1, value), (_RETURN, 0, 0, action)]
    return [(_JUMP_EQ, 0, len(body) + 1, nr), *body, (_RETURN, 0, 0, REFUSE)]


def _argument(index):
    """Offset of the low half of an argument; both architectures are little-endian."""
    return 16 + 8 * index


def _ranges(actions):
    """(upper bound, action) for ascending ranges of call numbers; numbers not in `actions` kill.

    The last range ends below the x32 bit, so calls of that ABI fall through to the final KILL.
    """
    bounds = []
    action = KILL
    for nr in range(max(actions) + 2):
        new = actions.get(nr, KILL)
        if new != action:
            if nr:
                bounds.append((nr, action))
            action = new
    return bounds


def _assemble(code):
    """Both architectures are little-endian: 16 bits of opcode, two jumps of 8, an operand of 32."""
    return b"".join(
        opcode.to_bytes(2, "little") + bytes((if_true, if_false)) + operand.to_bytes(4, "little")
        for opcode, if_true, if_false, operand in code
    )
