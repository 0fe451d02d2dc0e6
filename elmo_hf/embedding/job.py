# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A corpus becomes a file of vectors: by chunks of lines, each kept on disk as soon as it is done.

A killed run goes on with the chunks that are missing, several processes share them, and at the end
they are put together in their order. What a chunk holds depends on its lines alone, so the file is
the same whoever made it and however often it was begun.
"""

import errno
import functools
import hashlib
import importlib
import itertools
import json
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from torch import nn
from tqdm.auto import tqdm

from elmo_hf.embedding.embedder import ElmoEmbedder, SentenceTooLongError
from elmo_hf.system.memory import hand_back_memory
from elmo_hf.text_lines import decode_line, raw_lines

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]
if TYPE_CHECKING:
    import h5py
    from datasets import Dataset

# lines and words of a chunk, which ends with whichever comes first: memory is bounded by words
CHUNK = 1024
CHUNK_WORDS = 1 << 15
# bytes; with fewer left a disk is full
ROOM = 1 << 20
# bytes that hdf5 takes for a line besides its numbers, and as many again
HDF5_LINE = 600
# bytes of the longest string that numpy can hold
LONGEST_STRING = (1 << 31) - 1
# seconds until a chunk that another machine has written must be seen
PATIENCE = 60


class Line(NamedTuple):
    number: int
    text: str
    words: list[str]
    # its share of the corpus, for a progress bar
    size: int


class Chunk(NamedTuple):
    """The vectors of some lines."""

    # counted from 0
    numbers: np.ndarray
    sentences: list[str]
    # of every sentence: how many vectors it has; all 1 when it is pooled
    lengths: np.ndarray
    # the sentences' vectors one after the other, (vectors, size) or (vectors, layers, size)
    values: np.ndarray
    # the numbers of sentences that did not fit into memory, and have no vectors
    left_empty: np.ndarray

    def save(self, path: Path) -> None:
        """There whole or not at all."""
        building = path.with_suffix(f".{os.getpid()}.part")
        arrays = self._asdict()
        arrays["sentences"] = np.frombuffer(json.dumps(self.sentences).encode(), np.uint8)
        try:
            with building.open("wb") as file:
                np.savez(file, **arrays)
            os.replace(building, path)
        finally:
            building.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> "Chunk":
        with np.load(path) as saved:
            arrays = dict(saved)
        return cls(**arrays | {"sentences": json.loads(arrays["sentences"].tobytes())})

    def arrays(self, pooling: str) -> Iterator[np.ndarray]:
        """Of each sentence, as the embedder makes them: layers first; pooled, no axis of words."""
        for part in np.split(self.values, np.cumsum(self.lengths)[:-1]):
            array = part if part.ndim == 2 else part.swapaxes(0, 1)
            yield array if pooling == "none" else array[..., 0, :]


class EmbeddingJob:
    """
    What is asked for: layers, pooling and number format, into a file whose ending is its format
    unless `form` names it.

    `.hdf5`, `.h5` are in AllenNLP's layout, `.parquet`, `.arrow` for `datasets`, `.npy` is plain.
    """

    def __init__(
        self,
        embedder: ElmoEmbedder,
        output: Path,
        layers: str = "all",
        pooling: str = "none",
        dtype: str = "float32",
        form: str | None = None,
        on_error: str = "stop",
    ):
        if output.is_dir():
            raise IsADirectoryError(f"{str(output)!r} is a folder; name a file.")
        if form is None and output.suffix not in FORMS:
            endings = ", ".join(FORMS)
            raise ValueError(f"{str(output)!r} should end in one of {endings}: that is its format.")
        form = form or FORMS[output.suffix]
        check_library(form)
        self.write = WRITERS[form]
        embedder.check(layers, pooling, dtype)
        self.embedder, self.output = embedder, output
        self.layers, self.pooling, self.dtype = layers, pooling, dtype
        self.on_error = on_error
        key = hashlib.sha256(json.dumps([layers, pooling, dtype]).encode())
        key.update(embedder.model.config.to_json_string().encode())
        add_weights(key, embedder.model)
        self.parts = output.with_name(f".{output.name}.parts")
        self.folder = self.parts / key.hexdigest()[:12]
        self.whole = self.folder / f"whole{output.suffix}"
        # says that all parts of the output are there, or will be when `whole` has moved, and by
        # the names of its chunks of what text it is
        self.done = self.folder / "done"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """
        While this run writes the file no other may: they would take away each other's parts. What a
        killed one held is free.
        """
        self.parts.mkdir(parents=True, exist_ok=True)
        with (self.parts / "lock").open("w") as lock:
            if not lock_file(lock):
                raise BlockingIOError(
                    f"Another run is writing {str(self.output)!r}; let it end or name another file."
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

    def is_finished(self, lines: Iterable[Line]) -> bool:
        """
        Whether a run over these lines was killed after its output was there, before it had cleaned
        up.
        """
        if not self.done.exists() or self.whole.exists():
            return False
        paths = [self.path_of(number, chunk) for number, chunk in enumerate(in_chunks(lines))]
        return self.done.read_text() == names_of(paths)

    def run(
        self,
        lines: Iterable[Line],
        rank: int = 0,
        processes: int = 1,
        progress: Callable[[list[Line], bool], Any] = lambda lines, is_new: None,
    ) -> list[Path]:
        """
        Embeds this process's share of the chunks, those that are not there yet; returns where all
        of them are, or will be when every process has done its share. `progress` is told of every
        chunk, and whether it was still to be done.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for number, chunk in enumerate(in_chunks(lines)):
            path = self.path_of(number, chunk)
            is_new = not self.is_done(path)
            if number % processes == rank and is_new:
                embedded = self.embed(chunk)
                with self.told():
                    embedded.save(path)
            paths.append(path)
            progress(chunk, is_new)
            hand_back_memory()
        return paths

    def is_done(self, path: Path) -> bool:
        """Not if it is damaged, or lacks a line for want of memory that must not be skipped."""
        try:
            with path.open("rb") as file, np.load(file) as saved:
                return self.on_error == "skip" or not len(saved["left_empty"])
        except (FileNotFoundError, EOFError, ValueError, zipfile.BadZipFile):
            return False

    def path_of(self, number: int, chunk: list[Line]) -> Path:
        """The name holds a hash of the lines, so that changed text never meets an old chunk."""
        text = json.dumps([(line.number, line.text, line.words) for line in chunk])
        return self.folder / f"{number:08}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.npz"

    def embed(self, chunk: list[Line], left_empty: tuple[int, ...] = ()) -> Chunk:
        # what words were seen before must not matter, not even in the last bit
        self.embedder.words.clear()
        sentences = [line.words for line in chunk]
        try:
            arrays = [*self.embedder.embed_stream(sentences, self.layers, self.pooling, self.dtype)]
        except SentenceTooLongError as error:
            if not error.sentence:
                raise
            [lost] = [line for line in chunk if line.words is error.sentence]
            stop_or_tell(MemoryError(f"Line {lost.number + 1}: {error}"), self.on_error)
            rest = [line._replace(words=[]) if line is lost else line for line in chunk]
            return self.embed(rest, (*left_empty, lost.number))
        if self.pooling != "none":
            lengths = np.ones(len(arrays), np.int64)
            values = np.stack(arrays)
        else:
            lengths = np.array([len(words) for words in sentences])
            # vectors first
            values = np.concatenate([a.swapaxes(0, 1) if a.ndim == 3 else a for a in arrays])
        numbers = np.array([line.number for line in chunk])
        texts = [line.text for line in chunk]
        return Chunk(numbers, texts, lengths, values, np.array(left_empty, np.int64))

    def finish(self, paths: list[Path]) -> None:
        """Puts all chunks together, when every process has done its share."""
        self.wait_for(paths)
        for old in (self.done, *self.folder.glob("whole*")):
            old.unlink(missing_ok=True)
        with self.told():
            # beforehand: on a full disk the library of hdf5 crashes
            needed = sum(path.stat().st_size for path in paths)
            if self.write is write_hdf5:
                needed += HDF5_LINE * CHUNK * len(paths)
            if shutil.disk_usage(self.folder).free < needed:
                raise OSError(errno.ENOSPC, f"the disk has no room for {needed / 1e6:,.0f} MB more")
            self.write(self.whole, paths, self.pooling)
            # what stands beside it first: when the file itself is there, all is
            for file in set(self.folder.glob("whole*")) - {self.whole}:
                name = file.name.replace("whole", self.output.stem)
                os.replace(file, self.output.with_name(name))
            self.done.write_text(names_of(paths))
            os.replace(self.whole, self.output)
        self.clean()

    def wait_for(self, paths: list[Path]) -> None:
        """A file system that several machines share may show their chunks late."""
        deadline = time.monotonic() + PATIENCE
        while missing := [path for path in paths if not path.exists()]:
            if time.monotonic() > deadline:
                raise OSError(
                    f"{str(missing[0])!r} and {len(missing) - 1} more are missing; all machines "
                    "need this folder in common, and one run at a time may write the same file."
                )
            time.sleep(0.2)

    def clean(self) -> None:
        """
        Drops the chunks, also those that runs with other settings left; last of all what says that
        they are not needed.
        """
        for chunk in self.parts.rglob("*.npz"):
            chunk.unlink(missing_ok=True)
        shutil.rmtree(self.parts, ignore_errors=True)

    @contextmanager
    def told(self) -> Iterator[None]:
        """A full disk is told in a sentence; what is done stays."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            # h5py has errors of the second kind
            full = shutil.disk_usage(self.output.parent).free < ROOM
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            reason = "the disk is full" if full else reason
            done = len(list(self.folder.glob("*.npz")))
            raise OSError(
                f"{str(self.output)!r} could not be written ({reason}); what is done, {done} "
                "chunks of lines, is kept, and the same command goes on from there."
            ) from error


def lock_file(file: IO) -> bool:
    """Not if another process has locked it; where locks are not known, as if it were."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some file systems of clusters
        pass
    return True


