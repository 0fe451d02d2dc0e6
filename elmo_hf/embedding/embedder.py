# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Vectors for running text: sentences in, arrays out, in their order and in bounded memory."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, cast

import numpy as np
import torch
from torch import nn
from tqdm.auto import tqdm

from elmo_hf.characters import BEGIN_SENTENCE, END_SENTENCE, boundary_row
from elmo_hf.hub.bundled import BUNDLED, find_model
from elmo_hf.layers_elmo import normalize
from elmo_hf.modeling_elmo import ElmoModel, ElmoPreTrainedModel
from elmo_hf.packing import ElmoPacking
from elmo_hf.prepared_weights import WeightCopy
from elmo_hf.text.batching import map_by_length
from elmo_hf.tokenization_elmo import ElmoTokenizer

# sentences that are sorted by length together
WINDOW = 1024
# words, padding included, that the model reads at once
WORDS_AT_ONCE = 4096
# bytes of word vectors that are kept
CACHE_SIZE = 1 << 28
POOLINGS = ("none", "mean", "max")
DTYPES = ("float32", "float16")
# in the errors of torch's allocator and of oneDNN, of C++ and of cuBLAS
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "could not create a primitive",
    "bad_alloc",
    "ALLOC_FAILED",
)


class SentenceTooLongError(MemoryError):
    """One sentence, by itself, does not fit into memory."""

    def __init__(self, sentence: Sequence[str]):
        super().__init__(f"A sentence of {len(sentence)} words does not fit into memory; split it.")
        self.sentence = sentence


