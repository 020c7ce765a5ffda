"""What the tests and measurements on Ray's local cluster share."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import ray

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DEMO = str(ROOT / "weights" / "demo" / "model.pth")


def start_cluster(cores: int, **options: Any) -> None:
    """Starts a cluster whose workers can import the modules of tools/ray."""
    paths = [str(HERE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    ray.init(
        num_cpus=cores, log_to_driver=False, **options,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}},
    )  # fmt: skip
