"""Pack a pretrained biLM, or a tagger on it, into the folder of the bundled model.

    python examples/bundled_model/pack.py bilm my-elmo
    accelerate launch examples/run_pos.py ... --output_dir my-tagger
    python examples/bundled_model/pack.py tagger my-tagger --task upos

Weights are stored in half precision and load as float32. The biLM is packed without its softmax, a
tagger without the biLM that it shares. `--folder` packs into another folder than that of the
package.
"""

import argparse
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel

from elmo_hf import (
    ElmoConfig,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTokenizer,
    bundled_model,
)
from elmo_hf.system import run_program


def pack_bilm(source: Path, folder: Path) -> None:
    config = ElmoConfig.from_pretrained(source)
    for name in ("lm_vocab_size", "lm_begin_id", "lm_end_id"):
        setattr(config, name, getattr(ElmoConfig(), name))
    model = ElmoModel.from_pretrained(source, config=config)
    # under the names they have in a model with a head, so that they serve a tagger as they are
    weights = {
        f"elmo.{name}": part for name, part in model.state_dict().items() if "mixes" not in name
    }
    folder.mkdir(parents=True, exist_ok=True)
    # last, because the weights say that the folder is whole
    ElmoTokenizer.from_pretrained(source).save_pretrained(folder)
    write(model, weights, folder / "config.json", folder / "model.safetensors")


def pack_tagger(source: Path, task: str, folder: Path) -> None:
    model = ElmoForTokenClassification.from_pretrained(source)
    bilm = ElmoModel.from_pretrained(folder).state_dict()
    head = {}
    for name, part in model.state_dict().items():
        if not name.startswith(("elmo.token_encoder", "elmo.layers")):
            head[name] = part
        elif not torch.equal(part, bilm[name.removeprefix("elmo.")]):
            raise ValueError(
                f"{str(source)!r} is not a tagger on the bundled biLM as it is: {name} differs."
            )
    write(model, head, folder / f"{task}.json", folder / f"{task}.safetensors")


def write(
    model: PreTrainedModel, weights: dict[str, torch.Tensor], config_file: Path, weight_file: Path
) -> None:
    model.config.architectures = [type(model).__name__]
    # the type that they load as
    model.config.dtype = torch.float32
    model.config.to_json_file(config_file)
    half = {name: part.half().contiguous() for name, part in weights.items()}
    save_file(half, weight_file, metadata={"format": "pt"})
    # safetensors writes files that only their owner can read
    weight_file.chmod(0o644)
    print(f"{weight_file.stat().st_size / 2**20:.1f} MiB saved in {weight_file}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["bilm", "tagger"])
    parser.add_argument("source", type=Path, help="an output folder of the training script")
    parser.add_argument("--task", default="upos", help="the tagger's task, which names its files")
    parser.add_argument(
        "--folder", type=Path, default=Path(bundled_model()), help="where the bundled model is"
    )
    args = parser.parse_args()
    if args.what == "bilm":
        pack_bilm(args.source, args.folder)
    else:
        pack_tagger(args.source, args.task, args.folder)


if __name__ == "__main__":
    run_program(main)
