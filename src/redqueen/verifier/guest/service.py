"""A zygote at work: it isolates itself, reports that it is ready, and from then on only forks and reaps.

A job travels through a pipe of its own that the zygote passes on unread: no program and no answer is in its memory.
"""

import _socket
import gc
import marshal
import os
import select
import signal
import sys

import isolation
import runner
import wire

_REPLY_FD, _JOB_FD = 3, 4
_CONTROL_FD, _AWAKE_FD, _WAKE_FD, _MOST_FDS = 10, 11, 12, 1 << 16
"""The zygote's own descriptors lie above, so that the two received with a message always get 3 and 4."""
_CHILD_FAILED = 111
_padding = []
_KEPT_MODULES = {"resource"}
"""Ours, but looked up by name in `os.wait4`."""


def run(control_fd, machine, layers, padding, guest_modules):
    """Serve until the host goes away."""
    os.dup2(control_fd, _CONTROL_FD)
    _wake_on_child()
    os.closerange(_REPLY_FD, _CONTROL_FD)
    os.closerange(_WAKE_FD + 1, _MOST_FDS)
    control = _socket.socket(fileno=_CONTROL_FD)
    try:
        _warm_up(guest_modules, padding)
        zygote = ZygoteServer(control)
        zygote.isolate(machine, layers)
    except BaseException as error:
        why = error.strerror if type(error) is isolation.Refused else f"{type(error).__name__}: {error}"
        os.write(_CONTROL_FD, wire.greeting(["busy" if isolation.is_busy(error) else "refused", why]))
        os._exit(1)
    zygote.be_child(zygote.serve())


class ZygoteServer:
    def __init__(self, control):
        self._control = control

    def isolate(self, machine, layers):
        """Enter the tier. What a step needs from the file system comes before the step that takes it away."""
        namespaces = {}
        self._base_memory = 0
        self._confine = None
        if "linux" in layers:
            self._base_memory = isolation.address_space()
            isolation.limit_zygote()
        if "namespaces" in layers:
            namespaces = isolation.enter_namespaces()
            self._become_init()
        if "linux" in layers:
            isolation.drop_privileges()
            isolation.die_with_parent()
            self._confine = isolation.confinement(machine, "seccomp" in layers)
        if "seccomp" in layers:
            isolation.install_zygote_filter(machine)
        # By write(), like everything from here on: send() is refused once the filter is in place.
        os.write(_CONTROL_FD, wire.greeting(["ready", str(os.getpid()), *(f"{k} {v}" for k, v in namespaces.items())]))

    def _become_init(self):
        """Go on as the first process of the new pid namespace: when it dies, the kernel kills all in it."""
        inner = os.fork()
        if inner:
            self._control.close()
            isolation.drop_privileges()
            os.waitpid(inner, 0)
            os._exit(0)

    def serve(self):
        """Fork a child per message, report how each ends, exit when the host is gone. Only a child returns, with the
        size of its job: a program that walks up its frames finds nothing of the runs before it."""
        control = self._control
        poll = select.poll()
        poll.register(_CONTROL_FD, select.POLLIN)
        poll.register(_AWAKE_FD, select.POLLIN)
        read_message, report = wire.read_message, wire.report
        running = {}
        while True:
            for fd, _ in poll.poll():
                if fd == _CONTROL_FD:
                    message, *_ = control.recvmsg(wire.MESSAGE_BYTES, 64)
                    if not message:
                        os._exit(0)
                    run, size = read_message(message)
                    if size == 0:
                        _kill(running, run)
                        continue
                    pid = _fork()
                    if pid == 0:
                        return size
                    os.close(_REPLY_FD)
                    os.close(_JOB_FD)
                    if pid is None:
                        os.write(_CONTROL_FD, report(run, wire.NOT_STARTED, 0, 0, 0))
                    else:
                        running[pid] = run
                else:
                    os.read(fd, 4096)
                    while running:
                        pid, status, usage = os.wait4(-1, os.WNOHANG)
                        if pid == 0:
                            break
                        user_us, kernel_us = int(usage.ru_utime * 1_000_000), int(usage.ru_stime * 1_000_000)
                        os.write(_CONTROL_FD, report(running.pop(pid), status, user_us, kernel_us, usage.ru_maxrss))

    def be_child(self, size):
        job = None
        try:
            job = self._read_job(size)
            runner.reply(_REPLY_FD, job)
            os._exit(0)
        except BaseException:
            if job is None:
                _die_unstarted()
            os._exit(_CHILD_FAILED)

    def _read_job(self, size):
        """The job, once the child is confined; whatever goes wrong until then is not the program's fault."""
        data = os.read(_JOB_FD, size)
        while len(data) < size:
            piece = os.read(_JOB_FD, size - len(data))
            if not piece:
                _die_unstarted()
            data += piece
        os.closerange(_JOB_FD, _WAKE_FD + 1)
        limits, job = marshal.loads(data)
        if self._confine and not self._confine(limits, self._base_memory):
            _die_unstarted()
        return tuple.__new__(wire.WireJob, job)


def _fork():
    """As `os.fork`; None where the machine has no process or no memory for one."""
    try:
        return os.fork()
    except OSError:
        return None


def _die_unstarted():
    os.kill(os.getpid(), wire.NOT_STARTED)
    os._exit(_CHILD_FAILED)


def _warm_up(guest_modules, padding):
    """Touch what every child will use, then hide our own modules from it. Zygotes of different hash seeds have
    different padding, so that the low bits of addresses differ too: it takes the places that were freed last, which
    the child's first objects would have."""
    runner.prepare()
    for name in set(sys.modules) - guest_modules - _KEPT_MODULES:
        del sys.modules[name]
    sys.path.clear()
    sys.path_importer_cache.clear()
    gc.collect()
    _padding.extend(made for _ in range(padding) for made in (object(), padding / 2, *map(bytes, range(8, 520, 16))))
    gc.disable()
    gc.freeze()


def _wake_on_child():
    """Make _AWAKE_FD readable whenever a child ends."""
    for fd, place in zip(os.pipe(), (_AWAKE_FD, _WAKE_FD), strict=True):
        os.dup2(fd, place)
        os.set_blocking(place, False)
    for number in (signal.SIGVTALRM, wire.NOT_STARTED):
        signal.signal(number, signal.SIG_DFL)  # what the host ignores would be ignored here too
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(_WAKE_FD, warn_on_full_buffer=False)


def _kill(running, run):
    for pid in [pid for pid, number in running.items() if number == run]:
        os.kill(pid, signal.SIGKILL)
