"""`Dataset.map` with an embedder: its columns, its fingerprint, and several processes."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from datasets import Dataset
from datasets.fingerprint import Hasher

from elmo_hf import ElmoEmbedder, ElmoModel, ElmoTokenizer

SENTENCES = [["Dogs", "bark", "."], [], ["Dogs"], ["Ça", "va", "?"]]
TEXTS = ["Dogs bark. They don't bite!", "", "Cats\nsleep ."]


@pytest.mark.parametrize("layers", ["all", "top"])
@pytest.mark.parametrize("pooling", ["none", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_lists_of_words(embedder, layers, pooling, dtype):
    rows = Dataset.from_dict({"tokens": SENTENCES, "id": [3, 2, 1, 0]})
    settings = {"layers": layers, "pooling": pooling, "dtype": dtype}
    found = rows.map(
        embedder, batched=True, batch_size=3, fn_kwargs={"column": "tokens", **settings}
    )
    assert found.column_names == ["tokens", "id", "embedding"]
    assert found["id"][:] == [3, 2, 1, 0]
    expected = embedder.embed(SENTENCES, **settings)
    kind = found.features["embedding"]
    while hasattr(kind, "feature"):
        kind = kind.feature
    assert kind.dtype == dtype
    for array, row in zip(expected, found, strict=True):
        np.testing.assert_allclose(
            np.array(row["embedding"], dtype).reshape(array.shape), array, rtol=1e-3, atol=1e-5
        )


def test_raw_texts(folder):
    embedder = ElmoEmbedder(folder, split="english")
    found = embedder({"text": TEXTS}, layers="top")
    assert found["words"] == [
        ["Dogs", "bark", ".", "They", "do", "n't", "bite", "!"],
        [],
        ["Cats", "sleep", "."],
    ]
    sentences = [["Dogs", "bark", "."], ["They", "do", "n't", "bite", "!"]]
    first = np.concatenate(embedder.embed(sentences, "top"))
    np.testing.assert_allclose(found["embedding"][0], first, rtol=1e-5, atol=1e-6)
    assert found["embedding"][1].shape == (0, first.shape[1])
    pooled = embedder({"text": TEXTS}, layers="top", pooling="mean")["embedding"]
    np.testing.assert_allclose(pooled[0], first.mean(0), rtol=1e-5, atol=1e-6)
    assert not pooled[1].any()


@pytest.mark.parametrize("row", [None, 3, ["a", None], [["a"]]])
def test_other_rows_and_columns_are_one_sentence(embedder, row):
    rows = {"text": ["fine", row]}
    with pytest.raises(ValueError, match=r"Row 1 of a batch: 'text' should be text or a list"):
        embedder(rows)
    with pytest.raises(ValueError, match="The rows have no column 'tokens'; they have text."):
        embedder(rows, column="tokens")


def test_the_fingerprint_is_that_of_model_and_settings(folder, tmp_path):
    embedder = ElmoEmbedder(folder)
    fingerprint = Hasher.hash(embedder)
    embedder.embed("Some text. And more.")
    assert Hasher.hash(embedder) == fingerprint
    program = (
        "import sys; from datasets.fingerprint import Hasher; from elmo_hf import ElmoEmbedder;"
        "print(Hasher.hash(ElmoEmbedder(sys.argv[1])))"
    )
    # as from a shell; sets of text then have another order in every process
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    command = [sys.executable, "-c", program, folder]
    printed = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == fingerprint

    others = [ElmoEmbedder(folder, batch_size=2), ElmoEmbedder(folder, split="english")]
    changed = ElmoModel.from_pretrained(folder)
    with torch.no_grad():
        changed.mixes[0].gamma.add_(1)
    changed.save_pretrained(tmp_path)
    others.append(ElmoEmbedder(tmp_path))
    ElmoModel.from_pretrained(folder).save_pretrained(tmp_path)
    ElmoTokenizer.from_pretrained(folder, word_splitter="moses").save_pretrained(tmp_path)
    others.append(ElmoEmbedder(tmp_path))
    assert len({fingerprint, *map(Hasher.hash, others)}) == 5


PROGRAM = """
import sys
import numpy as np
import torch
from datasets import Dataset
from elmo_hf import ElmoEmbedder
from elmo_hf.embedding.sentence_embedder import SentenceEmbedder

loaded = SentenceEmbedder.__setstate__

def report(self, state):
    loaded(self, state)
    open(sys.argv[2], "a").write(f"loaded with {torch.get_num_threads()} threads\\n")

SentenceEmbedder.__setstate__ = report
torch.set_num_threads(2)
embedder = ElmoEmbedder(sys.argv[1])
# large enough for several threads
torch.randn(1000, 1000) @ torch.randn(1000, 1000)
rows = Dataset.from_dict({"tokens": [["a"] * (number % 7) for number in range(100)]})
settings = {"batched": True, "batch_size": 10, "fn_kwargs": {"column": "tokens"}}
alone = rows.map(embedder, **settings)
together = rows.map(embedder, num_proc=2, **settings)
for one, other in zip(alone, together, strict=True):
    np.testing.assert_allclose(one["embedding"], other["embedding"], rtol=1e-4, atol=1e-5)
"""


@pytest.mark.program
def test_several_processes_each_load_once_and_do_not_hang(folder, tmp_path):
    command = [sys.executable, "-c", PROGRAM, folder, tmp_path / "log"]
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    subprocess.run(command, env=environment, check=True, timeout=240)
    assert (tmp_path / "log").read_text() == "loaded with 1 threads\n" * 2
