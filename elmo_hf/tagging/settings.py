"""The arguments of `run_pos.py`, in the style of transformers' examples."""

import argparse
from pathlib import Path

from elmo_hf.hub.bundled import BUNDLED, find_model
from elmo_hf.tagging.tagged_data import SPLITS
from elmo_hf.training.run import Help

# the figure that chooses the best epoch
GOAL = {"pos": "accuracy", "ner": "f1"}


def parse_args(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=Help)
    data = parser.add_argument_group("data")
    for split in SPLITS:
        data.add_argument(f"--{split}_file", type=Path, help="default: the sample's")
    data.add_argument("--dataset_name", help="instead of files: a dataset of the Hub")
    data.add_argument("--dataset_config_name", help="which of its configurations")
    data.add_argument("--token_column", help="the words' column; default: the likeliest")
    data.add_argument("--tag_column", help="the tags' column, by name or number; likewise")
    data.add_argument("--task", choices=GOAL, default="pos", help="ner counts spans by seqeval")
    data.add_argument("--max_train_samples", type=int, help="use fewer sentences, for a try")
    data.add_argument("--cache_dir", type=Path, help="of the biLM's layers; default OUTPUT_DIR")
    data.add_argument("--no_feature_cache", action="store_true", help="read the text every epoch")
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model_name_or_path",
        type=find_model,
        default=BUNDLED,
        help="an ELMo folder or Hub name",
    )
    model.add_argument("--finetune_bilm", action="store_true", help="train the biLM as well")
    model.add_argument(
        "--layers",
        default="mix",
        help="what of the biLM the head reads: mix, top, mean, a number, or all layers side by "
        "side",
    )
    model.add_argument("--num_mixes", type=int, default=1, help="how many mixes")
    model.add_argument(
        "--mix_after_lstm", action="store_true", help="the last mix joins after the task BiLSTM"
    )
    model.add_argument(
        "--task_lstm_size", type=int, default=200, help="of the task BiLSTM; 0 for a linear head"
    )
    model.add_argument("--word_vectors", type=Path, help="a text file of GloVe or word2vec")
    model.add_argument("--elmo_dropout", type=float, default=0.0, help="on ELMo's vectors")
    model.add_argument("--dropout", type=float, default=0.5, help="before the classifier")
    training = parser.add_argument_group("training")
    training.add_argument("--num_train_epochs", type=int, default=40, help="at most")
    training.add_argument("--patience", type=int, default=8, help="epochs without a better one")
    training.add_argument(
        "--words_per_batch", type=int, default=300, help="of sentences of about one length"
    )
    training.add_argument(
        "--per_device_train_batch_size", type=int, help="instead: sentences, of any length"
    )
    training.add_argument("--gradient_accumulation_steps", type=int, default=1, help="batches")
    training.add_argument("--learning_rate", type=float, default=3e-3, help="of the head")
    training.add_argument("--bilm_learning_rate", type=float, default=3e-4, help="of the biLM")
    training.add_argument("--weight_decay", type=float, default=0.01, help="of AdamW")
    training.add_argument("--mix_l2", type=float, default=0.001, help="L2 on the mix weights")
    training.add_argument("--max_grad_norm", type=float, default=1.0, help="for clipping")
    training.add_argument("--warmup_ratio", type=float, default=0.05, help="of all steps")
    training.add_argument("--mixed_precision", choices=["no", "fp16", "bf16"], help="of accelerate")
    training.add_argument("--checkpointing_steps", type=int, help="default: after every epoch")
    training.add_argument("--seed", type=int, default=42, help="of everything random")
    training.add_argument("--report_to", help="a tracker of accelerate, such as tensorboard")
    training.add_argument("--output_dir", type=Path, required=True, help="of model and report")
    hub = parser.add_argument_group("hub")
    hub.add_argument("--push_to_hub", action="store_true", help="as `elmo-hf push` does")
    hub.add_argument("--hub_model_id", help="the repository, as in me/elmo-pos")
    hub.add_argument("--license", default="other", help="of your weights, for the model card")
    args = parser.parse_args()
    if args.push_to_hub and not args.hub_model_id:
        parser.error("--push_to_hub needs --hub_model_id")
    files = [getattr(args, f"{split}_file") for split in SPLITS]
    if args.dataset_name and any(files):
        parser.error("give files or --dataset_name")
    if args.mix_after_lstm and args.num_mixes < 2:
        parser.error("--mix_after_lstm needs --num_mixes 2 or more")
    return args
