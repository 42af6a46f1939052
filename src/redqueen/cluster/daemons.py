"""Whether the two processes of Ray that a driver cannot do without are there: its machine's daemon and the head.

Ray ends a process itself, in C++, that reaches into the store of a daemon that has died, or that has not heard of the
head for a minute. So both are watched from here, to say first what has happened and how to go on.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress

from redqueen.engine.messages import say
from redqueen.errors import MachineError

LOOK_S = 1.0
"""Between two looks at the head."""
ANSWER_S = 5.0
"""How long a machine may take to take a connection."""


class DaemonLost(MachineError):
    """No call can be made any more."""


class Daemons:
    """Looks after both until it is closed."""

    def __init__(self, daemon: str, head: tuple[str, int], lost: Callable[[DaemonLost], None]) -> None:
        """`daemon` is the path of its socket. `lost` is called once, on another thread, when it has ended."""
        self._head, self._lost = head, lost
        self._closing = threading.Event()
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(daemon)
        for watch in (self._watch_daemon, self._watch_head):
            threading.Thread(target=watch, daemon=True).start()

    def close(self) -> None:
        """Before they are ended."""
        self._closing.set()
        self._line.shutdown(socket.SHUT_RDWR)
        self._line.close()

    def _watch_daemon(self) -> None:
        """It never writes to who says nothing: what comes is the end."""
        with suppress(ConnectionError):
            self._line.recv(1)
        if not self._closing.is_set():
            mend = "unless cluster.address is local, start it anew; the same command goes on from the last checkpoint"
            self._lost(DaemonLost("Ray's daemon on this machine has ended", mend))

    def _watch_head(self) -> None:
        there = True
        while not self._closing.wait(LOOK_S):
            before, there = there, reachable(*self._head)
            if before and not there:
                say(
                    "the cluster's head does not answer; unless it comes back within a minute, Ray ends this process: "
                    "start the cluster anew then, and the same command goes on from the last checkpoint"
                )
            elif there and not before:
                say("the cluster's head answers again")


def reachable(host: str, port: int) -> bool:
    """Whether anybody takes connections there."""
    try:
        with closing(socket.create_connection((host, port), timeout=ANSWER_S)):
            return True
    except OSError:
        return False