class WordCache:
    """
    What the token encoder made of the words seen lately.

    It starts anew when it is full and when a weight has changed since.
    """

    def __init__(self, model: ElmoModel, tokenizer: ElmoTokenizer, size: int = CACHE_SIZE):
        self.model, self.tokenizer = model, tokenizer
        self.capacity = max(1, size // (4 * model.config.projection_size))
        self.clear()

    def clear(self) -> None:
        self.seen = WeightCopy(*self.model.token_encoder.parameters())
        self.numbers: dict[str, int] = {}
        width = self.model.config.max_characters_per_token
        # the first two rows are `<S>` and `</S>`
        markers = (BEGIN_SENTENCE, END_SENTENCE)
        self.vectors = self.encode(torch.tensor([boundary_row(m, width) for m in markers]))

    @torch.inference_mode()
    def encode(self, rows: torch.Tensor) -> torch.Tensor:
        return self.model.token_encoder(rows.to(self.model.device))

    def look_up(self, words: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors, (rows, projection_size), and which of them each word, `<S>` and `</S>` has."""
        if not self.seen.matches(*self.model.token_encoder.parameters()):
            self.clear()
        new = [word for word in dict.fromkeys(words) if word not in self.numbers]
        used = len(self.numbers) + 2
        if used + len(new) > self.capacity and self.numbers:
            self.clear()
            new, used = list(dict.fromkeys(words)), 2
        if new:
            ids = self.tokenizer([new], is_split_into_words=True, return_tensors="pt")["input_ids"]
            end = used + len(new)
            if end > len(self.vectors):
                # room for as many again, so that few additions copy all
                rows = max(end, min(2 * end, self.capacity))
                room = self.vectors.new_empty(rows, self.vectors.shape[1])
                room[:used] = self.vectors[:used]
                self.vectors = room
            self.vectors[used:end] = self.encode(ids[0])
            # only now: what did not fit into memory is tried again, and must still be new then
            self.numbers.update({word: used + number for number, word in enumerate(new)})
        # only the rows that are needed: the first layer multiplies them all
        wanted = [self.numbers[word] for word in words]
        rows, number = torch.tensor([*wanted, 0, 1]).unique(return_inverse=True)
        device = self.vectors.device
        return self.vectors[rows.to(device)], number.to(device)


class ElmoEmbedder:
    """
    A biLM and its tokenizer, ready to turn sentences into vectors.

        embedder = ElmoEmbedder("my-elmo")
        embedder.embed([["Stocks", "fell", "."]])            # [array of (layers, words, size)]
        embedder.embed(sentences, layers="top", pooling="mean")  # [array of (size,), ...]

    The methods whose names begin with `embed_` are those of AllenNLP 0.9, with its shapes.
    """

    def __init__(
        self,
        model: str | Path | ElmoPreTrainedModel = BUNDLED,
        weight_file: str | Path | None = None,
        cuda_device: int = -1,
        options_file: str | Path | None = None,
    ):
        """
        `model`: a model, a folder, a Hub name. AllenNLP's files serve as well, its options in the
        first place or by name, with `weight_file`.
        """
        model = options_file or model
        if isinstance(model, ElmoPreTrainedModel):
            # that of a tagger is inside
            loaded = cast(ElmoModel, model.base_model)
        elif weight_file is not None:
            from elmo_hf.conversion.convert_allennlp_to_hf import load_converted
            from elmo_hf.conversion.source import Source

            loaded, _ = load_converted(Source(Path(model), Path(weight_file)))
        else:
            loaded = ElmoModel.from_pretrained(find_model(str(model)))
        if cuda_device >= 0:
            loaded.to(f"cuda:{cuda_device}")  # type: ignore[arg-type]
        self.model = loaded.prepare_for_inference()
        tokenizer = ElmoTokenizer(
            max_characters_per_token=loaded.config.max_characters_per_token,
            # as AllenNLP's
            boundary_words=True,
        )
        self.words = WordCache(self.model, tokenizer)

    def embed(
        self,
        sentences: Sequence[Sequence[str]],
        layers: str | int = "all",
        pooling: str = "none",
        dtype: str = "float32",
        padded: bool = False,
    ) -> list[np.ndarray] | torch.Tensor:
        """
        A sentence's array is (words, size), or (size,) when it is pooled; with all layers another
        axis stands in front. `padded=True` gives one tensor for all sentences, zeros at the end of
        the shorter ones.
        """
        result = list(self.embed_stream(sentences, layers, pooling, dtype))
        if not padded:
            return result
        if not result:
            return cast(torch.Tensor, self.embed([[]], layers, pooling, dtype, padded))[:0]
        arrays = [torch.from_numpy(array) for array in result]
        if pooling == "none":
            arrays = [array.movedim(-2, 0) for array in arrays]
            return nn.utils.rnn.pad_sequence(arrays, batch_first=True).movedim(1, -2)
        return torch.stack(arrays)

    def embed_stream(
        self,
        sentences: Iterable[Sequence[str]],
        layers: str | int = "all",
        pooling: str = "none",
        dtype: str = "float32",
    ) -> Iterator[np.ndarray]:
        """The same one by one, for any number of sentences."""
        choice = self.check(layers, pooling, dtype)

        def work(batch: list[Sequence[str]]) -> list[np.ndarray]:
            return self._embed_batch(batch, choice, pooling)

        for array in map_by_length(work, sentences, WINDOW, WORDS_AT_ONCE):
            yield array.astype(dtype, copy=False)

    def check(self, layers: str | int, pooling: str, dtype: str) -> str | int:
        """The choice of layers, if there are such layers, such a pooling and such numbers."""
        count = self.model.config.num_hidden_layers + 1
        names = ["all", "mix", "top", "mean", *map(str, range(count))]
        if str(layers) not in names:
            raise ValueError(f"`layers` is {layers!r} but must be one of {', '.join(names)}.")
        if pooling not in POOLINGS:
            raise ValueError(f"`pooling` is {pooling!r} but must be one of {', '.join(POOLINGS)}.")
        if dtype not in DTYPES:
            raise ValueError(f"`dtype` is {dtype!r} but must be one of {', '.join(DTYPES)}.")
        if layers == "mix" and not self.model.mixes:
            raise ValueError(f"This model has no mix, only {self.model.output_layer!r}.")
        return int(layers) if str(layers).isdigit() else layers

    def _embed_batch(
        self, sentences: list[Sequence[str]], layers: str | int, pooling: str
    ) -> list[np.ndarray]:
        """A batch that is too large for the memory is tried again in halves."""
        try:
            with evaluating(self.model):
                return self._embed_at_once(sentences, layers, pooling)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if len(sentences) == 1:
                raise SentenceTooLongError(sentences[0]) from error
        half = len(sentences) // 2
        parts = (sentences[:half], sentences[half:])
        return [array for part in parts for array in self._embed_batch(part, layers, pooling)]

    @torch.inference_mode()
    def _embed_at_once(
        self, sentences: list[Sequence[str]], layers: str | int, pooling: str
    ) -> list[np.ndarray]:
        lengths = [len(words) for words in sentences]
        device = self.model.device
        steps = torch.arange(max(lengths), device=device)
        mask = steps < torch.tensor(lengths, device=device).unsqueeze(1)
        packing = ElmoPacking.of(mask, to_the_end=False)
        rows, number = self.words.look_up(list(chain.from_iterable(sentences)))
        streams, _ = self.model.read_rows(rows, number, packing, None)
        chosen = self._choose(streams, layers)
        # the words sentence by sentence
        count = sum(lengths)
        place = torch.empty(count, dtype=torch.long, device=device)
        is_word = packing.tokens < count
        place[packing.tokens[is_word]] = is_word.nonzero().squeeze(1)
        words = chosen.index_select(-2, place).float().cpu().split(lengths, dim=-2)
        return [pool(some, pooling).numpy() for some in words]

    def _choose(self, streams: list[torch.Tensor], layers: str | int) -> torch.Tensor:
        """(layers, tokens, size) for all of them, else (tokens, size)."""
        if layers == "all":
            return torch.stack(streams)
        if layers == "mix" and self.model.config.mix_layer_norm:
            streams = normalize(streams)
        return self.model.combine(streams, layers)[0]

    def embed_sentence(self, sentence: Sequence[str]) -> np.ndarray:
        """All layers of one sentence, (layers, words, size)."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """All layers of some sentences."""
        return list(self.embed_stream(batch))

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = WINDOW
    ) -> Iterator[np.ndarray]:
        """All layers of any number of sentences; `batch_size` is taken for AllenNLP's sake."""
        return self.embed_stream(sentences)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str | Path,
        output_format: str = "all",
        batch_size: int = WINDOW,
    ) -> None:
        """A text, one tokenised sentence a line, as hdf5: all layers, `top`, or their `average`."""
        from elmo_hf.embedding.job import EmbeddingJob, Line

        formats = {"all": "all", "top": "top", "average": "mean"}
        if output_format not in formats:
            names = ", ".join(formats)
            raise ValueError(f"`output_format` is {output_format!r} but must be one of {names}.")
        job = EmbeddingJob(self, Path(output_file_path), formats[output_format], form="hdf5")
        lines = (
            Line(number, line.strip(), line.split(), len(line))
            for number, line in enumerate(input_file)
        )
        with job.alone(), tqdm(unit="line") as bar:
            job.finish(job.run(lines, progress=lambda chunk, _: bar.update(len(chunk))))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout, also while someone trains the model."""
    training = model.training
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()


def pool(words: torch.Tensor, pooling: str) -> torch.Tensor:
    """(..., words, size) -> (..., size), unless nothing is asked for; no words are zeros."""
    if pooling == "none":
        return words
    if not words.shape[-2]:
        return words.new_zeros(*words.shape[:-2], words.shape[-1])
    return words.mean(dim=-2) if pooling == "mean" else words.amax(dim=-2)


def is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(
        phrase in str(error) for phrase in OUT_OF_MEMORY
    )


def batch_to_ids(batch: Sequence[Sequence[str]]) -> torch.Tensor:
    """Character ids of sentences, (sentences, words, 50), as AllenNLP's function of this name."""
    tokenizer = ElmoTokenizer(boundary_words=True)
    if not batch:
        return torch.zeros(0, 0, tokenizer.max_characters_per_token, dtype=torch.long)
    encoded = tokenizer(list(batch), is_split_into_words=True, padding=True, return_tensors="pt")
    return encoded["input_ids"]
