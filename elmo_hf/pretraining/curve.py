# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The curve of a pretraining run as a PNG."""

from pathlib import Path
from typing import Any

from elmo_hf.pages.plots import new_figure, save_figure


def draw_curve(history: list[dict[str, Any]], path: Path) -> None:
    """Draws the sampled training loss and the held-out perplexities over the steps of a run."""
    held_out = [entry for entry in history if "validation_perplexity" in entry]
    figure, grid = new_figure(10, 4, columns=2 if held_out else 1)
    left, *right = grid[0]
    trained = [entry for entry in history if "train_loss_sampled" in entry]
    left.plot(
        [entry["step"] for entry in trained],
        [entry["train_loss_sampled"] for entry in trained],
        color="tab:gray",
    )
    left.set(xlabel="step", ylabel="loss", title="training, sampled softmax")
    for axes in right:
        for name in ("forward", "backward", "both"):
            key = "validation_perplexity" + (f"_{name}" if name != "both" else "")
            steps = [entry["step"] for entry in held_out]
            axes.plot(steps, [entry[key] for entry in held_out], marker="o", label=name)
        axes.set(xlabel="step", ylabel="perplexity", yscale="log", title="held-out, full softmax")
        axes.legend(frameon=False)
    for axes in grid[0]:
        axes.grid(alpha=0.3, which="both")
    save_figure(figure, path)
