# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The seam between our models and the engines: a batch of Arrow in, batches of Arrow out."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from elmo_hf.embedding.chunks import split_into_chunks
from elmo_hf.embedding.sentence_embedder import SentenceTooLongError
from elmo_hf.engines.job import BadRowError, Job, Sentence
from elmo_hf.system.memory import hand_back_memory, keep_freed_memory
from elmo_hf.system.processes import choose_device
from elmo_hf.text.lines import BadLineError


class BatchMapper:
    """
    A job with its model loaded. Every sentence of a row becomes a row of the result, with the row's
    keys and its number there; a row without words becomes one row. Results come in chunks, so that
    memory depends neither on the size of a batch nor on that of a text.
    """

    def __init__(self, job: Job, device: str = "cpu"):
        keep_freed_memory()
        self.job, self.reader = job, job.open(choose_device(device))

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        return BatchRun(self, batch).results()


class BatchRun:
    """The work on one batch."""

    def __init__(self, mapper: BatchMapper, batch: pa.Table):
        self.job, self.reader = mapper.job, mapper.reader
        self.batch = batch.select(self.job.columns(batch.column_names))
        self.schema = self.job.result_schema(batch.schema)
        # of sentences that were skipped: row, number, reason
        self.skipped: list[tuple[int, int, str]] = []

    def results(self) -> Iterator[pa.Table]:
        for sentences in split_into_chunks(self.sentences()):
            yield from self.work(sentences)
            hand_back_memory()
        if self.skipped:
            rows, numbers, reasons = zip(*self.skipped, strict=True)
            values = [pa.nulls(len(rows), field.type) for field in self.job.fields()]
            yield self.table(rows, numbers, values, reasons)

    def sentences(self) -> Iterator[Sentence]:
        """All sentences that can be read."""
        for row in range(self.batch.num_rows):
            try:
                text = self.job.text_of(self.batch, row)
            except BadLineError as error:
                self.stop_or_skip(row, 0, str(error))
                continue
            for number, sentence in enumerate(self.split(row, text)):
                count = len(sentence.words)
                if count <= self.job.max_words:
                    yield sentence._replace(number=number)
                    continue
                reason = (
                    f"has {count:,} words, which is more than max_words={self.job.max_words:,}; "
                    "split it."
                )
                self.stop_or_skip(row, number, self.about(row, number, reason))

    def split(self, row: int, text: str | list[str]) -> Iterator[Sentence]:
        """The sentences of a row, at least an empty one."""
        if isinstance(text, list):
            yield Sentence(row, 0, text, None)
            return
        sentence = None
        for words, spans, _ in self.reader.split(text):
            yield (sentence := Sentence(row, 0, words, spans))
        if sentence is None:
            yield Sentence(row, 0, [], [])

    def work(self, sentences: list[Sentence]) -> Iterator[pa.Table]:
        if not sentences:
            return
        try:
            values = self.reader.values(sentences)
        except SentenceTooLongError as error:
            [lost] = [some for some in sentences if some.words is error.sentence]
            reason = self.about(lost.row, lost.number, "does not fit into memory; split it.")
            self.stop_or_skip(lost.row, lost.number, reason)
            yield from self.work([some for some in sentences if some is not lost])
            return
        rows, numbers = [some.row for some in sentences], [some.number for some in sentences]
        yield self.table(rows, numbers, values, [None] * len(rows))

    def about(self, row: int, number: int, reason: str) -> str:
        return f"{self.job.name_of(self.batch, row)}: sentence {number} {reason}"

    def stop_or_skip(self, row: int, number: int, reason: str) -> None:
        if self.job.on_error == "stop":
            raise BadRowError(f"{reason} Or pass on_error='skip' to leave it empty.")
        self.skipped.append((row, number, reason))

    def table(
        self,
        rows: Sequence[int],
        numbers: Sequence[int],
        values: list[pa.Array],
        errors: Sequence[str | None],
    ) -> pa.Table:
        keys = self.batch.select(self.job.keys).take(pa.array(rows, pa.int32()))
        arrays = [*keys.columns, pa.array(numbers, pa.int32()), *values]
        return pa.table([*arrays, pa.array(errors, pa.string())], schema=self.schema)
