"""The kernel's walls around a zygote and its children: namespaces, filters, limits, timers.

Everything here is a thin call of libc, prepared before the first fork so that a child touches few pages.
A step that the machine refuses raises `Refused` with the step's name: the host then tries a weaker tier.
"""

import ctypes
import errno
import os
import resource
import signal

import filters

NOBODY = 65534
STACK_BYTES = 8 << 20
CLOCK_ALL, CLOCK_OWN = 2, ~0 << 3 | 1
"""This process's CPU clocks: the first has all of its time, exactly; the second what ticks find it in user mode for,
and so neither what the kernel spends on faults and locks nor what a hypervisor takes, which other work makes grow."""
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
    """Whether it is for want of memory, processes or files that something failed, which may be otherwise in a while."""
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
    """A function that a child calls to shut itself in: False where the machine refused a step.

    Each timer has a signal of its own, so that the exit status says which it was, and that of the wider one cannot be
    blocked. Everything that it needs is made here and bound as a local, because the price of a child is the number of
    pages that it touches.
    """
    lib = ctypes.PyDLL(None)
    prctl, syscall = lib.prctl, lib.syscall
    create, settime = filters.number("timer_create", machine), filters.number("timer_settime", machine)
    own_event, all_event = ((ctypes.c_int * 16)(0, 0, number) for number in (signal.SIGVTALRM, signal.SIGKILL))
    own_event_at, all_event_at = ctypes.byref(own_event), ctypes.byref(all_event)
    own_timer, all_timer = ctypes.c_int(), ctypes.c_int()
    own_timer_at, all_timer_at = ctypes.byref(own_timer), ctypes.byref(all_timer)
    program = ctypes.byref(_program(filters.child_filter(machine)))
    getppid, setsid, setrlimit, parent = os.getppid, os.setsid, resource.setrlimit, os.getpid()
    no_processes = (0, 0)

    def confine(limits, base_memory):
        own_limit, all_limit, memory_bytes = limits
        memory_bytes += base_memory
        setsid()
        refused = prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
        setrlimit(resource.RLIMIT_NPROC, no_processes)
        setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        refused |= syscall(create, CLOCK_OWN, own_event_at, own_timer_at)
        refused |= syscall(settime, own_timer, 0, own_limit, None)
        refused |= syscall(create, CLOCK_ALL, all_event_at, all_timer_at)
        refused |= syscall(settime, all_timer, 0, all_limit, None)
        if refused or getppid() != parent:
            return False  # while it can still say so
        return not seccomp or prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0) == 0

    return confine


def enter_namespaces():
    """New user (unless root), mount, network, pid, ipc, uts and cgroup namespaces, and an empty root.

    The new pid namespace holds processes forked from now on: the caller forks and goes on in the child.
    Returns what was entered, so that the host can see for itself.
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
    entered = namespaces()
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    quiet = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _mount("none", "/tmp", "tmpfs", quiet)
    os.chdir("/tmp")
    _checked("pivot_root", _libc.pivot_root(b".", b"."))
    _checked("umount2 of the old root", _libc.umount2(b".", _MNT_DETACH))
    os.chdir("/")
    _mount("none", "/", None, _MS_REMOUNT | _MS_RDONLY | quiet)
    return entered


def namespaces():
    """Kind -> identity of this process's namespaces; that of pids has a first child's pid of 1 as its sign."""
    kinds = ("mnt", "net", "ipc", "uts", "cgroup")
    return {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in kinds}


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
        return  # a container without that uid


def drop_privileges():
    """Be nobody, with no capability, and never gain one again.

    Root of a container that has no uid but its own stays what it is: without capabilities it is a user like any other.
    """
    if os.geteuid() == 0:
        _become_nobody()
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _checked("capset", _libc.capset(header, (ctypes.c_uint32 * 6)()))
    _checked("prctl(PR_SET_NO_NEW_PRIVS)", _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked("prctl(PR_SET_DUMPABLE)", _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0))


def limit_zygote():
    """Limits that are the same for every job: a usual stack, no core, no files, no locked memory, no message queues."""
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    stack = STACK_BYTES if most == resource.RLIM_INFINITY else min(STACK_BYTES, most)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))
    for name in ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE"):
        resource.setrlimit(getattr(resource, name), (0, 0))
    try:
        _write("/proc/self/oom_score_adj", "1000")
    except OSError:
        return  # where this is forbidden, the kernel picks whom to kill by itself


def address_space():
    """Bytes of address space that this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