def names_of(paths: list[Path]) -> str:
    return "\n".join(path.name for path in paths)


def add_weights(key: Any, module: nn.Module) -> None:
    """Adds a module's weights to a hash."""
    for name, weight in module.state_dict().items():
        key.update(name.encode())
        key.update(memoryview(weight.detach().float().cpu().contiguous().numpy()).cast("B"))


def in_chunks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    chunk: list[Line] = []
    words = 0
    for line in lines:
        chunk.append(line)
        words += len(line.words)
        if len(chunk) == CHUNK or words >= CHUNK_WORDS:
            yield chunk
            chunk, words = [], 0
    if chunk:
        yield chunk


def file_lines(files: list[Path], on_error: str) -> Iterator[Line]:
    """The lines of some texts, counted through."""
    count = 0
    for path in files:
        for line in read_lines(raw_lines(path), str(path), on_error):
            yield line._replace(number=count)
            count += 1


def standard_input(on_error: str) -> Iterator[Line]:
    if sys.stdin is None:
        raise ValueError("There is no standard input; name a text by --input.")
    return read_lines(((raw, len(raw)) for raw in sys.stdin.buffer), "standard input", on_error)


def read_lines(source: Iterable[tuple[bytes, int]], name: str, on_error: str) -> Iterator[Line]:
    for number, (raw, size) in enumerate(source):
        text = ""
        try:
            text = decode_line(raw, name, number + 1).strip()
        except ValueError as error:
            stop_or_tell(error, on_error)
        yield Line(number, text, text.split(), size)


