"""Published weights in other wrappings: tars, archives of AllenNLP, alignment matrices."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from faults import crafted
from faults.inputs_weights import Weights, Zip, converted, magnitudes, summary, write_published
from faults.kind import Damage, Files
from helpers.archives import tagger_tensors, write_archive
from helpers.tiny import random_arrays, tiny_config
from safetensors.numpy import load_file

from elmo_hf.conversion.alignment import read_alignment
from elmo_hf.conversion.building import load_converted
from elmo_hf.conversion.heads import add_head
from elmo_hf.conversion.source import open_source

ARCHIVE, MATRIX = "model.tar.gz", "align.pth"


def tar_archive(files: Files, draw: Random) -> Damage:
    """Adds a member that nobody needs, or one that leads elsewhere."""
    content = gzip.decompress(files[ARCHIVE])
    kinds = {
        "name": draw.choice(["a\\..\\..\\b", "con", "x" * 300, "ü/../x", " "]),
        "outside": draw.choice(["../../outside", "/tmp/outside", "a/../../outside"]),
        "link": "options.json",
        "twice": "folder/options.json",
        "deep": "d/" * 2000 + "x",
    }
    change = "bomb" if draw.random() < crafted.BOMBS else draw.choice(sorted(kinds))
    member = tarfile.TarInfo(kinds.get(change, "folder/bomb.bin"))
    data = bytes(crafted.BOMB) if change == "bomb" else b"{}"
    member.size = len(data)
    if change == "link":
        types = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
        member.type, member.size = draw.choice(types), 0
        member.linkname = draw.choice(["/etc/passwd", "../x", "folder/weights.hdf5"])
    store = io.BytesIO(content)
    with tarfile.open(fileobj=store, mode="a") as archive:
        archive.addfile(member, io.BytesIO(data))
    packed = gzip.compress(store.getvalue(), 1, mtime=0)
    must_fail = change in ("outside", "link", "bomb")
    return Damage(files | {ARCHIVE: packed}, f"a member of kind {change!r} added", must_fail)


class Tar(Zip):
    """hdf5 and options.json in a tar.gz, whose checksum leaves no room for other numbers."""

    name = "tar"
    targets = (ARCHIVE,)
    crafts = (tar_archive, crafted.gzip_file(ARCHIVE))

    def make(self, variant: int) -> None:
        write_published(variant)
        store = io.BytesIO()
        with tarfile.open(fileobj=store, mode="w") as archive:
            for name in ("options.json", "weights.hdf5", "vocab.txt"):
                archive.add(name, f"folder/{name}", filter=without_time)
                Path(name).unlink()
        Path(ARCHIVE).write_bytes(gzip.compress(store.getvalue(), mtime=0))

    def run(self) -> Any:
        with open_source(ARCHIVE) as weights:
            return converted(weights)

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "convert", ARCHIVE, "--output-dir", output]

    def unpacked_size(self, files: Files) -> int:
        return crafted.gunzipped_size(files[ARCHIVE])


def without_time(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime = 0
    return member


def pickled(name: str) -> Any:
    """Replaces a file of torch.save by one that holds something else."""

    def craft(files: Files, draw: Random) -> Damage:
        choices: list[Any] = [
            crafted.Trap(),
            {"a": crafted.Trap()},
            [crafted.Trap()],
            np.array([crafted.Trap()], dtype=object),
            {},
            {"a": 1},
            {1: torch.zeros(2)},
            torch.zeros(1).expand(1 << 20, 1 << 20),
            {"a": torch.zeros(1).expand(1 << 40)},
            torch.zeros(3, 3).to_sparse(),
            torch.zeros(2, dtype=torch.complex64),
            np.zeros((16, 16), "S4"),
            np.full((16, 16), np.nan),
        ]
        store, chosen = io.BytesIO(), draw.randrange(len(choices))
        legacy = draw.random() < 0.5
        torch.save(choices[chosen], store, _use_new_zipfile_serialization=not legacy)
        return Damage(files | {name: store.getvalue()}, f"pickle {chosen} in {name}", True)

    return craft


def bomb(name: str) -> Any:
    """Replaces a file of torch.save by a small one that would become huge, or never end."""

    def craft(files: Files, draw: Random) -> Damage:
        times = draw.randrange(22, 60)
        doubled = b"c_codecs\nencode\n" * times + b"X\x01\0\0\0a"
        choices = {
            "encoding": doubled + b"X\x09\0\0\0hex_codec\x86R" * times,
            "tuples": b"}K\x01q\0" + b"h\0\x86q\0" * times + b"K\x01s",
            "bytes": b"cbuiltins\nbytearray\n\x8a\x05\0\0\0\0\x40\x85R",
        }
        kind = draw.choice(sorted(choices))
        store = io.BytesIO()
        with zipfile.ZipFile(store, "w") as archive:
            archive.writestr("a/data.pkl", b"\x80\x02" + choices[kind] + b".")
            archive.writestr("a/version", "3\n")
        return Damage(files | {name: store.getvalue()}, f"a bomb of {kind} in {name}", True)

    return craft


class AllennlpArchive(Weights):
    """The folder of a tagger: configuration, weights, labels and options."""

    name = "allennlp archive"
    targets = ("model/config.json", "model/weights.th", "model/vocabulary/labels.txt")
    crafts = (
        pickled("model/weights.th"),
        bomb("model/weights.th"),
        crafted.lines("model/vocabulary/labels.txt"),
    )

    def make(self, variant: int) -> None:
        config = tiny_config()
        head = tagger_tensors(config.hidden_size, 5, True, variant)
        arrays = random_arrays(config, variant)
        write_archive(
            Path("model"), config, arrays, head, "crf_tagger", legacy=bool(variant % 2)
        ).unlink()

    def run(self) -> Any:
        with open_source("model") as weights:
            model, _ = load_converted(weights)
            whole = model if weights.head is None else add_head(model, weights.head)
        state = whole.state_dict()
        return summary({name: state[name].numpy() for name in state if "mixes." not in name})

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "convert", "model", "--output-dir", output]

    def doubt(self, result: Any, in_process: bool) -> str | None:
        """The pickle has no checksums; without readable labels only the biLM is taken."""
        tensors = torch.load("model/weights.th", weights_only=True)
        arrays = {name: part.float().numpy() for name, part in tensors.items()}
        bilm = [part for name, part in arrays.items() if "_elmo." in name]
        head = [
            part for name, part in arrays.items() if "_elmo." not in name and "mask" not in name
        ]
        # conversion drops the row of padding
        found = {magnitudes(bilm), magnitudes([*bilm, *head])}
        return None if result[1] in found else "the weights differ from those in the file"


class Alignment(Weights):
    """A matrix beside intact weights."""

    name = "alignment"
    targets = (MATRIX,)
    crafts = (pickled(MATRIX), bomb(MATRIX))

    def make(self, variant: int) -> None:
        super().make(variant)
        width = tiny_config().hidden_size
        matrix = np.random.default_rng(variant).standard_normal((width, width))
        torch.save(matrix, MATRIX, _use_new_zipfile_serialization=bool(variant % 2))

    def run(self) -> Any:
        return summary({"alignment": read_alignment(Path(MATRIX), tiny_config().hidden_size)})

    def arguments(self, output: str) -> list[str]:
        return [*super().arguments(output), "--alignment", MATRIX]

    def result(self, output: Path) -> Any:
        weights = load_file(output / "model.safetensors")
        [name] = [name for name in weights if name.endswith("alignment.weight")]
        return summary({"alignment": weights[name]})

    def doubt(self, result: Any, in_process: bool) -> str | None:
        """A number in the file may have changed, since it has no checksum, but it must arrive."""
        return None if result == self.run() else "the matrix differs from that in the file"
