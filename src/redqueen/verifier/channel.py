"""The two pipes of one run: the job goes out, the reply comes in.

Pipes, because the kernel looks for cycles among sockets in transit whenever one is closed, and with a socket pair per
run that search takes a good part of the host's time.
"""

import os

_PIECE = 1 << 17


class Channel:
    """The host's ends, and until `let_go` the child's ends that are on their way to it."""

    def __init__(self, job: bytes, most_reply_bytes: int) -> None:
        self._unsent = memoryview(job)
        self._most = most_reply_bytes
        self.received = bytearray()
        self.reply_fd, reply_end = os.pipe()
        try:
            job_end, self.job_fd = os.pipe()
        except OSError:
            os.close(self.reply_fd)
            os.close(reply_end)
            raise
        self.theirs: tuple[int, ...] = (reply_end, job_end)
        os.set_blocking(self.reply_fd, False)
        os.set_blocking(self.job_fd, False)

    def let_go(self) -> None:
        """Close the child's ends here, once it has been sent copies."""
        theirs, self.theirs = self.theirs, ()
        for fd in theirs:
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
        """Take what has come, but keep no more than can be right; True when nothing more will come."""
        try:
            data = os.read(self.reply_fd, _PIECE)
        except BlockingIOError:
            return False
        if not self.flooded:
            self.received += data
        return not data

    @property
    def flooded(self) -> bool:
        """Whether more has come than can be right."""
        return len(self.received) > self._most

    def drain(self) -> None:
        """Take the rest of what a dead child has written."""
        before = -1
        while before != len(self.received) and not self.receive():
            before = len(self.received)

    def close(self) -> None:
        self.let_go()
        os.close(self.reply_fd)
        os.close(self.job_fd)
