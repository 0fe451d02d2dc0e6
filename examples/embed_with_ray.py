"""Embed any amount of text with Ray, file by file; repeated, the command skips finished files.

    pip install '.[ray]'
    python examples/embed_with_ray.py --input texts --format parquet --keys id --output vectors

Each file of the input, or each group of --files_at_once files, becomes a folder of Parquet files.
A note in the folder says that it is finished, of which files, and with which settings. The columns
are `path`, the keys (of text: `line`), and those of `RayEmbedder`.
"""

import argparse
import hashlib
import io
import json
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tqdm.auto import tqdm

try:
    import pyarrow as pa
    import ray
    from pyarrow import fs
except ModuleNotFoundError:
    sys.exit("This example requires Ray: pip install '.[ray]'")

from elmo_hf.engines import RayEmbedder, reason_of

NOTE = "_finished.json"
LINES_AT_ONCE = 1024


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", required=True, help="a file, a folder or an address like s3://")
    parser.add_argument("--output", required=True, help="a folder, or an address like s3://")
    parser.add_argument("--format", choices=["parquet", "jsonl", "text"], default="parquet")
    parser.add_argument("--column", default="text", help="the column with text or lists of words")
    parser.add_argument("--keys", nargs="*", default=[], help="the columns that tell rows apart")
    parser.add_argument("--model_name_or_path", default="bundled", help="a folder or Hub name")
    parser.add_argument("--layers", default="all", help="all, mix, top, mean, or a number")
    parser.add_argument("--pooling", default="none", help="none, mean or max")
    parser.add_argument("--split", help="a splitter; by default the one saved with the model")
    parser.add_argument("--on_error", choices=["stop", "skip"], default="stop")
    parser.add_argument("--actors", type=int, default=1, help="how many load the model")
    parser.add_argument("--gpus_per_actor", type=float, default=0)
    parser.add_argument("--files_at_once", type=int, default=1, help="more for small files")
    args = parser.parse_args()
    if args.format != "text" and not args.keys:
        parser.error(f"--keys must name the columns that tell the rows of {args.format} apart")
    if min(args.actors, args.files_at_once) < 1:
        parser.error("--actors and --files_at_once must be at least 1")
    return args


def main() -> None:
    args = parse_arguments()
    place, files = list_files(args.input)
    output_place, output = find(args.output)
    settings = {
        "keys": ["path", *(["line"] if args.format == "text" else args.keys)],
        "column": "text" if args.format == "text" else args.column,
        "model": args.model_name_or_path,
        "layers": args.layers,
        "pooling": args.pooling,
        "split": args.split,
        "on_error": args.on_error,
    }
    finished = finished_files(output_place, output, settings)
    todo = [file for file in files if file not in finished]
    print(f"{len(files) - len(todo)} of {len(files)} files are finished")
    size = args.files_at_once
    for start in tqdm(range(0, len(todo), size), unit="group", disable=len(todo) <= size):
        group = todo[start : start + size]
        name = hashlib.sha256("\n".join(group).encode()).hexdigest()[:16]
        folder = f"{output}/files-{name}"
        vectors = read(place, group, args.format).map_batches(
            RayEmbedder,
            fn_constructor_kwargs=settings,
            batch_format="pyarrow",
            batch_size=1024,
            compute=ray.data.ActorPoolStrategy(size=args.actors),
            num_gpus=args.gpus_per_actor,
        )
        try:
            vectors.write_parquet(folder, filesystem=output_place)
        except Exception as error:
            if reason := reason_of(error):
                sys.exit(reason)
            raise
        # text without lines makes no folder
        output_place.create_dir(folder)
        # a note is whole or not there
        with output_place.open_output_stream(f"{folder}/{NOTE}.part") as note:
            note.write(json.dumps({"files": group, "settings": settings}).encode())
        output_place.move(f"{folder}/{NOTE}.part", f"{folder}/{NOTE}")


def find(name: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or an address, and the path there."""
    return fs.FileSystem.from_uri(name if "://" in name else str(Path(name).resolve()))


def list_files(name: str) -> tuple[fs.FileSystem, list[str]]:
    place, path = find(name)
    if place.get_file_info(path).type == fs.FileType.File:
        return place, [path]
    found = place.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    # as in Spark's folders, names that begin so are not data
    files = [
        info.path
        for info in found
        if info.is_file and not re.search("/[._]", info.path[len(path) :])
    ]
    if not files:
        sys.exit(f"There is no file in {name!r}; name another --input.")
    return place, sorted(files)


def finished_files(place: fs.FileSystem, output: str, settings: dict) -> set[str]:
    """What is finished already; what an interrupted run has left is deleted."""
    finished: set[str] = set()
    for info in place.get_file_info(fs.FileSelector(output, allow_not_found=True)):
        if not re.fullmatch("files-[0-9a-f]{16}", info.base_name):
            continue
        note = f"{info.path}/{NOTE}"
        if place.get_file_info(note).type == fs.FileType.NotFound:
            place.delete_dir(info.path)
            continue
        with place.open_input_stream(note) as file:
            known = json.loads(file.read())
        if known["settings"] != settings:
            sys.exit(f"{info.path!r} was made with {known['settings']}; choose another --output.")
        finished.update(known["files"])
    return finished


def read(place: fs.FileSystem, files: list[str], kind: str) -> ray.data.Dataset:
    if kind == "parquet":
        return ray.data.read_parquet(files, filesystem=place, include_paths=True)
    if kind == "jsonl":
        return ray.data.read_json(files, filesystem=place, include_paths=True)
    # not `read_text`, which does not number the lines
    paths = ray.data.from_items([{"path": file} for file in files], override_num_blocks=len(files))
    return paths.map_batches(read_lines, fn_args=[place], batch_size=1, batch_format="pyarrow")


def read_lines(batch: pa.Table, place: fs.FileSystem) -> Iterator[pa.Table]:
    [path] = batch["path"].to_pylist()
    with place.open_input_stream(path) as file:
        lines = enumerate(io.TextIOWrapper(file, encoding="utf-8"))
        while some := list(islice(lines, LINES_AT_ONCE)):
            numbers, texts = zip(*some, strict=True)
            yield pa.table({"path": [path] * len(some), "line": numbers, "text": texts})


if __name__ == "__main__":
    main()
