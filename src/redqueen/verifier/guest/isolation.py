"""The kernel's isolation of a zygote and its children: namespaces, filters, limits, timers.

Everything here is a thin call of libc, prepared before the first fork so that a child touches few pages. A step that
the machine refuses raises `Refused` with the step's name: the host then tries a weaker tier.
"""

import ctypes
import errno
import os
import resource
import signal

import filters

NOBODY = 65534
STACK_BYTES = 8 << 20
CLOCK_CPU, CLOCK_USER = 2, ~0 << 3 | 1
"""This process's CPU clocks: the first counts all of its time, exactly; the second counts ticks in user mode. Load does
not change these, as it does the kernel's time for faults and locks and what a hypervisor takes."""
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_NEW_NS, _NEW_CGROUP, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PID, _NEW_NET = (
    0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_REC, _MS_PRIVATE = 1, 2, 4, 8, 32, 0x4000, 1 << 18
_MNT_DETACH = 2

_BUSY = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_libc = ctypes.CDLL(None, use_errno=True)


class Refused(OSError):
    """The machine does not allow a step of the isolation."""


def is_busy(error):
    """Whether memory, processes or files ran out, which may pass."""
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in _BUSY


def _checked(step, returned):
    if returned < 0:
        code = ctypes.get_errno()
        raise Refused(code, f"{step}: {os.strerror(code)} ({errno.errorcode.get(code, code)})")


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def _program(code):
    return _Program(len(code) // 8, code)


def install_zygote_filter(machine):
    program = _program(filters.zygote_filter(machine))
    _checked("prctl(PR_SET_SECCOMP)", _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0))


def die_with_parent():
    """Be killed when the parent dies. Set it after the last change of user: that clears it."""
    _checked("prctl(PR_SET_PDEATHSIG)", _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def confinement(machine, seccomp):
    """A function that a child calls to confine itself: False where the machine refused a step.

    Each timer has a signal of its own, so that the exit status says which it was, and that of the wider one cannot be
    blocked. Everything is prepared here and bound as a local: what a child costs is the pages that it touches.
    """
    lib = ctypes.PyDLL(None)
    prctl, syscall = lib.prctl, lib.syscall
    create, settime = filters.number("timer_create", machine), filters.number("timer_settime", machine)
    user_event, cpu_event = ((ctypes.c_int * 16)(0, 0, number) for number in (signal.SIGVTALRM, signal.SIGKILL))
    user_event_at, cpu_event_at = ctypes.byref(user_event), ctypes.byref(cpu_event)
    user_timer, cpu_timer = ctypes.c_int(), ctypes.c_int()
    user_timer_at, cpu_timer_at = ctypes.byref(user_timer), ctypes.byref(cpu_timer)
    program = ctypes.byref(_program(filters.child_filter(machine)))
    getppid, setsid, setrlimit, parent = os.getppid, os.setsid, resource.setrlimit, os.getpid()
    no_processes = (0, 0)

    def confine(limits, base_memory):
        user_limit, cpu_limit, memory_bytes = limits
        memory_bytes += base_memory
        setsid()
        refused = prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
        setrlimit(resource.RLIMIT_NPROC, no_processes)
        setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        refused |= syscall(create, CLOCK_USER, user_event_at, user_timer_at)
        refused |= syscall(settime, user_timer, 0, user_limit, None)
        refused |= syscall(create, CLOCK_CPU, cpu_event_at, cpu_timer_at)
        refused |= syscall(settime, cpu_timer, 0, cpu_limit, None)
        if refused or getppid() != parent:
            return False  # while it can still say so
        return not seccomp or prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0) == 0

    return confine


def enter_namespaces():
    """New user (unless root), mount, network, pid, ipc, uts and cgroup namespaces, and an empty root.

    The new pid namespace holds processes forked from now on: the caller forks and goes on in the child. Returns what
    was entered, for the host to check.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = _NEW_NS | _NEW_CGROUP | _NEW_UTS | _NEW_IPC | _NEW_PID | _NEW_NET
    _checked("unshare", _libc.unshare(flags if uid == 0 else flags | _NEW_USER))
    if uid != 0:
        try:
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{NOBODY} {uid} 1")
            _write("/proc/self/gid_map", f"{NOBODY} {gid} 1")
        except OSError as error:
            raise Refused(error.errno, f"mapping the user into its namespace: {error.strerror}") from None
    # That of pids shows in the pid of its first child, which is 1.
    entered = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("mnt", "net", "ipc", "uts", "cgroup")}
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    quiet = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _mount("none", "/tmp", "tmpfs", quiet)
    os.chdir("/tmp")
    _checked("pivot_root", _libc.pivot_root(b".", b"."))
    _checked("umount2 of the old root", _libc.umount2(b".", _MNT_DETACH))
    os.chdir("/")
    _mount("none", "/", None, _MS_REMOUNT | _MS_RDONLY | quiet)
    return entered


def _mount(source, target, kind, flags):
    texts = [text and text.encode() for text in (source, target, kind)]
    _checked(f"mount on {target}", _libc.mount(*texts, ctypes.c_ulong(flags), None))


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)


def _become_nobody():
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError:
        return  # a container without that uid: its root, without capabilities, is a user like any other


def drop_privileges():
    """Become nobody, without any capability, and never gain one again."""
    if os.geteuid() == 0:
        _become_nobody()
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _checked("capset", _libc.capset(header, (ctypes.c_uint32 * 6)()))
    _checked("prctl(PR_SET_NO_NEW_PRIVS)", _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked("prctl(PR_SET_DUMPABLE)", _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0))


def limit_zygote():
    """Limits that are the same for every job."""
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    stack = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))
    for name in ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE"):
        resource.setrlimit(getattr(resource, name), (0, 0))
    try:
        _write("/proc/self/oom_score_adj", "1000")
    except OSError:
        return  # where this is forbidden, the kernel picks whom to kill by itself


def address_space():
    """Of this process, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
