# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""ELMo as a component of a spaCy pipeline: vectors in context, and tags if the model is a tagger.

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"model": "my-tagger"})

spaCy finds the component by the entry point in pyproject.toml and then imports this module.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self, cast

import numpy as np
import torch

from elmo_hf.bilm_elmo import evaluating
from elmo_hf.embedding.embedder import ElmoEmbedder
from elmo_hf.extras import require
from elmo_hf.hub.bundled import BUNDLED, find_tagger
from elmo_hf.hub.loading import make_tokenizer, saved_class
from elmo_hf.modeling_elmo import ElmoPreTrainedModel, read_words
from elmo_hf.system.writing import new_folder
from elmo_hf.tagging.tagger import WINDOW, WORDS_AT_ONCE, ElmoTagger
from elmo_hf.text.batching import map_by_length

PURPOSE = "The spaCy component 'elmo'"
Language = require("spacy.language", PURPOSE).Language
Pipe: Any = require("spacy.pipeline", PURPOSE).Pipe
Doc = Any
PROCESS = os.getpid()
# the parts of speech of Universal Dependencies, which are the values that `token.pos_` may have
UPOS = {"ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART"}
UPOS |= {"PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"}


class ReadSentence(NamedTuple):
    """What the model makes of a sentence: (words, size), and a tag for each word or none at all."""

    vectors: np.ndarray
    tags: list[str]


class BilmReader:
    """A biLM, which gives vectors."""

    is_upos = False

    def __init__(self, model: str | ElmoPreTrainedModel, layers: str | int, device: str | None):
        if layers == "all":
            raise ValueError("`layers` is 'all' but a word has one vector in spaCy; use 'mean'.")
        self.embedder = ElmoEmbedder(model, device=device)
        self.layers = self.embedder.check(layers, "none", "float32")
        self.size = self.embedder.model.config.hidden_size

    def read(self, sentences: Iterable[Sequence[str]]) -> Iterator[ReadSentence]:
        for vectors in self.embedder.embed_stream(sentences, self.layers):
            yield ReadSentence(vectors, [])

    def save(self, folder: Path) -> None:
        model = self.embedder.model
        model.save_pretrained(folder)
        make_tokenizer(model).save_pretrained(folder)


class TaggerReader(BilmReader):
    """A tagger, which gives the vectors of its biLM as well; the biLM runs once for both."""

    def __init__(self, model: str, layers: str | int, device: str | None):
        self.tagger = ElmoTagger(model, device)
        super().__init__(self.tagger.model, layers, None)
        self.is_upos = UPOS.issuperset(self.tagger.labels.values())

    def read(self, sentences: Iterable[Sequence[str]]) -> Iterator[ReadSentence]:
        return map_by_length(self._read_batch, sentences, WINDOW, WORDS_AT_ONCE)

    @torch.inference_mode()
    def _read_batch(self, sentences: list[Sequence[str]]) -> list[ReadSentence]:
        tagger, model = self.tagger, self.tagger.model
        batch = tagger.tokenizer(
            [list(words) for words in sentences],
            is_split_into_words=True,
            padding=True,
            return_tensors="pt",
        ).to(model.device)
        with evaluating(model):
            given, output = read_words(model.elmo, True, **batch)
            logits = model.classify(given, batch["attention_mask"].bool(), batch["input_ids"])
        # with `mix_layer_norm` a mix cannot be made from the layers alone
        chosen = cast(torch.Tensor, output.last_hidden_state)
        if self.layers != "mix":
            layers = cast(tuple[torch.Tensor, ...], output.hidden_states)
            [chosen] = model.elmo.combine([*layers], self.layers)
        numbers, _ = model.decode(logits, batch["attention_mask"])
        return [
            ReadSentence(
                # a copy, because a view would keep the whole padded batch in memory
                vectors[: len(words)].copy(),
                [tagger.labels[number] for number in row[: len(words)]],
            )
            for words, vectors, row in zip(
                sentences, chosen.float().cpu().numpy(), numbers.tolist(), strict=True
            )
        ]

    def save(self, folder: Path) -> None:
        self.tagger.model.save_pretrained(folder)
        self.tagger.tokenizer.save_pretrained(folder)


@Language.factory(
    "elmo",
    default_config={"model": BUNDLED, "layers": "mix", "tags": None, "device": None},
    assigns=["doc.tensor", "doc.vector", "token.vector", "token.pos", "token.tag"],
)
def make_elmo(
    nlp: Any, name: str, model: str, layers: str | int, tags: bool | None, device: str | None
) -> "ElmoComponent":
    return ElmoComponent(name, model, layers, tags, device)


