"""The start of a zygote, a warm interpreter that forks one child per job.

Executed by a bare `python -s -P -S -B` with a clean environment. It imports what programs may use before anything of
its own, so that our own modules can be told apart and hidden; then `service` isolates the process and serves.
"""

import importlib
import os
import sys


def main():
    control_fd, machine, layers, padding, preload, *paths = sys.argv[1:]
    guest_folder = os.path.dirname(os.path.abspath(__file__))
    try:
        guest_modules = _preload(preload.split(","), paths)
    except ImportError as error:
        sys.path.insert(0, guest_folder)
        import wire

        os.write(int(control_fd), wire.greeting(["refused", f"importing what programs may use: {error}"]))
        sys.exit(1)
    sys.path.insert(0, guest_folder)
    import service

    service.run(int(control_fd), machine, layers.split(","), int(padding), guest_modules)


def _preload(names, paths):
    """Import what programs may use; the names of all modules that are loaded then."""
    os.register_at_fork = lambda **hooks: None  # `random` would reseed in every child, `threading` and `logging` relock
    # Makes importing it fail: `hashlib` has its own code for the usual digests, and OpenSSL slows every fork.
    sys.modules["_hashlib"] = None  # pyright: ignore[reportArgumentType] (the type stub does not know of it)
    sys.path += paths
    for name in names:
        importlib.import_module(name)
    del sys.path[len(sys.path) - len(paths) :]
    return set(sys.modules)


if __name__ == "__main__":
    main()