def load_column(name: str, config: str | None, split: str, column: str) -> "Dataset":
    """The sentences of a dataset."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetGenerationError

    try:
        rows = load_dataset(name, config, split=split)
    except DatasetGenerationError as error:
        raise ValueError(f"The dataset {name!r} cannot be read: {error.__cause__}") from error
    if column not in rows.column_names:
        names = ", ".join(rows.column_names)
        raise ValueError(f"The dataset {name!r} has no column {column!r}; it has {names}.")
    return rows.select_columns([column])


def dataset_lines(rows: "Dataset", on_error: str) -> Iterator[Line]:
    """A column of strings, or of lists of words; a row is as large as any other."""
    [column] = rows.column_names
    for number, row in enumerate(rows):
        sentence = row[column]
        if isinstance(sentence, str):
            yield Line(number, sentence.strip(), sentence.split(), 1)
            continue
        if not isinstance(sentence, list) or not all(isinstance(word, str) for word in sentence):
            error = (
                f"Row {number}: {column!r} should be text or a list of words, not {sentence!r:.50}."
            )
            stop_or_tell(ValueError(error), on_error)
            sentence = []
        yield Line(number, " ".join(sentence), sentence, 1)


def stop_or_tell(error: ValueError | MemoryError, on_error: str) -> None:
    """A line that cannot be read stops the run, or is reported and counts as an empty one."""
    if on_error == "stop":
        raise type(error)(f"{error} Or leave it empty by --on-error skip.") from error
    tqdm.write(f"{error} The line counts as an empty one.", file=sys.stderr)


def load_chunks(paths: list[Path]) -> Iterator[Chunk]:
    """One after the other, with a progress bar: a large corpus takes minutes to put together."""
    for path in tqdm(paths, desc="writing", unit="chunk", leave=False):
        yield Chunk.load(path)


def write_hdf5(path: Path, paths: list[Path], pooling: str) -> None:
    """As AllenNLP does: a dataset for each line, and in another which sentence stands where."""
    import h5py

    # formats that the library of AllenNLP's day reads
    with h5py.File(path, "w", libver=("v108", "v110")) as file:
        for chunk in load_chunks(paths):
            for number, array in zip(chunk.numbers.tolist(), chunk.arrays(pooling), strict=True):
                file.create_dataset(str(number), data=array)
        size = sum(map(len, sentence_table(paths)))
        if size > LONGEST_STRING:
            tqdm.write(
                f"The table of sentences, {size / 1e9:.1f} GB, is too long for hdf5 and left out; "
                "the lines are there by their numbers.",
                file=sys.stderr,
            )
            return
        place = reserve_text(file, "sentence_to_index", size)
    # by hand: hdf5 takes a string only in one piece, and this one is as long as the text
    with path.open("r+b") as whole:
        whole.seek(place)
        whole.writelines(sentence_table(paths))


def sentence_table(paths: list[Path]) -> Iterator[bytes]:
    """JSON, by pieces: the line of each sentence, the last one's if it stands there twice."""
    yield b"{"
    between = ""
    for path in paths:
        with np.load(path) as saved:
            numbers, sentences = saved["numbers"].tolist(), json.loads(saved["sentences"].tobytes())
        pairs = zip(sentences, numbers, strict=True)
        entries = [f'{json.dumps(sentence)}: "{number}"' for sentence, number in pairs]
        yield (between + ", ".join(entries)).encode()
        between = ", "
    yield b"}"


