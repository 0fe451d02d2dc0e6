"""Make an ELMo with random weights in the shape of another one, to see what training adds.

    python examples/random_model.py --output_dir outputs/untrained

A tagger on it shows what a head learns from spelling and an untrained network alone. By default the
shape is that of the bundled model.
"""

import argparse
from pathlib import Path

import torch

from elmo_hf import ElmoConfig, ElmoModel, ElmoTokenizer
from elmo_hf.hub import BUNDLED, find_model
from elmo_hf.system import new_folder, run_program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model_name_or_path", type=find_model, default=BUNDLED, help="whose shape to use"
    )
    parser.add_argument("--output_dir", type=Path, required=True, help="the folder to write")
    parser.add_argument("--overwrite", action="store_true", help="replace the folder if it exists")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random weights")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    with new_folder(args.output_dir, args.overwrite) as folder:
        ElmoModel(ElmoConfig.from_pretrained(args.model_name_or_path)).save_pretrained(folder)
        ElmoTokenizer.from_pretrained(args.model_name_or_path).save_pretrained(folder)
    print(f"saved in {args.output_dir}")


if __name__ == "__main__":
    run_program(main)
