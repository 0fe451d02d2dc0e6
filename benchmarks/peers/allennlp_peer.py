"""AllenNLP's ELMo on today's torch, on a text; the last line printed is JSON.

`embed` goes from words to vectors; `--out` keeps the layers of the first sentences, each read alone
from zeros. `train` is forward and backward of a tagger with 17 labels on the unfrozen biLM: no
optimizer, random labels, no dropout.

Every layer that computes is AllenNLP's own. Only the parts around them that no longer import are
replaced by empty stand-ins.
"""

import argparse
import importlib.util
import json
import sys
import time
import types
from pathlib import Path

import numpy as np
import torch

LABELS, WIDTH = 17, 50
# how many sentences `--out` keeps
KEPT = 16


class StandIn:
    """Takes the place of any class, and of any registry."""

    def __init__(self, *args, **kwargs):
        pass

    @classmethod
    def register(cls, *args, **kwargs):
        return lambda decorated: decorated


def pad_sequence_to_length(sequence, length, default_value=lambda: 0, padding_on_right=True):
    kept = list(sequence)[:length]
    return kept + [default_value() for _ in range(length - len(kept))]


def keep_initial_values(tensor, split_sizes, gain=1.0):
    """Weights are read from a file afterwards."""


# module: what is imported from it
STAND_INS = {
    "allennlp": {},
    "allennlp.common": {"FromParams": type("FromParams", (), {}), "Registrable": StandIn},
    "allennlp.common.checks": {"ConfigurationError": ValueError},
    "allennlp.common.file_utils": {"cached_path": lambda path: path},
    "allennlp.common.util": {
        "lazy_groups_of": None,
        "pad_sequence_to_length": pad_sequence_to_length,
        "int_to_device": None,
        "is_distributed": lambda: False,
        "is_global_primary": lambda: True,
    },
    "allennlp.data": {},
    "allennlp.data.batch": {"Batch": StandIn},
    "allennlp.data.fields": {"TextField": StandIn},
    "allennlp.data.instance": {"Instance": StandIn},
    "allennlp.data.token_indexers": {},
    "allennlp.data.token_indexers.token_indexer": {
        "TokenIndexer": StandIn,
        "IndexedTokenList": dict,
    },
    "allennlp.data.tokenizers": {"Token": StandIn},
    "allennlp.data.tokenizers.token_class": {"Token": StandIn},
    "allennlp.data.vocabulary": {"Vocabulary": StandIn},
    "allennlp.modules": {},
    "allennlp.nn": {},
    "allennlp.nn.initializers": {"block_orthogonal": keep_initial_values},
}
# AllenNLP's own files, each after those that it imports
MODULES = (
    "allennlp.nn.util",
    "allennlp.modules.encoder_base",
    "allennlp.modules.lstm_cell_with_projection",
    "allennlp.modules.scalar_mix",
    "allennlp.modules.highway",
    "allennlp.data.token_indexers.elmo_indexer",
    "allennlp.modules.elmo_lstm",
    "allennlp.modules.elmo",
)


def import_elmo():
    """AllenNLP's module `elmo`, and its mapping of words to characters."""
    # found, not imported
    source = Path(importlib.util.find_spec("allennlp").origin).parents[1]
    for name, members in STAND_INS.items():
        module = types.ModuleType(name)
        module.__dict__.update(members)
        # a package of no files
        module.__path__ = []
        sys.modules[name] = module
    for name in MODULES:
        file = source / (name.replace(".", "/") + ".py")
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        parent, _, leaf = name.rpartition(".")
        setattr(sys.modules[parent], leaf, module)
    indexer = sys.modules["allennlp.data.token_indexers.elmo_indexer"]
    return sys.modules["allennlp.modules.elmo"], indexer.ELMoCharacterMapper()


def character_ids(mapper, batch):
    ids = torch.zeros(len(batch), max(map(len, batch)), WIDTH, dtype=torch.long)
    for row, words in enumerate(batch):
        encoded = [mapper.convert_word_to_char_ids(word) for word in words]
        ids[row, : len(words)] = torch.tensor(encoded)
    return ids


def batches(sentences, size):
    return [sentences[start : start + size] for start in range(0, len(sentences), size)]


def embed(args, sentences):
    elmo, mapper = import_elmo()
    files = (str(args.model / "options.json"), str(args.model / "model.hdf5"))
    started = time.perf_counter()
    model = elmo.Elmo(*files, 1, dropout=0).eval()
    load_seconds = time.perf_counter() - started
    with torch.no_grad():
        model(character_ids(mapper, sentences[:2]))
        started = time.perf_counter()
        for batch in batches(sentences, args.batch):
            model(character_ids(mapper, batch))
        seconds = time.perf_counter() - started
        if args.out:
            keep_layers(elmo._ElmoBiLm(*files).eval(), mapper, sentences[:KEPT], args.out)
    return {"seconds": seconds, "load_seconds": load_seconds}


def keep_layers(bilm, mapper, sentences, target):
    arrays = {}
    for number, words in enumerate(sentences):
        bilm._elmo_lstm.reset_states()
        layers = bilm(character_ids(mapper, [words]))["activations"]
        # without the boundaries
        arrays[f"s{number}"] = np.stack([layer[0, 1:-1].numpy() for layer in layers])
    np.savez(target, **arrays)


def train(args, sentences):
    elmo, mapper = import_elmo()
    files = (str(args.model / "options.json"), str(args.model / "model.hdf5"))
    model = elmo.Elmo(*files, 1, dropout=0, requires_grad=True)
    head = torch.nn.Linear(model.get_output_dim(), LABELS)
    groups = batches(sentences, args.batch)
    started = 0.0
    # the first batch warms up
    for number, batch in enumerate([groups[0], *groups]):
        if number == 1:
            started = time.perf_counter()
        output = model(character_ids(mapper, batch))
        logits = head(output["elmo_representations"][0])[output["mask"].bool()]
        labels = torch.randint(LABELS, (len(logits),))
        torch.nn.functional.cross_entropy(logits, labels).backward()
        model.zero_grad()
    return {"seconds": time.perf_counter() - started}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["embed", "train"])
    parser.add_argument("--model", type=Path, required=True, help="options.json and model.hdf5")
    parser.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--sentences", type=int, default=256, help="how many of its lines to use")
    parser.add_argument("--batch", type=int, default=32, help="sentences per batch")
    parser.add_argument("--out", type=Path, help="an .npz file for the first sentences' layers")
    args = parser.parse_args()
    with args.text.open(encoding="utf-8") as lines:
        sentences = [line.split() for line in lines if line.strip()][: args.sentences]
    figures = {"embed": embed, "train": train}[args.command](args, sentences)
    words = sum(map(len, sentences))
    print(json.dumps({**figures, "words": words, "words_per_second": words / figures["seconds"]}))


if __name__ == "__main__":
    main()
