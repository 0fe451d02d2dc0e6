"""The tagger in Python, and what it needs installed."""

import subprocess
import sys

import pytest
import torch
from helpers.tiny import tiny_config

from elmo_hf import ElmoForTokenClassification, ElmoModel, ElmoTagger
from elmo_hf.training import save_model

WITHOUT_EXTRAS = """
from importlib.machinery import PathFinder

EXTRAS = ("accelerate", "datasets", "evaluate", "h5py", "matplotlib", "seqeval")
find = PathFinder.find_spec
PathFinder.find_spec = staticmethod(
    lambda name, *rest: None if name.partition(".")[0] in EXTRAS else find(name, *rest)
)
from elmo_hf.tagging import ElmoTagger, TrainingSettings, format_sentence
from elmo_hf.training import parse_settings

print(format_sentence(["Dogs"], ["NOUN"]), end="")
try:
    from elmo_hf.tagging import load_splits
except ImportError as error:
    print(error)
"""


@pytest.fixture
def folder(tmp_path):
    labels = ["DET", "NOUN", "VERB"]
    save_model(ElmoForTokenClassification(tiny_config(id2label=dict(enumerate(labels)))), tmp_path)
    return tmp_path


@pytest.mark.parametrize("device", [None, "cpu", torch.device("cpu")])
def test_tags_are_those_that_the_model_decodes(folder, device):
    sentences = [["Dogs", "bark"], [], ["A", "dog", "barks", "loudly"]]
    tagger = ElmoTagger(str(folder), device)
    tagged = list(tagger.tag(sentences))
    assert [sentence.words for sentence in tagged] == sentences
    for words, tags, scores, spans in tagged:
        assert spans is None
        if words:
            batch = tagger.tokenizer([words], is_split_into_words=True, return_tensors="pt")
            with torch.inference_mode():
                numbers, chances = tagger.model.decode(tagger.model(**batch).logits)
            assert tags == [tagger.labels[number] for number in numbers[0].tolist()]
            assert scores == pytest.approx(chances[0].tolist(), abs=1e-5)


def test_the_size_of_batches(folder, monkeypatch):
    sentences = [["a"] * length for length in (2, 2, 2, 1, 0, 2)]
    tagger = ElmoTagger(str(folder), batch_size=2)
    sizes, tag = [], tagger._tag_batch
    monkeypatch.setattr(tagger, "_tag_batch", lambda some: sizes.append(len(some)) or tag(some))
    tagged = list(tagger.tag(sentences))
    assert sizes == [2, 2, 2] and [sentence.words for sentence in tagged] == sentences
    with pytest.raises(ValueError, match="`batch_size` is 0 but must be at least 1"):
        ElmoTagger(str(folder), batch_size=0)


def test_a_bilm_is_not_a_tagger(tmp_path):
    ElmoModel(tiny_config()).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds an ElmoModel, not a tagger; train one with"):
        ElmoTagger(str(tmp_path))


@pytest.mark.program
def test_tagging_needs_no_extras_and_training_names_its_own():
    command = [sys.executable, "-c", WITHOUT_EXTRAS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "1\tDogs\t_\tNOUN\t_\t_\t_\t_\t_\t_",
        "",
        "elmo_hf.tagging.load_splits requires datasets: pip install 'elmo_hf[train]'",
    ]
