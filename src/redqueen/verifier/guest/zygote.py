"""A warm interpreter that forks one child per job: its start.

Executed by a bare `python -s -P -S -B` with a clean environment. It imports what programs may use, before anything
of its own, so that what only we use can be told apart and hidden; `service` then shuts the process in and serves.
"""

import importlib
import json
import os
import sys


def main():
    control_fd, settings = int(sys.argv[1]), json.loads(sys.argv[2])
    try:
        guests_modules = _preload(settings["preload"], settings["paths"])
    except ImportError as error:
        data = json.dumps({"refused": f"importing what programs may use: {error}"}).encode()
        os.write(control_fd, len(data).to_bytes(4, "big") + data)
        sys.exit(1)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import service

    service.run(control_fd, settings, guests_modules)


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
