# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A corpus becomes a file of vectors, by chunks of lines that are saved as soon as they are done.

A killed run resumes with the missing chunks, several processes share them, and at the end they are
put together in their order. A chunk depends on its lines alone, so the file is the same whichever
process made a chunk and however often the run was interrupted.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tqdm.auto import tqdm

from elmo_hf.embedding.chunks import (
    CHUNK,
    Chunk,
    ChunkFiles,
    DamagedChunkError,
    split_into_chunks,
)
from elmo_hf.embedding.fingerprint import add_weights
from elmo_hf.embedding.formats import find_format
from elmo_hf.embedding.sentence_embedder import SentenceEmbedder, SentenceTooLongError
from elmo_hf.system.failures import explain_failure, refuse_full_disk
from elmo_hf.system.memory import hand_back_memory
from elmo_hf.system.processes import Processes, lock_file
from elmo_hf.system.writing import refuse_existing_file
from elmo_hf.text.lines import Line, LineSource, check_on_error, stop_or_skip

# seconds after which a chunk that another machine has written must be visible
PATIENCE = 60
ONE_PROCESS = Processes()


class LineTooLongError(MemoryError):
    """A line of a corpus does not fit into memory."""


class EmbeddingJob:
    """
    Embeds a corpus into one file. The settings choose layers, pooling, number format and file
    format.

        job = EmbeddingJob(ElmoEmbedder("my-elmo"), Path("vectors.npy"), layers="top")
        job.write(text_source("corpus.txt"))

    The file's ending chooses its format, unless `output_format` names one.
    """

    def __init__(
        self,
        embedder: SentenceEmbedder,
        output: Path,
        layers: str = "all",
        pooling: str = "none",
        dtype: str = "float32",
        output_format: str | None = None,
        on_error: str = "stop",
    ):
        # only a folder is in the way now: a file may be what this run finished
        refuse_existing_file(output, overwrite=True)
        self.format = find_format(output, output_format)
        self.format.check_library()
        self.beside = [output.with_name(output.stem + ending) for ending in self.format.beside]
        for file in self.beside:
            refuse_existing_file(file, overwrite=True)
        embedder.check(layers, pooling, dtype)
        check_on_error(on_error)
        self.embedder, self.output = embedder, output
        self.layers, self.pooling, self.dtype = layers, pooling, dtype
        self.on_error = on_error
        key = hashlib.sha256(json.dumps([layers, pooling, dtype]).encode())
        key.update(embedder.model.config.to_json_string().encode())
        add_weights(key, embedder.model)
        self.parts = output.with_name(f".{output.name}.parts")
        # chunks of another model or other settings are never met
        self.folder = self.parts / key.hexdigest()[:12]
        self.whole = self.folder / f"whole{output.suffix}"
        # Says that the output is complete, or will be as soon as `whole` has moved; the names of
        # the chunks in it tell of which text.
        self.done = self.folder / "done"

    def write(
        self, source: LineSource, overwrite: bool = False, processes: Processes = ONE_PROCESS
    ) -> None:
        """
        From lines to the file: embeds the chunks that are missing, each process its share, and puts
        all of them together. To resume an interrupted run, call it again with the same lines.
        """
        with ExitStack() as held:
            begin = partial(self.begin, held, source.lines, overwrite)
            if not processes.by_the_first(begin):
                return
            paths = self.embed_chunks(source, processes)
            processes.wait_for_all()
            if processes.is_first:
                if not paths:
                    raise ValueError(f"There is no line in {source.name!r}.")
                self.assemble(paths)

    def begin(self, held: ExitStack, lines: Iterable[Line], overwrite: bool) -> bool:
        """Locks the output until `held` is closed; returns whether there is anything left to do."""
        held.enter_context(self.locked())
        if overwrite:
            return True
        if not self.output.exists():
            for file in self.beside:
                refuse_existing_file(file, overwrite=self.is_ours(file))
            return True
        if not self.is_finished(lines):
            refuse_existing_file(self.output, overwrite)
        self.clean()
        return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """
        Keeps other runs from writing the same file: they would delete each other's chunks. The lock
        of a killed run is free.
        """
        self.parts.mkdir(parents=True, exist_ok=True)
        with (self.parts / "lock").open("w") as lock:
            if not lock_file(lock):
                raise BlockingIOError(
                    f"Another run is writing {str(self.output)!r}; wait for its end or name "
                    "another file."
                )
            for part in self.parts.rglob("*.part"):
                part.unlink()
            try:
                yield
            finally:
                # a run that did nothing leaves nothing
                files = {path for path in self.parts.rglob("*") if path.is_file()}
                if files <= {self.parts / "lock"}:
                    shutil.rmtree(self.parts, ignore_errors=True)

    def is_ours(self, file: Path) -> bool:
        """Whether a file beside the output was put there by a run that was killed right then."""
        notes = (note.read_text() for note in self.parts.rglob("beside"))
        return file.exists() and any(identity(file) in note.splitlines() for note in notes)

    def is_finished(self, lines: Iterable[Line]) -> bool:
        """
        Whether a run over these lines was killed when its output was complete but its chunks were
        not yet deleted.
        """
        if not self.done.exists() or self.whole.exists():
            return False
        numbered = enumerate(split_into_chunks(lines))
        paths = [self.path_of(number, chunk) for number, chunk in numbered]
        return self.done.read_text() == names_of(paths)

    def embed_chunks(self, source: LineSource, processes: Processes = ONE_PROCESS) -> list[Path]:
        """
        Embeds this process's share of the chunks that are not there yet; returns where all of them
        are, or will be when every process has done its share.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        paths: list[Path] = []
        started, words = time.perf_counter(), 0
        with tqdm(
            total=source.total, unit=source.unit, unit_scale=True, disable=not processes.is_first
        ) as bar:
            for number, lines in enumerate(split_into_chunks(source.lines)):
                path = self.path_of(number, lines)
                # every process looks at its own chunks only
                is_own = number % processes.count == processes.rank
                is_new = is_own and not self.is_done(path)
                if is_new:
                    chunk = self.embed_chunk(lines)
                    with explain_failure(self.output.absolute().parent, self.explain):
                        chunk.save(path)
                paths.append(path)
                words += sum(len(line.words) for line in lines) if is_new else 0
                speed = words / (time.perf_counter() - started)
                bar.set_postfix(words_per_s=f"{speed:.0f}", refresh=False)
                bar.update(sum(line.size for line in lines))
                hand_back_memory()
        return paths

    def is_done(self, path: Path) -> bool:
        """A chunk is not done if it is damaged, or lacks a long line that must not be skipped."""
        try:
            chunk = Chunk.load(path)
        except (FileNotFoundError, DamagedChunkError):
            return False
        return self.on_error == "skip" or not len(chunk.left_empty)

    def path_of(self, number: int, lines: list[Line]) -> Path:
        """The name holds a hash of the lines, so that changed text never meets an old chunk."""
        text = json.dumps([(line.number, line.text, line.words, line.key) for line in lines])
        return self.folder / f"{number:08}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"

    def embed_chunk(self, lines: list[Line], left_empty: tuple[int, ...] = ()) -> Chunk:
        # the words of other chunks must not matter, not even in the last bit
        self.embedder.forget_words()
        sentences = [line.words for line in lines]
        try:
            arrays = [*self.embedder.embed_stream(sentences, self.layers, self.pooling, self.dtype)]
        except SentenceTooLongError as error:
            if not error.sentence:
                raise
            [lost] = [line for line in lines if line.words is error.sentence]
            place = f"Line {lost.number + 1}" if lost.key is None else f"The record {lost.key!r}"
            stop_or_skip(LineTooLongError(f"{place}: {error}"), self.on_error)
            rest = [line._replace(words=[]) if line is lost else line for line in lines]
            return self.embed_chunk(rest, (*left_empty, lost.number))
        return Chunk.of(lines, arrays, self.pooling, left_empty)

    def assemble(self, paths: list[Path]) -> None:
        """Puts all chunks together, when every process has done its share, and deletes them."""
        self.wait_for(paths)
        for old in (self.done, *self.folder.glob("whole*")):
            old.unlink(missing_ok=True)
        with explain_failure(self.output.absolute().parent, self.explain):
            self.check_room(paths)
            self.write_whole(paths)
            # files beside the output first: once the output is there, everything is
            ready = {
                self.folder / f"whole{ending}": file
                for ending, file in zip(self.format.beside, self.beside, strict=True)
            }
            (self.folder / "beside").write_text("\n".join(map(identity, ready)))
            for file, final in ready.items():
                os.replace(file, final)
            self.done.write_text(names_of(paths))
            os.replace(self.whole, self.output)
        self.clean()

    def write_whole(self, paths: list[Path]) -> None:
        try:
            self.format.write(self.whole, ChunkFiles(paths), self.pooling)
        except DamagedChunkError as error:
            # it was whole when this run began, or it would have been made anew
            error.path.unlink()
            raise OSError(f"the chunk {error.path.name} was damaged and is deleted") from error

    def check_room(self, paths: list[Path]) -> None:
        needed = sum(path.stat().st_size for path in paths)
        refuse_full_disk(self.folder, needed + self.format.bytes_per_line * CHUNK * len(paths))

    def wait_for(self, paths: list[Path]) -> None:
        """A file system that several machines share may show their chunks late."""
        deadline = time.monotonic() + PATIENCE
        while missing := [path for path in paths if not path.exists()]:
            if time.monotonic() > deadline:
                raise OSError(
                    f"{str(missing[0])!r} and {len(missing) - 1} more are missing; all machines "
                    "need to share this folder, and only one run at a time may write a file."
                )
            time.sleep(0.2)

    def clean(self) -> None:
        """
        Deletes the chunks, also those that runs with other settings left; `done`, which says that
        they are not needed, goes last.
        """
        for chunk in self.parts.rglob("*.npz"):
            chunk.unlink(missing_ok=True)
        shutil.rmtree(self.parts, ignore_errors=True)

    def explain(self, reason: str) -> str:
        """The message of a write that failed."""
        done = len(list(self.folder.glob("*.npz")))
        return (
            f"{str(self.output)!r} could not be written ({reason}); the {done} chunks of lines "
            "that are done are kept, and the same command resumes from there."
        )


def identity(file: Path) -> str:
    """What stays the same when a file gets another name."""
    about = file.stat()
    return f"{about.st_ino} {about.st_size} {about.st_mtime_ns}"


def names_of(paths: list[Path]) -> str:
    return "\n".join(path.name for path in paths)
