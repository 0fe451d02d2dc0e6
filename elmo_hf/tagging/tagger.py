# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tags for running text: sentences in, sentences out, in their order and in bounded memory."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar, cast

import torch

from elmo_hf.hub.bundled import BUNDLED, find_tagger
from elmo_hf.hub.loading import load_model, load_tokenizer, refuse_other_classes
from elmo_hf.modeling_elmo import ElmoForTokenClassification
from elmo_hf.text.batching import check_batch_size, map_by_length
from elmo_hf.text_splitting import SplitFunction, SplitSentence, find_splitter
from elmo_hf.word_encoding import Span

# Sentences that are sorted by length together.
WINDOW = 1024
# Words, padding included, that the model reads at once.
WORDS_AT_ONCE = 4096
Item = TypeVar("Item")


class TaggedSentence(NamedTuple):
    """A sentence with a tag for each word."""

    words: list[str]
    tags: list[str]
    # the model's probability of each of these tags
    scores: list[float]
    # where the words are in the text that the sentence was split from
    spans: list[Span] | None = None


class ElmoTagger:
    """
    A token classifier and its tokenizer, ready to tag.

        tagger = ElmoTagger("my-tagger")
        tagger("It's late. Go home!")       # [TaggedSentence, TaggedSentence]
        tagger.tag([["Go", "home", "!"]])   # words that are split already, any number of sentences
    """

    def __init__(
        self,
        model: str = BUNDLED,
        device: str | torch.device | None = None,
        split: str | SplitFunction | None = None,
        batch_size: int | None = None,
    ):
        """
        `model` is `bundled`, a folder or a Hub name; by default it runs on the CPU. `split` is how
        raw text becomes words: the name of a splitter or a function, as for `ElmoTokenizer`; by
        default, the splitter that was saved with the model. `batch_size` is the most sentences that
        the model reads at once.
        """
        folder = find_tagger(model)
        refuse_other_classes(
            folder,
            "ElmoForTokenClassification",
            "not a tagger; train one with elmo_hf.tagging.train_tagger or examples/run_pos.py.",
        )
        loaded = load_model(ElmoForTokenClassification, folder)
        if device is not None:
            loaded.to(device)  # type: ignore[arg-type]
        self.model = loaded.prepare_for_inference()
        self.tokenizer = load_tokenizer(folder, loaded.config)
        if split is not None:
            find_splitter(split)
            self.tokenizer.word_splitter = split
        self.labels = cast(dict[int, str], loaded.config.id2label)
        self.batch_size = check_batch_size(batch_size)

    def __call__(self, text: str) -> list[TaggedSentence]:
        """Splits a text into sentences and words, and tags them."""
        if not isinstance(text, str):
            raise ValueError(f"A text is a string, not {text!r:.50}; pass words to `tag`.")
        groups = ((sentence.spans, [sentence.words]) for sentence in self.split(text))
        return [tagged._replace(spans=spans) for spans, [tagged] in tag_groups(self, groups)]

    def split(self, text: str) -> Iterable[SplitSentence]:
        """The sentences of a text, as the tagger's splitter finds them."""
        return self.tokenizer.split(text)

    def tag(self, sentences: Iterable[Sequence[str]]) -> Iterator[TaggedSentence]:
        """Tags sentences of split words, however many they are."""
        return map_by_length(self._tag_batch, sentences, WINDOW, WORDS_AT_ONCE, self.batch_size)

    def _tag_batch(self, sentences: list[Sequence[str]]) -> list[TaggedSentence]:
        filled = [list(words) for words in sentences if words]
        tagged = iter(self._tag_filled(filled) if filled else [])
        return [next(tagged) if words else TaggedSentence([], [], []) for words in sentences]

    @torch.inference_mode()
    def _tag_filled(self, sentences: list[list[str]]) -> list[TaggedSentence]:
        batch = self.tokenizer(
            sentences, is_split_into_words=True, padding=True, return_tensors="pt"
        ).to(self.model.device)
        logits = self.model(**batch).logits
        numbers, scores = self.model.decode(logits, batch["attention_mask"])
        return [
            TaggedSentence(words, [self.labels[n] for n in row[: len(words)]], some[: len(words)])
            for words, row, some in zip(sentences, numbers.tolist(), scores.tolist(), strict=True)
        ]


def tag_groups(
    tagger: ElmoTagger, groups: Iterable[tuple[Item, Sequence[Sequence[str]]]]
) -> Iterator[tuple[Item, list[TaggedSentence]]]:
    """
    Tags things that have sentences, such as paragraphs: each is given back, in their order, with
    its tagged sentences. No more of them are kept than the tagger reads ahead.
    """
    waiting: deque[tuple[Item, int]] = deque()

    def sentences() -> Iterator[Sequence[str]]:
        for item, some in groups:
            waiting.append((item, len(some)))
            # even nothing has its turn
            yield from some or [[]]

    done: list[TaggedSentence] = []
    for sentence in tagger.tag(sentences()):
        done.append(sentence)
        item, count = waiting[0]
        if len(done) == max(1, count):
            waiting.popleft()
            yield item, done[:count]
            done = []
