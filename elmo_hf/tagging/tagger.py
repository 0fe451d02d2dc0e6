# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tags for running text: sentences in, sentences out, in their order and in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

import torch

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.hub.bundled import BUNDLED, find_tagger
from elmo_hf.modeling_elmo import ElmoForTokenClassification
from elmo_hf.text.batching import map_by_length
from elmo_hf.tokenization_elmo import ElmoTokenizer

# sentences that are sorted by length together
WINDOW = 1024
# words, padding included, that the model reads at once
WORDS_AT_ONCE = 4096


class TaggedSentence(NamedTuple):
    words: list[str]
    tags: list[str]
    # how probable the model holds each of these tags
    scores: list[float]


class ElmoTagger:
    """A token classifier and its tokenizer, ready to tag."""

    def __init__(self, name_or_path: str = BUNDLED, device: str | torch.device | None = None):
        name_or_path = find_tagger(name_or_path)
        classes = ElmoConfig.from_pretrained(name_or_path).architectures or []
        if "ElmoForTokenClassification" not in classes:
            found = ", ".join(classes) or "of no known class"
            raise ValueError(
                f"{name_or_path!r} is no tagger but {found}; train one with examples/run_pos.py."
            )
        model = ElmoForTokenClassification.from_pretrained(name_or_path)
        if device is not None:
            model.to(device)  # type: ignore[arg-type]
        self.model = model.prepare_for_inference()
        self.tokenizer = ElmoTokenizer.from_pretrained(name_or_path)
        self.labels = cast(dict[int, str], model.config.id2label)

    def tag(self, sentences: Iterable[Sequence[str]]) -> Iterator[TaggedSentence]:
        """Tags sentences of split words, however many they are."""
        return map_by_length(self._tag_batch, sentences, WINDOW, WORDS_AT_ONCE)

    def _tag_batch(self, sentences: list[Sequence[str]]) -> list[TaggedSentence]:
        filled = [list(words) for words in sentences if words]
        tagged = iter(self._tag_filled(filled) if filled else [])
        return [next(tagged) if words else TaggedSentence([], [], []) for words in sentences]

    @torch.inference_mode()
    def _tag_filled(self, sentences: list[list[str]]) -> list[TaggedSentence]:
        batch = self.tokenizer(
            sentences, is_split_into_words=True, padding=True, return_tensors="pt"
        )
        logits = self.model(**batch.to(self.model.device)).logits
        scores, numbers = logits.float().softmax(dim=-1).max(dim=-1)
        return [
            TaggedSentence(words, [self.labels[n] for n in row[: len(words)]], some[: len(words)])
            for words, row, some in zip(sentences, numbers.tolist(), scores.tolist(), strict=True)
        ]
