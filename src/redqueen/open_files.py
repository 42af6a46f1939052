"""The limit of open files: whoever runs into it, a thread, a library or we, it is one line that says what to raise."""

import errno
import os
import re
import resource

from redqueen.errors import InputError

ENOUGH = 1024
"""For every command, with as many workers as there are cores."""


def exhausted(error: BaseException) -> InputError | None:
    """What to do if an error comes of the limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Libraries pass on no more than the text; of a system that has no more files it is the beginning.
    if not re.search(re.escape(os.strerror(errno.EMFILE)) + "(?! in system)", str(error)):
        return None
    what = f"no more files can be opened: the limit is {limit}"
    return InputError(what, f"raise it with `ulimit -n {max(ENOUGH, 2 * limit)}` and run the same command again")
