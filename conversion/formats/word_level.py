"""Word-level bilm models: the hdf5 files of bilm-tf with a table of words instead of characters.

They are found and opened like all hdf5 files, in `bilm_hdf5`; here is what their words need.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_hf.dictionaries import BILM, Dictionaries, Dictionary
from elmo_hf.word_vocabulary import WordVocabulary

# beside the words of a word-level model, those of its softmax if they are others
SOFTMAX_VOCABULARY = "softmax_vocab.txt"


def refuse_side_files(path: Path, arrays: Mapping[str, Any]) -> None:
    """Names an hdf5 file that belongs to a model but is not the model."""
    if set(arrays) == {"embedding"}:
        raise ValueError(
            f"{str(path)!r} is a token cache: word vectors (`embedding`) that were computed with "
            "another hdf5 file; convert that one."
        )
    if arrays and all(name.startswith("softmax/") for name in arrays):
        raise ValueError(
            f"{str(path)!r} holds a softmax only; give the model's weights as --weight-file and "
            "this file as --softmax-weight-file."
        )


def read_dictionaries(
    options: Mapping[str, Any], arrays: Mapping[str, Any], vocab_file: Path | None
) -> Dictionaries | None:
    """The words of a word-level model; None for a model of characters."""
    is_word_level = "embedding" in arrays and "char_embed" not in arrays
    if is_word_level == ("char_cnn" in options):
        has, lacks = ("words", "characters") if is_word_level else ("characters", "words")
        raise ValueError(
            f"The weights are those of a model of {has}, but the options describe one of {lacks} "
            f"(they {'have' if is_word_level else 'lack'} `char_cnn`); get both again."
        )
    if not is_word_level:
        return None
    if vocab_file is None:
        raise ValueError(
            "This is a word-level bilm model, whose words are needed as well; give --vocab-file."
        )
    words = WordVocabulary.load(vocab_file).words
    rows = arrays["embedding"].shape[0]
    if len(words) != rows:
        raise ValueError(
            f"{str(vocab_file)!r} has {len(words):,} words but the weights have {rows:,}."
        )
    found = Dictionaries(None, Dictionary(words))
    if found.names != BILM:
        raise ValueError(f"{str(vocab_file)!r} has no lines {', '.join(BILM)}.")
    return found


def softmax_words(vocab_file: Path | None) -> Path | None:
    """The words of a word-level model's softmax, which are mostly those of the model itself."""
    if vocab_file is None:
        return None
    beside = vocab_file.with_name(SOFTMAX_VOCABULARY)
    return beside if beside.is_file() else vocab_file
