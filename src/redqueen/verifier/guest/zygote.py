"""The start of a zygote, a warm interpreter that forks one child per job.

Executed by a bare `python -s -P -S -B` with a clean environment. It imports what programs may use, and the checker if
it is to have one, before anything of its own, so that our own modules can be told apart and hidden; then `service`
isolates the process and serves.
"""

import errno
import importlib
import os
import sys

_MOST_S = 40
"""To load a checker; the host waits longer."""
_MOST_CHARS = 500


def main():
    control_fd, machine, layers, padding, preload, checker, imports, data, *paths = sys.argv[1:]
    guest_folder = os.path.dirname(os.path.abspath(__file__))
    standard = list(sys.path)
    sys.path += paths
    os.register_at_fork = lambda **hooks: None  # `random` would reseed in every child, `threading` and `logging` relock
    # Makes importing it fail: `hashlib` has its own code for the usual digests, and OpenSSL slows every fork.
    sys.modules["_hashlib"] = None  # pyright: ignore[reportArgumentType] (the type stub does not know of it)
    words = _import_all(preload.split(","))
    if checker and not words:
        words = _load(checker, imports.split(",") if imports else [], data, guest_folder)
    sys.path[:] = [guest_folder, *standard]
    if words:
        sys.modules.pop("wire", None)  # where the checker imports one of its own
        import wire

        os.write(int(control_fd), wire.greeting(words))
        sys.exit(1)
    guest_modules = set(sys.modules)
    import service

    service.run(int(control_fd), machine, layers.split(","), int(padding), guest_modules)


def _import_all(names):
    """Import what programs may use; if that fails, what to tell the host."""
    try:
        for name in names:
            importlib.import_module(name)
    except ImportError as error:
        return ["refused", f"importing what programs may use: {error}"]


def _load(file, imports, data, guest_folder):
    """Load a checker from its file; if that fails, what to tell the host."""
    import signal
    from importlib.util import module_from_spec, spec_from_file_location

    name = os.path.basename(file).removesuffix(".py")
    words, sys.argv = sys.argv, [file, data] if data else [file]
    signal.signal(signal.SIGALRM, _overdue)
    signal.setitimer(signal.ITIMER_REAL, _MOST_S)
    try:
        for each in imports:
            importlib.import_module(each)
        # By its place: of all that is called so on the path, this is the one.
        spec = spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None  # a file called .py has both
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for ours in os.listdir(guest_folder):
            if ours.endswith(".py") and ours[:-3] in sys.modules:
                raise ImportError(f"it imports a module called {ours[:-3]}, as one of the verifier's is")
        if os.path.isdir("/proc/self/task") and len(os.listdir("/proc/self/task")) > 1:
            raise RuntimeError("it starts threads, which no guest would have")
    except BaseException as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        busy = isinstance(error, MemoryError) or getattr(error, "errno", None) in (errno.ENOMEM, errno.EAGAIN)
        return ["busy" if busy else "broken", _told(error, file)]
    sys.argv = words
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _overdue(*_):
    """Whether it loops or waits, or was not let run."""
    try:
        with open("/proc/self/schedstat") as file:
            starved_s = int(file.read().split()[1]) / 1e9
    except OSError:
        starved_s = 0.0
    if starved_s > _MOST_S / 2:
        raise BlockingIOError(errno.EAGAIN, f"the processors were busy for {starved_s:.0f} of {_MOST_S} s")
    raise TimeoutError(f"loading it takes more than {_MOST_S} s")


def _told(error, file):
    """The error in one line, with the last line of the file on the way to it."""
    at, trace = "", error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == file:
            at = f"line {trace.tb_lineno}: "
        trace = trace.tb_next
    text = " ".join(f"{at}{type(error).__name__}: {error}".split())
    return text.encode("ascii", "backslashreplace").decode()[:_MOST_CHARS]


if __name__ == "__main__":
    main()
