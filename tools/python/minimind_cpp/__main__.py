"""Runs the program: python -m minimind_cpp chat out/full_sft_768.pth"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from minimind_cpp._library import PROGRAM


def main() -> None:
    command = [str(PROGRAM), *sys.argv[1:]]
    try:
        if sys.platform == "win32":  # whose execv returns to the shell at once; Ctrl-C is for the program, which gets it, too
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.exit(subprocess.call(command))
        os.execv(PROGRAM, command)
    except OSError as error:
        sys.exit(f"{PROGRAM}: cannot be run: {error.strerror}; install the package again, or run make in the checkout")


if __name__ == "__main__":
    main()
