"""One job, run in a child: read it, execute it, write the reply.

The reply is the job's token and one ASCII line per result. It is the claim of an untrusted process: the host checks
every line, and a guest that rewrites this code can lie about nothing but its own values.
"""

import builtins
import gc
import io
import os
import sys
import types

import literals
import wire


class _Sink(io.BytesIO):
    """Standard output in memory, with a limit."""

    room = 0
    full = False

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            self.full = True
            raise OSError("over the output limit")
        return super().write(data)


class _Discard(io.RawIOBase):
    def writable(self):
        return True

    def write(self, data):
        return len(data)


class _JobModules:
    """Imports the job's further source files."""

    def __init__(self, sources):
        self._sources = sources

    def find_spec(self, name, path=None, target=None):
        if name not in self._sources:
            return None
        return _ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(self._sources[module.__name__], f"<{module.__name__}>", "exec"), module.__dict__)


_ModuleSpec = type(sys.__spec__)
sink = _Sink()
_stdout = io.TextIOWrapper(sink, encoding="utf-8", errors="surrogateescape", newline="\n")
_stderr = io.TextIOWrapper(io.BufferedWriter(_Discard()), encoding="utf-8", errors="backslashreplace")
_open = open
_name_of = type.__dict__["__name__"].__get__
"""A class's own name: looked up on the class, it might be a metaclass's property, which would run here."""
_program = types.ModuleType("program")


def reply(fd, job):
    try:
        lines = _RUN[job.mode](job)
        _stdout.flush()
    except BaseException as error:
        lines = [_failure(error)] * max(1, len(job.texts))
    if sink.full:
        lines = ["toolong"] * len(lines)
    data = "\n".join([job.token, *lines, "end\n"]).encode("ascii")
    while data:
        data = data[os.write(fd, data) :]


def _failure(error):
    """By the type itself: an exception's `__class__` may lie."""
    kind = type(error)
    if issubclass(kind, literals.TooLong):
        return "toolong"
    if issubclass(kind, literals.Opaque):
        return "opaque"
    if issubclass(kind, MemoryError):
        return "memory"
    name = _name_of(kind)
    if type(name) is str and name.isascii() and name.isidentifier() and len(name) <= 100:
        return "exc " + name
    return "exc badname"


def _load(job, module):
    """Execute the source in a module of its own and return its names."""
    sink.room = job.stdout_bytes
    if job.modules:
        sys.meta_path.insert(0, _JobModules(dict(job.modules)))
    gc.enable()
    exec(compile(job.source, "<program>", "exec", 0, True), module.__dict__)
    return module.__dict__


def _run_calls(job):
    arguments = [_attempt(literals.read_arguments, text) if type(text) is str else (text, None) for text in job.texts]
    names = _load(job, _program)
    if job.entry not in names:
        raise NameError(job.entry)
    lines = []
    for read, failure in arguments:
        lines.append(failure or _line(_attempt(_call, names[job.entry], read, job.value_chars)))
    return lines


def _attempt(function, *arguments):
    try:
        return function(*arguments), None
    except BaseException as error:
        return None, _failure(error)


def _line(attempted):
    text, failure = attempted
    return failure or text


def _call(function, arguments, max_chars):
    positional, keywords = arguments
    return "ok " + literals.encode(function(*positional, **keywords), max_chars)


def _run_program(job):
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    sys.stdin = io.TextIOWrapper(io.BytesIO(job.stdin.encode("utf-8", "surrogateescape")), "utf-8", "surrogateescape")
    builtins.open = _open_standard
    try:
        _load(job, module)
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise
    _stdout.flush()
    printed = sink.getvalue().decode("utf-8", "surrogateescape")
    return ["ok " + literals.encode(printed, 12 * job.stdout_bytes)]


def _open_standard(file, *arguments, **keywords):
    """Programs that read their input with open(0) get it."""
    if type(file) is int and file in (0, 1):
        return sys.stdin if file == 0 else _stdout
    return _open(file, *arguments, **keywords)


def _canonical_literal(text, max_chars):
    return "ok " + literals.encode(literals.read_literal(text), max_chars)


def _canonical_arguments(text, max_chars):
    return "ok " + literals.encode_arguments(*literals.read_arguments(text), max_chars)


_RUN = {
    "calls": _run_calls,
    "program": _run_program,
    "literals": lambda job: [_line(_attempt(_canonical_literal, text, job.value_chars)) for text in job.texts],
    "arguments": lambda job: [_line(_attempt(_canonical_arguments, text, job.value_chars)) for text in job.texts],
}


def prepare():
    """Install the guest's streams and module, and run the code a few times so that children find it warm."""
    source, texts = "def f(x):\n    return [x]\n", ("[ 1.5 ]", ([2.5], {}))
    example = wire.WireJob("", "calls", source, texts, "f", "", (), 99, 0)
    for _ in range(64):
        _run_calls(example)
        _program.__dict__.pop("f")
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO()), _stdout, _stderr
    sys.modules["program"] = _program
    os.environ.clear()  # it differs between zygotes
    builtins.exit = builtins.quit = sys.exit  # `site`, which usually brings them, is left out