def reserve_text(file: "h5py.File", name: str, size: int) -> int:
    """A dataset of one string of so many bytes, still to be written; returns its place."""
    import h5py

    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    text = file.create_dataset(name, (1,), h5py.string_dtype(length=size), dcpl=layout)
    return text.id.get_offset()


def write_table(path: Path, paths: list[Path], pooling: str) -> None:
    """Parquet or arrow: a row for each line, with its number from 0, its text and its vectors."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # hardly a number stands there twice: a dictionary makes parquet half as large again
    parquet = functools.partial(pq.ParquetWriter, use_dictionary=False)
    open_writer = pa.ipc.new_stream if path.suffix == ".arrow" else parquet
    tables = (table_of(chunk, pooling) for chunk in load_chunks(paths))
    first = next(tables)
    with path.open("wb") as file, open_writer(file, first.schema) as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table)


def table_of(chunk: Chunk, pooling: str) -> Any:
    """`line`, `sentence` and `embedding`, nested lists of numbers."""
    import pyarrow as pa

    columns = {
        "line": pa.array(chunk.numbers),
        "sentence": pa.array(chunk.sentences, pa.string()),
        "embedding": nested(list(chunk.arrays(pooling))),
    }
    return pa.table(columns)


def nested(arrays: list[np.ndarray]) -> Any:
    """Arrays of one number of axes as an arrow array of lists of lists."""
    import pyarrow as pa

    result = pa.array(np.concatenate([array.reshape(-1) for array in arrays]))
    for axis in reversed(range(arrays[0].ndim)):
        counts = np.concatenate(
            [np.full(int(np.prod(array.shape[:axis])), array.shape[axis]) for array in arrays]
        )
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        result = pa.ListArray.from_arrays(pa.array(starts), result)
    return result


def write_npy(path: Path, paths: list[Path], pooling: str) -> None:
    """
    All vectors one after the other, (vectors, size) or (vectors, layers, size), and in a file
    beside it where each sentence begins, with the end of all behind the last.
    """
    offsets = path.with_name("whole.offsets.npy")
    # as they come: of a corpus of any size only sums are in memory
    sentences = vectors = 0
    with tqdm(paths, desc="counting", unit="chunk", leave=False) as bar, offsets.open("wb") as file:
        write_header(file, np.dtype(np.int64), (0,))  # to be written over
        file.write(np.zeros(1, np.int64).data)
        for some in bar:
            with np.load(some) as saved:
                ends = vectors + np.cumsum(saved["lengths"])
            file.write(ends.data)
            sentences, vectors = sentences + len(ends), int(ends[-1])
        file.seek(0)
        write_header(file, np.dtype(np.int64), (sentences + 1,))
    first = Chunk.load(paths[0]).values
    with path.open("wb") as file:
        write_header(file, first.dtype, (vectors, *first.shape[1:]))
        for chunk in load_chunks(paths):
            file.write(np.ascontiguousarray(chunk.values).data)


def write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """The first bytes of an `.npy` file, as many of them for any number of rows."""
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def check_library(form: str) -> None:
    """That the format's library is there, before the work begins."""
    if form not in LIBRARIES:
        return
    library = LIBRARIES[form]
    try:
        importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"To write {form} needs {library}, which is not installed: pip install {library}"
        ) from error


# of formats that need more than the package itself
LIBRARIES = {"hdf5": "h5py", "parquet": "pyarrow", "arrow": "pyarrow"}
WRITERS = {"hdf5": write_hdf5, "parquet": write_table, "arrow": write_table, "npy": write_npy}
FORMS = {".h5": "hdf5"} | {f".{form}": form for form in WRITERS}
