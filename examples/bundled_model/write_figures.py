"""Write the table of figures and the model card of a bundled model that `make.py` has made.

    python examples/bundled_model/write_figures.py outputs/bundled

`table.md` has the tables for examples/README.md. `model/README.md` is `card.md` with its figures.
"""

import argparse
import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import safe_open

from elmo_hf.system import run_program, write_text

HERE = Path(__file__).resolve().parent
# the biLMs that are compared, by their folders
MODELS = {"model": "this model", "before": "the model before", "untrained": "random biLM"}
RUNS = {
    "layer-0": ("layer 0, linear", "`--task_lstm_size 0 --dropout 0 --layers 0`"),
    "layer-1": ("layer 1, linear", "`--task_lstm_size 0 --dropout 0 --layers 1`"),
    "layer-2": ("layer 2, linear", "`--task_lstm_size 0 --dropout 0 --layers 2`"),
    "mix": ("**mix, linear**", "`--task_lstm_size 0 --dropout 0`"),
    "all-layers": (
        "all layers side by side, linear",
        "`--task_lstm_size 0 --dropout 0 --layers all`",
    ),
    "bilstm": ("**mix, BiLSTM** (the bundled tagger)", "`--num_train_epochs 12 --patience 4`"),
    "finetuned": (
        "**mix, BiLSTM, biLM fine-tuned**",
        "`--finetune_bilm --num_train_epochs 8`",
    ),
}
ON_RAW_TEXT = ("mix", "all-layers", "bilstm", "finetuned")
OTHERS = {
    "names": ("WNUT-17, names, span F1", "`--task ner`"),
    "vietnamese": ("UD Vietnamese-VTB, UPOS", ""),
    "vietnamese-finetuned": (
        "the same, biLM fine-tuned",
        "`--finetune_bilm --num_train_epochs 25`",
    ),
}
TEXTS = {
    "wikitext-2-test": "WikiText-2 test",
    "ewt-dev": "EWT dev",
    "prose-test": "prose, three whole books",
}
SPLITS = {"validation": "dev", "test": "test"}
PARTS = {
    "standardebooks": "{count} books of [Standard Ebooks](https://standardebooks.org), CC0 1.0",
    "openstax": "{count} textbooks of OpenStax, CC BY 4.0",
    "wikitext-2": "WikiText-2, articles of Wikipedia, CC BY-SA",
    "ewt": "the training text of UD English-EWT, CC BY-SA 4.0",
}


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def percent(share: float) -> str:
    return f"{100 * share:.2f}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def scores(folder: Path, run: str, baseline: bool = False) -> list[str]:
    """What a run of run_pos.py has on its validation and test sentences."""
    results = read(folder / run / "all_results.json")
    kind = "baseline_" if baseline else ""
    return [percent(results[f"{split}_{kind}{results['goal']}"]) for split in SPLITS]


def tagging_table(figures: Path, runs: dict[str, tuple[str, str]]) -> str:
    """A row for each run; the baseline is the same for all biLMs."""
    columns = [f"{name}, {split}" for name in MODELS.values() for split in SPLITS.values()]
    rows = [
        [
            title,
            *(score for model in MODELS for score in scores(figures / model, run)),
            *scores(figures / "model", run, baseline=True),
            options,
        ]
        for run, (title, options) in runs.items()
    ]
    baselines = [f"baseline, {split}" for split in SPLITS.values()]
    return table(["", *columns, *baselines, "`python examples/run_pos.py` ..."], rows)


def raw_table(figures: Path) -> str:
    """F1 of words with the right UPOS, when the text has to be split as well."""

    def cell(model: str, run: str, split: str) -> str:
        return percent(read(figures / model / run / f"raw-{split}.json")["upos"]["f1"])

    columns = [f"{name}, {split}" for name in MODELS.values() for split in SPLITS.values()]
    rows = [
        [
            RUNS[run][0],
            *(cell(model, run, split) for model in MODELS for split in SPLITS.values()),
        ]
        for run in ON_RAW_TEXT
    ]
    return table(["", *columns], rows)


def perplexity_table(output: Path) -> str:
    figures = read(output / "perplexity.json")
    rows = [
        [
            title,
            f"{figures[f'{name}_perplexity']:.1f}",
            f"{figures[f'{name}_words']:,}",
            f"{100 * figures[f'{name}_unknown_share']:.1f} %",
        ]
        for name, title in TEXTS.items()
    ]
    return table(["", "perplexity", "words", "unknown to the softmax"], rows)


