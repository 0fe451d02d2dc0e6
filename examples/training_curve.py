"""The curve of a training run as a PNG."""

from pathlib import Path


def draw_pretraining(history: list[dict], path: Path) -> None:
    """Sampled training loss and held-out perplexities over the steps of a run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    trained = [entry for entry in history if "train_loss_sampled" in entry]
    left.plot(
        [entry["step"] for entry in trained],
        [entry["train_loss_sampled"] for entry in trained],
        color="tab:gray",
    )
    left.set(xlabel="step", ylabel="loss", title="training, sampled softmax")
    held_out = [entry for entry in history if "validation_perplexity" in entry]
    for name, label in (
        ("validation_perplexity_forward", "forward"),
        ("validation_perplexity_backward", "backward"),
        ("validation_perplexity", "both"),
    ):
        steps = [entry["step"] for entry in held_out]
        right.plot(steps, [entry[name] for entry in held_out], marker="o", label=label)
    right.set(xlabel="step", ylabel="perplexity", yscale="log", title="held-out, full softmax")
    if held_out:
        right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
