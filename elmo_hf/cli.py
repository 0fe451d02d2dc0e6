"""The command `elmo-hf`. Each subcommand is a plain function; its signature is its `--help`."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer
from torch.nn import Module

from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.conversion.source import load_elmo

app = typer.Typer(
    name="elmo-hf",
    no_args_is_help=True,
    add_completion=False,
    help="ELMo as a Hugging Face model: convert published weights, look into them, take them back.",
)


def info(
    model: Annotated[str, typer.Argument(help="An ELMo folder or Hub repository.")],
) -> None:
    """Print a model's sizes, layers, parameters and provenance."""
    loaded = load_elmo(model)
    config = loaded.config
    parts: dict[str, Module] = {"token encoder": loaded.token_encoder}
    parts |= {f"biLSTM layer {number + 1}": layer for number, layer in enumerate(loaded.layers)}
    filters = ", ".join(f"{count} of {width}" for width, count in config.char_filters)
    facts = {
        "model": model,
        "class": ", ".join(config.architectures or ["unknown"]),
        "hidden size": f"{config.hidden_size} (2 x {config.projection_size})",
        "cell size": config.cell_size,
        "layers": f"{config.num_hidden_layers} biLSTM + token layer",
        "character filters": f"{filters} ({config.num_filters} in all)",
        "highways": config.num_highway_layers,
        "characters per word": config.max_characters_per_token,
        "clips": f"cell {config.cell_clip}, projection {config.projection_clip}",
        **{name: f"{count_parameters(part):,} parameters" for name, part in parts.items()},
        "all": f"{count_parameters(loaded):,} parameters",
        **(config.provenance or {"provenance": "not recorded"}),
    }
    width = max(map(len, facts))
    for name, fact in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {fact}")


def count_parameters(module: Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def run(command: Callable) -> None:
    """Run a program: what a user can mend is said in one sentence, not in a traceback."""
    try:
        command()
    except (ValueError, OSError, ImportError) as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)


for command in (convert, export, info):
    app.command()(command)


def main() -> None:
    run(app)
