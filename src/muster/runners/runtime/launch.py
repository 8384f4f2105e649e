"""Starts a function's runtime so that it dies with the process that started it; run as a script, by path.

Keeps true: on Linux the kernel kills the runtime when its parent dies, however it dies. Does not know what it starts.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def main(parent: str, command: list[str]) -> None:
    """Become `command`, unless `parent` (a process id) is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        sys.exit(1)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
