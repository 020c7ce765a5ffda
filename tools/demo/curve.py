"""Draws the loss of a training run by tokens, of the batches and of the validation poems."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as pyplot  # noqa: E402


def read_log(path: Path) -> list[dict]:
    """Returns one entry per step; if a step was repeated after an interrupt, the last."""
    entries = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return sorted({entry["step"]: entry for entry in entries}.values(), key=lambda entry: entry["step"])


def draw(log: list[dict], out: Path) -> None:
    matplotlib.rcParams["svg.hashsalt"] = "poet"  # the same file for the same numbers
    figure, axes = pyplot.subplots(figsize=(7, 3.5), layout="constrained")
    axes.plot([e["tokens"] / 1e6 for e in log], [e["loss"] for e in log], color="0.6", linewidth=1, label="training")
    scored = [e for e in log if "validation" in e]
    axes.plot([e["tokens"] / 1e6 for e in scored], [e["validation"] for e in scored], "o-", color="C3", label="validation")
    axes.annotate(f"{scored[-1]['validation']:.3f}", (scored[-1]["tokens"] / 1e6, scored[-1]["validation"]),
                  textcoords="offset points", xytext=(0, 10), ha="center")
    axes.set(xlabel="million tokens read", ylabel="nats per token of verse", ylim=(3.5, 6.5))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    pyplot.savefig(out, metadata={"Date": None})
    pyplot.close(figure)