class ElmoComponent(Pipe):
    """
    Reads spaCy's tokens, sentence by sentence if the doc has sentences, else as one sentence.

    Each token gets a vector, in `doc.tensor` and as `token.vector`; spans and docs have the mean of
    theirs. A tagger also sets `token.pos_` if all its labels are universal parts of speech, else
    `token.tag_`. Tokens of blanks are not read: they get zeros and no tag.
    """

    def __init__(
        self,
        name: str = "elmo",
        model: str = BUNDLED,
        layers: str | int = "mix",
        tags: bool | None = None,
        device: str | None = None,
    ):
        """
        `model`: a biLM or a tagger, which is a folder, a Hub name or "bundled". `layers`: "mix",
        "top", "mean" or the number of a layer. `tags`: true asks for a tagger, so that "bundled" is
        the bundled one, and false for vectors only; by default a tagger tags, and "bundled" is the
        biLM. `device`: where the model runs, as in "cuda:0".

        The model is loaded when it is first needed: a saved pipeline brings its own, and `model`
        may be gone by then.
        """
        self.name, self.source = name, model
        self.layers, self.tags, self.device = layers, tags, device

    @cached_property
    def reader(self) -> BilmReader:
        return self.load(find_tagger(self.source) if self.tags else self.source)

    def load(self, source: str) -> BilmReader:
        is_tagger = self.tags
        if is_tagger is None:
            is_tagger = saved_class(source) == "ElmoForTokenClassification"
        kind = TaggerReader if is_tagger else BilmReader
        return kind(source, self.layers, self.device)

    def __call__(self, doc: Doc) -> Doc:
        try:
            self.annotate([doc])
        except Exception as error:
            self.get_error_handler()(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Reads the sentences of `batch_size` docs together, those of similar length at once."""
        rest = iter(stream)
        while docs := list(islice(rest, batch_size)):
            try:
                self.annotate(docs)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def annotate(self, docs: list[Doc]) -> None:
        sentences = [sentence for doc in docs for sentence in sentences_of(doc)]
        avoid_threads_after_fork()
        texts = [[token.text for token in sentence] for sentence in sentences]
        # the whole batch is read before any doc is changed: none is left half done by an error
        results = list(self.reader.read(texts))
        for doc in docs:
            doc.tensor = np.zeros((len(doc), self.reader.size), dtype=np.float32)
            add_hooks(doc)
        for sentence, (vectors, tags) in zip(sentences, results, strict=True):
            sentence[0].doc.tensor[[token.i for token in sentence]] = vectors
            for token, tag in zip(sentence, tags, strict=False):
                if self.reader.is_upos:
                    token.pos_ = tag
                else:
                    token.tag_ = tag

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        # under another name first: the model may have been loaded from this very folder
        with new_folder(Path(path), overwrite=True) as building:
            self.reader.save(building)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        self.reader = self.load(str(path))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        with TemporaryDirectory() as folder:
            self.reader.save(Path(folder))
            files = {file.name: file.read_bytes() for file in Path(folder).iterdir()}
        return require("srsly", PURPOSE).msgpack_dumps(files)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        files = require("srsly", PURPOSE).msgpack_loads(data)
        # Windows deletes no file that is mapped into memory
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for name, content in files.items():
                # a name from elsewhere must not lead out of the folder
                (Path(folder) / Path(name).name).write_bytes(content)
            return self.from_disk(folder)


def avoid_threads_after_fork() -> None:
    """
    torch's threads do not survive a fork, and a process that waits for them hangs. With `n_process`
    spaCy forks on Linux; its processes share the cores anyway.
    """
    if os.getpid() != PROCESS:
        torch.set_num_threads(1)


def sentences_of(doc: Doc) -> Iterator[list[Any]]:
    """The tokens that ELMo reads together, without blanks."""
    parts = doc.sents if doc.has_annotation("SENT_START") else [doc]
    for part in parts:
        if tokens := [token for token in part if not token.is_space]:
            yield tokens


def add_hooks(doc: Doc) -> None:
    """
    Makes spaCy use `doc.tensor` even if the pipeline has static vectors. They read it anew each
    time, because spaCy cuts and joins it along with the tokens. Similarity needs a hook as well:
    spaCy's own is 1 for the same word in any context.
    """
    doc.user_token_hooks |= HOOKS | {"vector": token_vector}
    doc.user_span_hooks |= HOOKS | {"vector": span_vector}
    doc.user_hooks |= HOOKS | {"vector": doc_vector}


def token_vector(token: Any) -> np.ndarray:
    return token.doc.tensor[token.i]


def span_vector(span: Any) -> np.ndarray:
    return mean_vector(span.doc.tensor[span.start : span.end])


def doc_vector(doc: Doc) -> np.ndarray:
    return mean_vector(doc.tensor)


def mean_vector(vectors: np.ndarray) -> np.ndarray:
    """Zeros for no vectors."""
    return vectors.sum(axis=0) / max(1, len(vectors))


def has_vector(part: Any) -> bool:
    return bool(part.vector.any())


def similarity(part: Any, other: Any) -> float:
    """The cosine of the vectors; 0 if one is zeros."""
    norms = np.linalg.norm(part.vector) * np.linalg.norm(other.vector)
    return float(part.vector @ other.vector / norms) if norms else 0.0


HOOKS = {"has_vector": has_vector, "similarity": similarity}
