r"""Pretrain an ELMo biLM on plain text, from scratch or from a converted or earlier model.

    accelerate launch examples/run_pretrain.py --train_file 'corpus/*.txt' \
        --validation_file valid.txt --test_file test.txt --preset small --output_dir my-elmo

The text has one tokenised sentence per line, or is raw and split by a splitter, as in `--split
english`. To resume an interrupted run, repeat the command: it continues from the last checkpoint
and ends with the same weights. The folder loads with `ElmoModel.from_pretrained` and
`ElmoForPreTraining.from_pretrained`, and `elmo-hf export` converts it for AllenNLP, simple_elmo and
bilm-tf.

Perplexities are measured with the full softmax on held-out text, separately for each direction. The
loss that is shown during training is over sampled words, with dropout, and is labelled "sampled".
"""

import json

from accelerate import Accelerator

from elmo_hf.pretraining import (
    Pretraining,
    PretrainingSettings,
    draw_curve,
    format_figures,
    make_model,
    make_streams,
    make_vocabulary,
    read_splits,
)
from elmo_hf.system import run_program, write_text
from elmo_hf.training import parse_settings, training_run


def pretrain(settings: PretrainingSettings, accelerator: Accelerator) -> None:
    is_main = accelerator.is_main_process

    # 1. Count the text; raw text is split first, once, into files of the output folder. Afterwards
    #    it stays on the disk: memory holds only the place where each block of lines begins and, if
    #    they become the vocabulary, the frequencies of the words.
    splits = read_splits(settings, quiet=not is_main)

    # 2. The vocabulary of the softmax, and the model: a new one of the preset's shape, or the one
    #    to continue from, which may bring its own vocabulary.
    vocabulary = make_vocabulary(settings, splits.word_counts)
    model = make_model(settings, vocabulary)

    # 3. Two streams, one per direction. A stream has as many rows as the batch; each row is one
    #    sentence after the other without padding, and the LSTMs carry their state from window to
    #    window. Several processes share the rows.
    streams = make_streams(
        accelerator,
        splits.train,
        settings.per_device_train_batch_size,
        settings.window_size,
        settings.seed,
    )

    # 4. Train. A checkpoint has weights, optimizer, random generators, the places of all rows and
    #    their LSTM states, so a resumed run takes the same steps as an uninterrupted one. After
    #    every epoch the validation text decides whether the model is saved.
    run = Pretraining(settings, accelerator, model, streams, splits.validation)
    run.resume()
    if is_main:
        print(run.describe())
    run.train()

    # 5. Test the model that is kept, and leave its figures and a curve beside it.
    figures = run.finish(splits.test)
    if is_main:
        text = json.dumps(figures, indent=2) + "\n"
        write_text(settings.output_dir / "all_results.json", text)
        draw_curve(run.progress.history, settings.output_dir / "curve.png")
        print(format_figures({k: value for k, value in figures.items() if "perplexity" in k}))
        print(f"saved in {settings.output_dir}")


def main() -> None:
    settings = parse_settings(PretrainingSettings, __doc__)
    with training_run("elmo-pretraining", settings) as accelerator:
        pretrain(settings, accelerator)


if __name__ == "__main__":
    run_program(main)
