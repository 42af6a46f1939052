"""Alternatives to the verifier, run as a script of its own so that it starts small and clean.

    python verifier_peers.py NAME SECONDS WORKERS < programs.json      prints {"runs": ..., "seconds": ...}

Each peer executes the same programs, one per process, on as many workers, and checks only that they ran: whatever a
peer leaves out makes it faster. Standard library only.
"""

import ast
import contextlib
import importlib
import io
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

TIMEOUT_S = 1.0
_REMOVED = [
    "kill", "system", "putenv", "remove", "removedirs", "rmdir", "fchdir", "setuid", "fork", "forkpty", "killpg",
    "rename", "renames", "truncate", "replace", "unlink", "fchmod", "fchown", "chmod", "chown", "chroot", "lchown",
    "getcwd", "chdir",
]  # fmt: skip
"""Functions of `os`."""

programs = []


def _script(number):
    source, arguments = programs[number % len(programs)]
    return f"{source}\nprint(repr(f({arguments})))"


def _execute(number):
    source, arguments = programs[number % len(programs)]
    names = {}
    exec(source, names)
    return repr(names["f"](*ast.literal_eval(f"({arguments},)")))


def fresh_interpreter(number):
    command = [sys.executable, "-I", "-S", "-c", _script(number)]
    return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True).stdout


def bubblewrap(number):
    command = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    command += [sys.executable, "-I", "-S", "-c", _script(number)]
    return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True).stdout


def evalplus_way(number):
    """A forked process per program, from one that has loaded numpy, as in evalplus: a scratch folder, a memory limit,
    functions removed, output discarded, an alarm, and a verdict in shared memory."""
    verdict, progress = multiprocessing.Value("i", 0), multiprocessing.Value("i", 0)
    details = multiprocessing.Array("b", [False])
    process = multiprocessing.Process(target=_guarded, args=(number, verdict, progress, details))
    process.start()
    process.join(TIMEOUT_S + 1)
    if process.is_alive():
        process.kill()
    return verdict.value


def _guarded(number, verdict, progress, details):
    kept = {name: getattr(os, name) for name in _REMOVED}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        for name in _REMOVED:
            setattr(os, name, None)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
            _execute(number)
            signal.setitimer(signal.ITIMER_REAL, 0)
        details[0] = True
        progress.value += 1
        verdict.value = 1
        for name, function in kept.items():
            setattr(os, name, function)
        os.chdir("/")


def multiprocessing_way(number):
    """Run inside a pool whose workers each serve one program."""
    return _execute(number)


PEERS = {
    "fresh interpreter": (fresh_interpreter, ThreadPoolExecutor),
    "bubblewrap": (bubblewrap, ThreadPoolExecutor),
    "evalplus's way": (evalplus_way, ProcessPoolExecutor),
    "multiprocessing": (multiprocessing_way, partial(multiprocessing.Pool, maxtasksperchild=1)),
}


def main():
    name, seconds, workers = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    programs.extend(json.load(sys.stdin))
    multiprocessing.set_start_method("fork")
    if name == "evalplus's way":
        importlib.import_module("numpy")
    run, make_pool = PEERS[name]
    per_task = {"chunksize": 1}
    with make_pool(workers) as pool:
        list(pool.map(run, range(workers), **per_task))
        runs, started = 0, time.perf_counter()
        while time.perf_counter() < started + seconds:
            runs += len(list(pool.map(run, range(runs, runs + 16 * workers), **per_task)))
        print(json.dumps({"runs": runs, "seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main()
