"""Commands that download, from a server on loopback that takes its time."""

import contextlib
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from faults.inputs_weights import write_published
from faults.kind import Command, Files, digest, read_files
from helpers.file_server import FileServer

# of the programs: the list of models, the cache, and leave to download
SETTINGS = ("ELMO_HF_REGISTRY=registry.toml", "ELMO_HF_HOME=cache", "HF_HUB_OFFLINE=0")


class Download(Command):
    """The files of a published model. What a killed run has downloaded, the next one uses."""

    name = "download"
    atomic = False

    def beside(self) -> FileServer:
        self.server = FileServer()
        self.server.pause, self.server.block = 0.002, 1 << 14
        for variant in (0, 1):
            for name, content in self.published(variant).items():
                self.server.files[f"{variant}/{name}"] = content
        return self.server

    def published(self, variant: int) -> Files:
        return {"options.json": b"{}", "weights.hdf5": Random(variant).randbytes(1 << 20)}

    def make(self, variant: int) -> None:
        self.server.table(Path("registry.toml"), prefix=f"{variant}/")

    def arguments(self, output: str) -> list[str]:
        return [*SETTINGS, "elmo-hf", "download", "tiny", "--output-dir", output]

    def result(self, output: Path) -> Any:
        """The files, without what is recorded of them."""
        return {path.name: digest(path.read_bytes()) for path in output.iterdir() if path.is_file()}


class ConvertByName(Download):
    name = "convert NAME"
    atomic = True

    def published(self, variant: int) -> Files:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            write_published(variant)
            return read_files(Path())

    def arguments(self, output: str) -> list[str]:
        return [*SETTINGS, "elmo-hf", "convert", "tiny", "--output-dir", output]

    def result(self, output: Path) -> Any:
        return Command.result(self, output)
