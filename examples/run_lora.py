"""Fine-tune a tagger with peft: LoRA on the linear layers of the biLSTMs and the head, saved
separately and merged.

    pip install '.[ecosystem]'
    python examples/run_lora.py --output_dir my-lora --train_file train.conllu

By default it fine-tunes the bundled tagger and keeps its tags. A few per cent of the weights are
trained and saved; the merged tagger is an ordinary model folder.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from tqdm.auto import tqdm

from elmo_hf import ElmoForTokenClassification, ElmoTokenizer
from elmo_hf.hub import BUNDLED, find_tagger, load_model
from elmo_hf.system import new_folder, refuse_existing_folder, run_program
from elmo_hf.tagging import load_tagged, number_tags

SAMPLE = Path(__file__).resolve().parent / "sample" / "train.conllu"
# The linear layers of the biLSTM, the projection before it, and the head.
TARGETS = ["input_linear", "recurrent_linear", "projection", "classifier"]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model_name_or_path",
        type=find_tagger,
        default=BUNDLED,
        help="a tagger: a folder or a Hub name",
    )
    parser.add_argument("--train_file", type=Path, default=SAMPLE, help="tagged text to learn from")
    parser.add_argument("--num_train_epochs", type=int, default=2)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--rank", type=int, default=8, help="rank of the added matrices")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--overwrite", action="store_true", help="replace the folder if it exists")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    # now rather than after the training
    refuse_existing_folder(args.output_dir, args.overwrite)
    torch.manual_seed(args.seed)
    base = load_model(ElmoForTokenClassification, args.model_name_or_path)
    tokenizer = ElmoTokenizer.from_pretrained(args.model_name_or_path)
    numbers = {label: int(number) for label, number in (base.config.label2id or {}).items()}
    sentences = number_tags(load_tagged(args.train_file, "pos"), str(args.train_file), numbers)
    # No task type: with one, peft would train the whole classifier besides its added matrices.
    settings = LoraConfig(r=args.rank, target_modules=TARGETS)
    # a PeftModel, which has the methods of the model inside it as well
    model: Any = get_peft_model(base, settings).train()
    model.print_trainable_parameters()
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=args.learning_rate)
    for epoch in range(args.num_train_epochs):
        losses = []
        for rows in tqdm(sentences.shuffle(args.seed + epoch).iter(16), desc=f"epoch {epoch + 1}"):
            words = tokenizer(
                rows["tokens"], is_split_into_words=True, padding=True, return_tensors="pt"
            )
            labels = torch.full(words["attention_mask"].shape, -100)
            for number, tags in enumerate(rows["labels"]):
                labels[number, : len(tags)] = torch.tensor(tags)
            loss = model(**words, labels=labels).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}")
    with new_folder(args.output_dir, args.overwrite) as folder:
        model.save_pretrained(folder / "adapter")
        model.merge_and_unload().save_pretrained(folder / "merged")
        tokenizer.save_pretrained(folder / "merged")
    print(f"saved in {args.output_dir}")


if __name__ == "__main__":
    run_program(main)
