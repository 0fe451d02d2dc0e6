"""Pack a pretrained biLM, and a tagger on it, into the folder that the package carries.

    python examples/bundled_model/pack.py bilm my-elmo
    accelerate launch examples/run_pos.py ...  --output_dir my-tagger
    python examples/bundled_model/pack.py tagger my-tagger

Weights are kept in half precision and load as float32; the softmax stays out. The tagger has a file
for its head alone, and an index that leads to the biLM's file for the rest.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel

from elmo_hf import ElmoConfig, ElmoForTokenClassification, ElmoModel, ElmoTokenizer
from elmo_hf.cli import run
from elmo_hf.hub.bundled import bundled_model, bundled_tagger

WEIGHTS, HEAD = "model.safetensors", "head.safetensors"


def pack_bilm(source: Path) -> None:
    folder = Path(bundled_model())
    config = ElmoConfig.from_pretrained(source)
    for name in ("lm_vocab_size", "lm_begin_id", "lm_end_id", "lm_unknown_id"):
        setattr(config, name, getattr(ElmoConfig(), name))
    model = ElmoModel.from_pretrained(source, config=config)
    # the names that a model with a head gives them: so they serve the tagger, too
    weights = {
        f"elmo.{name}": part for name, part in model.state_dict().items() if "mixes" not in name
    }
    write(folder, WEIGHTS, weights, model)


def pack_tagger(source: Path) -> None:
    folder = Path(bundled_tagger())
    model = ElmoForTokenClassification.from_pretrained(source)
    bilm = ElmoModel.from_pretrained(bundled_model()).state_dict()
    shared, head = {}, {}
    for name, part in model.state_dict().items():
        kin = name.startswith(("elmo.token_encoder", "elmo.layers"))
        if kin and not torch.equal(part, bilm[name.removeprefix("elmo.")]):
            raise ValueError(f"{str(source)!r} is no tagger on the carried biLM as it is: {name}.")
        (shared if kin else head)[name] = part
    write(folder, HEAD, head, model)
    files = dict.fromkeys(shared, f"../{WEIGHTS}") | dict.fromkeys(head, HEAD)
    size = sum(2 * part.numel() for part in model.state_dict().values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(files.items()))}
    text = json.dumps(index, indent=2) + "\n"
    (folder / f"{WEIGHTS}.index.json").write_text(text, encoding="utf-8")


def write(
    folder: Path, name: str, weights: dict[str, torch.Tensor], model: PreTrainedModel
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    half = {key: part.half().contiguous() for key, part in weights.items()}
    save_file(half, folder / name, metadata={"format": "pt"})
    # safetensors writes for its owner only
    (folder / name).chmod(0o644)
    model.config.architectures = [type(model).__name__]
    # what they load as
    model.config.dtype = torch.float32
    model.config.save_pretrained(folder)
    ElmoTokenizer(max_characters_per_token=model.config.max_characters_per_token).save_pretrained(
        folder
    )
    megabytes = (folder / name).stat().st_size / 2**20
    print(f"{megabytes:.1f} MiB saved in {folder / name}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["bilm", "tagger"])
    parser.add_argument("source", type=Path, help="an output folder of the training script")
    args = parser.parse_args()
    (pack_bilm if args.what == "bilm" else pack_tagger)(args.source)


if __name__ == "__main__":
    run(main)
