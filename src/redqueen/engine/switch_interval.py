"""A shorter switch interval for Python's threads while an engine works."""

import sys
import threading

SWITCH_S = 0.0001
"""After this long other threads yield to the engine's, which gives the interpreter away for a moment with nearly
everything that it asks of a GPU, and then wants it back. Python's 5 ms are several steps of a small base."""


class _ShortSwitchInterval:
    """Of all engines of a process: the first to enter shortens the interval, the last to leave restores it."""

    def __init__(self) -> None:
        self._lock, self._within, self._before = threading.Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH_S))
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                sys.setswitchinterval(self._before)


SHORT_SWITCH_INTERVAL = _ShortSwitchInterval()
