"""The two pipes of one run: the job goes out, the reply comes in.

Pipes, because the kernel looks for cycles among sockets in transit whenever one is closed, and with a socket pair per
run that search takes a good part of the host's time.
"""

import os

_READ_BYTES = 1 << 17


class Channel:
    """The host's ends, and the child's ends until the child has been sent copies of them."""

    def __init__(self, job: bytes, max_reply_bytes: int) -> None:
        self._unsent = memoryview(job)
        self._max_reply_bytes = max_reply_bytes
        self.received = bytearray()
        self.reply_fd, reply_end = os.pipe()
        try:
            job_end, self.job_fd = os.pipe()
        except OSError:
            os.close(self.reply_fd)
            os.close(reply_end)
            raise
        self.child_fds: tuple[int, ...] = (reply_end, job_end)
        os.set_blocking(self.reply_fd, False)
        os.set_blocking(self.job_fd, False)

    def close_child_ends(self) -> None:
        fds, self.child_fds = self.child_fds, ()
        for fd in fds:
            os.close(fd)

    def send(self) -> bool:
        """Send what the pipe takes; True when nothing is left to send, or nobody to read it."""
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self.job_fd, self._unsent) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._unsent = memoryview(b"")  # the child is gone: its zygote says how
        return True

    def receive(self) -> bool:
        """Read what is there, keeping no more than the longest valid reply; True at the end of the stream."""
        try:
            data = os.read(self.reply_fd, _READ_BYTES)
        except BlockingIOError:
            return False
        if not self.flooded:
            self.received += data
        return not data

    @property
    def flooded(self) -> bool:
        """Whether it has sent more than any valid reply."""
        return len(self.received) > self._max_reply_bytes

    def drain(self) -> None:
        """Read the rest of what a dead child has written."""
        before = -1
        while before != len(self.received) and not self.receive():
            before = len(self.received)

    def close(self) -> None:
        self.close_child_ends()
        os.close(self.reply_fd)
        os.close(self.job_fd)
