"""The program, for what it does with files."""

from __future__ import annotations

import os
import subprocess
from typing import Union

from minimind_cpp._library import PROGRAM


def run(*arguments: Union[str, "os.PathLike[str]"]) -> str:
    """What a command of the program prints, such as run("batch", "in.jsonl", "-o", "out.jsonl", "-m", "out/full_sft_768.pth").

    Raises RuntimeError with its message if it fails. Ctrl-C ends it; a batch then continues with the same call.
    """
    done = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip() or f"{PROGRAM} ended with {done.returncode}")
    return done.stdout.decode("utf-8", "replace")