def senses_table(figures: Path) -> str:
    studies = {model: read(figures / model / "senses" / "senses.json") for model in MODELS}
    rows = [
        [name, *(f"{share:.0%}" for share in studies[model]["all"])]
        for model, name in MODELS.items()
    ]
    return table(["all words", "layer 0", "layer 1", "layer 2"], rows)


def all_tables(output: Path) -> str:
    figures = output / "figures"
    return f"""\
### Perplexity

Both directions, full softmax, every `</S>` counted:

{perplexity_table(output)}
### Part-of-speech tagging

UPOS accuracy on UD English-EWT; the baseline is the most frequent tag of each word:

{tagging_table(figures, RUNS)}
From raw text, F1 of UPOS by `elmo-hf evaluate --raw`:

{raw_table(figures)}
### Other tasks

{tagging_table(figures, OTHERS)}
### Word senses

{senses_table(figures)}"""


def count_weights(path: Path) -> int:
    with safe_open(path, "pt") as weights:
        return sum(weights.get_tensor(name).numel() for name in weights.keys())  # noqa: SIM118


def mebibytes(*paths: Path) -> str:
    return f"{sum(path.stat().st_size for path in paths) / 2**20:.1f}"


def read_parts(path: Path) -> str:
    """What the model has read, as a table: words between blanks, and how often."""
    with path.open(encoding="utf-8", newline="") as file:
        sources = list(csv.DictReader(file, delimiter="\t"))
    rows = []
    for part, title in PARTS.items():
        own = [row for row in sources if row["source"].partition("/")[0] == part]
        words = sum(int(row["words"]) for row in own)
        rows.append([title.format(count=len(own)), f"{words:,}", own[0]["times"]])
    return table(["text", "words", "read"], [[text, words, f"{n} x"] for text, words, n in rows])


def card_facts(output: Path) -> dict[str, Any]:
    """What the placeholders of `card.md` stand for."""
    model, figures = output / "model", output / "figures" / "model"
    config, upos = read(model / "config.json"), read(model / "upos.json")
    run = read(output / "bilm" / "all_results.json")
    numbers = ["no", "one", "two", "three"]
    widths = [width for width, _ in config["char_filters"]]
    accuracy, names = scores(figures, "bilstm"), scores(figures, "names")
    raw = read(figures / "bilstm" / "raw-test.json")
    with (output / "vocabulary.txt").open(encoding="utf-8") as words:
        vocabulary = sum(1 for _ in words)
    return {
        "filters": sum(count for _, count in config["char_filters"]),
        "narrowest": min(widths),
        "widest": max(widths),
        "highways": numbers[config["num_highway_layers"]],
        "layers": numbers[config["num_hidden_layers"]],
        "cell_size": config["cell_size"],
        "projection_size": config["projection_size"],
        "hidden_size": 2 * config["projection_size"],
        "millions": f"{count_weights(model / 'model.safetensors') / 1e6:.1f}",
        "mebibytes": mebibytes(model / "model.safetensors"),
        "mebibytes_together": mebibytes(*model.glob("*.safetensors")),
        "task_lstm_size": upos["task_lstm_size"],
        "parts": read_parts(output / "text" / "sources.tsv"),
        "words_read": f"{run['train_words'] / 1e6:.1f}",
        "hours": f"{run['train_seconds'] / 3600:.1f}",
        "vocabulary": f"{vocabulary:,}",
        "perplexities": perplexity_table(output),
        "upos_dev": accuracy[0],
        "upos_test": accuracy[1],
        "raw_upos_test": percent(raw["upos"]["f1"]),
        "ner_dev": names[0],
        "ner_test": names[1],
        "attribution": "".join(
            f"- {line}\n"
            for line in (output / "text" / "attribution.txt").read_text("utf-8").splitlines()
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output_dir", type=Path, help="the output folder of make.py")
    output = parser.parse_args().output_dir
    write_text(output / "table.md", all_tables(output))
    sources = (output / "text" / "sources.tsv").read_text(encoding="utf-8")
    write_text(output / "model" / "sources.tsv", sources)
    card = (HERE / "card.md").read_text(encoding="utf-8")
    write_text(output / "model" / "README.md", card.format(**card_facts(output)))
    print(f"saved in {output / 'table.md'} and {output / 'model'}")


if __name__ == "__main__":
    run_program(main)
