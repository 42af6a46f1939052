"""Messages between a verifier and its shards: plain values, marshalled, over a socket that neither end waits for.

Both ends are ours and trusted; what guests have written has been read, and judged, before it gets here.
"""

import marshal
import selectors
import socket
from collections.abc import Callable
from typing import Any

Handler = Callable[[int], None]
"""What a selector's events go to."""
_READ_BYTES = 1 << 18
_SIZE_BYTES = 8


class Link:
    """One end. A message goes to `on_message`; `on_end` is called once, when the other end is gone."""

    def __init__(
        self,
        end: socket.socket,
        selector: selectors.BaseSelector,
        on_message: Callable[[Any], None],
        on_end: Callable[[], None],
    ) -> None:
        self._socket = end
        self._selector = selector
        self._on_message, self._on_end = on_message, on_end
        self._received = bytearray()
        self._unsent = bytearray()
        end.setblocking(False)
        selector.register(end, selectors.EVENT_READ, self._handle)

    def send(self, message: Any) -> None:
        """Send it now, or what the socket does not take as soon as it does."""
        data = marshal.dumps(message)
        waiting = bool(self._unsent)
        self._unsent += len(data).to_bytes(_SIZE_BYTES, "big") + data
        if not waiting and not self._flush():
            self._watch(selectors.EVENT_READ | selectors.EVENT_WRITE)

    def send_last(self, message: Any, seconds: float) -> None:
        """Send it and wait until it has gone, but not for longer than that."""
        self.send(message)
        self._socket.settimeout(seconds)
        self._flush()

    def close(self) -> None:
        """The other end is told by the end of the stream."""
        if self._socket.fileno() >= 0:
            self._selector.unregister(self._socket)
            self._socket.close()

    def drop(self) -> None:
        """In a forked child, where the selector is the parent's."""
        self._socket.close()

    def _watch(self, events: int) -> None:
        self._selector.modify(self._socket, events, self._handle)

    def _handle(self, events: int) -> None:
        if events & selectors.EVENT_WRITE and self._flush():
            self._watch(selectors.EVENT_READ)
        if events & selectors.EVENT_READ:
            self._receive()

    def _flush(self) -> bool:
        """Whether nothing is left to send, or nobody to read it: that is noticed where it is read."""
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except (BlockingIOError, TimeoutError):
            return False
        except (BrokenPipeError, ConnectionResetError):
            self._unsent.clear()
        return True

    def _receive(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:  # it died with messages unread
            data = b""
        if not data:
            self.close()
            self._on_end()
            return
        self._received += data
        while len(self._received) >= _SIZE_BYTES:
            end = _SIZE_BYTES + int.from_bytes(self._received[:_SIZE_BYTES], "big")
            if len(self._received) < end:
                return
            message = marshal.loads(memoryview(self._received)[_SIZE_BYTES:end])
            del self._received[:end]
            self._on_message(message)
