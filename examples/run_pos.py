r"""Train a tagger on ELMo with datasets and accelerate: parts of speech, names, any tags of words.

    accelerate launch examples/run_pos.py --model_name_or_path my-elmo \
        --train_file train.conllu --validation_file dev.conllu --test_file test.conllu \
        --output_dir my-tagger

Without files it trains on the sample beside this script. Files may be CoNLL-U, CoNLL columns,
word/TAG text, JSON lines or parquet; the format is recognised by the content. The biLM is frozen:
its layers are computed once and kept on disk, and later epochs train the head alone.
`--finetune_bilm` trains all of it. To resume an interrupted run, repeat the command: it ends with
the same weights.

`--output_dir` gets the model, `all_results.json`, predictions as CoNLL-U, and `report.html`.
"""

from pathlib import Path

from accelerate.utils import set_seed

from elmo_hf.hub import find_model, make_tokenizer, publish
from elmo_hf.system import run_program
from elmo_hf.tagging import (
    DataSettings,
    Evaluator,
    HubSettings,
    ModelSettings,
    TrainingSettings,
    check_run,
    load_splits,
    make_batches,
    new_tagger,
    train_tagger,
    write_card,
    write_report,
    write_results,
)
from elmo_hf.training import parse_settings, training_run

FOLDER = Path(__file__).resolve().parent / "sample"
SAMPLE = {
    "train": FOLDER / "train.conllu",
    "validation": FOLDER / "dev.conllu",
    "test": FOLDER / "test.conllu",
}


def main() -> None:
    groups = (DataSettings, ModelSettings, TrainingSettings, HubSettings)
    data, head, training, hub = settings = parse_settings(groups, __doc__)
    folder = training.output_dir
    with training_run("elmo-tagging", *settings) as accelerator:
        # 1. Read the sentences. The first process makes the files that the others map.
        source = data.dataset_name or data.files or SAMPLE
        with accelerator.main_process_first():
            splits, labels = load_splits(
                source,
                data.dataset_config_name,
                data.task,
                data.token_column,
                data.tag_column,
                data.max_train_samples,
            )

        # 2. Put a new head on the pretrained biLM. The seed is for its weights and for dropout.
        set_seed(training.seed, device_specific=True)
        model = new_tagger(head, labels, splits["train"]).to(accelerator.device)
        tokenizer = make_tokenizer(model, head.split, head.model_name_or_path)

        # 3. Let a frozen biLM read everything once, unless the folder holds another run.
        identity = check_run(accelerator, model, splits, training, data.task)
        reads_once = not (head.finetune_bilm or data.no_feature_cache)
        cache_dir = (data.cache_dir or folder / "features") if reads_once else None
        batches = make_batches(accelerator, model, splits, cache_dir)

        # 4. Train. The validation sentences choose the best epoch, whose weights are kept.
        evaluator = Evaluator(accelerator, batches, labels, data.task)
        progress = train_tagger(
            accelerator, model, batches["train"], evaluator, training, identity, tokenizer
        )

        # 5. Test that epoch on all held-out sentences, and report.
        evaluations = {split: evaluator(model, split) for split in splits if split != "train"}
        if accelerator.is_main_process:
            results = write_results(folder, splits, progress, evaluations)
            base = find_model(head.model_name_or_path)
            text = source if isinstance(source, str) else str(source["train"])
            write_card(folder, model, results, base, text, len(splits["train"]), hub.license)
            page = write_report(folder, model, splits, progress.history, evaluations)
            for split, evaluation in evaluations.items():
                print(
                    f"{split:10} {evaluation.goal} {evaluation.score:.4f}   most frequent tags "
                    f"{evaluation.baseline:.4f}"
                )
            print(f"saved in {folder}; look at {page}")
            if hub.push_to_hub:
                print(f"pushed to {publish(folder, hub.hub_model_id)}")


if __name__ == "__main__":
    run_program(main)
