"""Make a small ELMo with random weights, to try the commands without a download.

    python examples/random_model.py --output_dir outputs/untrained

Its vectors mean nothing yet; its shapes and files are those of a published model.
"""

import argparse
from pathlib import Path

import torch

from elmo_hf import ElmoConfig, ElmoModel, ElmoTokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output_dir", type=Path, required=True, help="the folder to write")
    parser.add_argument("--seed", type=int, default=0, help="of the random weights")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    filters = [[1, 32], [2, 32], [3, 64], [4, 128]]
    config = ElmoConfig(
        char_filters=filters, num_highway_layers=1, cell_size=512, projection_size=64
    )
    ElmoModel(config).save_pretrained(args.output_dir)
    ElmoTokenizer().save_pretrained(args.output_dir)
    print(f"saved in {args.output_dir}")


if __name__ == "__main__":
    main()
