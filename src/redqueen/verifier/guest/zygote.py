"""A warm interpreter that forks one child per job: its start.

Executed by a bare `python -s -P -S -B` with a clean environment. It imports what programs may use, before anything
of its own, so that what only we use can be told apart and hidden; `service` then shuts the process in and serves.
"""

import importlib
import os
import sys


def main():
    control_fd, machine, walls, padding, preload, *paths = sys.argv[1:]
    our_folder = os.path.dirname(os.path.abspath(__file__))
    try:
        guests_modules = _preload(preload.split(","), paths)
    except ImportError as error:
        sys.path.insert(0, our_folder)
        import wire

        os.write(int(control_fd), wire.greeting(["refused", f"importing what programs may use: {error}"]))
        sys.exit(1)
    sys.path.insert(0, our_folder)
    import service

    service.run(int(control_fd), machine, walls.split(","), int(padding), guests_modules)


def _preload(names, paths):
    """Import what programs may use; the names that a guest may import from now on."""
    os.register_at_fork = lambda **hooks: None  # `random` would reseed in every child, `threading` and `logging` relock
    # Python's own way to say that a module cannot be had. `hashlib` has code of its own for the usual digests, and
    # OpenSSL weighs on every fork.
    sys.modules["_hashlib"] = None  # pyright: ignore[reportArgumentType] (the type stub does not know of it)
    sys.path += paths
    for name in names:
        importlib.import_module(name)
    del sys.path[len(sys.path) - len(paths) :]
    return set(sys.modules)


if __name__ == "__main__":
    main()
