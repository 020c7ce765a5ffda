"""What the package has besides Python: in a wheel next to this file; in a checkout where `make` builds it."""

from __future__ import annotations

import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parents[2]


def _first(*candidates: pathlib.Path) -> pathlib.Path:
    """The first that exists, otherwise the last."""
    return next((file for file in candidates if file.exists()), candidates[-1])


PROGRAM = _first(PACKAGE / "minimind", CHECKOUT / "minimind")
DEMO = _first(*(folder / "weights" / "demo" / "model.pth" for folder in (PACKAGE, CHECKOUT)))


def library(name: str) -> str:
    """The path of the library, or its name alone, by which the system may find it."""
    file = _first(PACKAGE / name, CHECKOUT / "build" / "release" / name)
    return str(file) if file.exists() else name
