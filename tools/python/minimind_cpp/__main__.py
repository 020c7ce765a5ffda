"""Runs the program: python -m minimind_cpp chat out/full_sft_768.pth"""

from __future__ import annotations

import os
import sys

from minimind_cpp._library import PROGRAM


def main() -> None:
    try:
        os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{PROGRAM}: cannot be run: {error.strerror}; install the package again, or run make in the checkout")


if __name__ == "__main__":
    main()
