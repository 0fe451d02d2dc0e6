"""The reader of TensorFlow's checkpoints, against a writer in the tests, and damage."""

import random
import struct

import numpy as np
import pytest
from helpers.tensor_bundle import bundle, encode_block, message, number, write_bundle

from elmo_hf.conversion import tensor_bundle
from elmo_hf.conversion.crc32c import BYTES, crc32c
from elmo_hf.conversion.tensor_bundle import open_bundle

ARRAYS = {
    "global_step": np.asarray(np.float32(12)),
    "lm/char_embed": np.arange(12, dtype=np.float32).reshape(3, 4),
    "lm/char_embed/Adagrad": np.ones((3, 4), np.float32),
    "lm/softmax/W": np.linspace(0, 1, 7),
    "step": np.array([1, -2], np.int64),
}


def read(folder, index):
    files = list(folder.iterdir())
    return {name: tensor[()] for name, tensor in open_bundle(index, files).items()}


def test_checksums_are_those_of_the_standard():
    assert crc32c(b"") == 0
    assert crc32c(b"123456789") == 0xE3069283
    # RFC 3720, B.4
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


@pytest.mark.parametrize("size", [1, 3, 64, 127, 128, 129, 4095, 4100, 131_072, 200_003])
def test_checksums_of_every_length_are_those_of_single_bytes(size):
    data = random.Random(size).randbytes(size)
    register = 0xFFFFFFFF
    for byte in data:
        register = BYTES[(register ^ byte) & 255] ^ register >> 8
    assert crc32c(data) == register ^ 0xFFFFFFFF


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("entries_per_block", [1, 2, 100])
def test_what_was_written_is_read(tmp_path, shards, entries_per_block):
    index = write_bundle(
        tmp_path, "model.ckpt-3", ARRAYS, shards=shards, entries_per_block=entries_per_block
    )
    found = read(tmp_path, index)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array)


def test_names_share_their_beginnings(tmp_path):
    arrays = {f"lm/some/long/path/{n:03d}": np.full(2, n, np.float32) for n in range(100)}
    assert len(bundle("m", arrays)["m.index"]) < 100 * 40
    assert read(tmp_path, write_bundle(tmp_path, "m", arrays)).keys() == arrays.keys()


def entry(**changes):
    def change(header, entries):
        entries["lm/char_embed"].update(changes)

    return change


def head(**changes):
    return lambda header, entries: header.update(changes)


LIES = [
    (entry(shape=(3, 5)), "'lm/char_embed' takes 48 bytes, which does not fit its shape"),
    (entry(shape=(1 << 40, 1 << 40)), "which does not fit its shape"),
    (entry(shape=(-1, 4)), "which does not fit its shape"),
    (entry(shape=(1,) * 20), "no usable shape"),
    (entry(more=message(2, number(3, 1))), "no usable shape"),
    (entry(offset=1 << 20), "'lm/char_embed' lies beyond the end of its file"),
    (entry(offset=-1), "lies beyond"),
    (entry(size=1 << 50, shape=(1 << 48,)), "lies beyond"),
    (entry(shard=1), "lies beyond"),
    (entry(shard=-1), "lies beyond"),
    (entry(more=message(7, b"")), "'lm/char_embed' is saved in slices"),
    (entry(more=b"\x0b"), "no protocol buffer"),
    (entry(more=message(4, b"")), "of another type"),
    (entry(more=b"\x7a\xff\xff\x03"), "beyond its end"),
    (entry(more=b"\xff" * 12), "never ends"),
    (entry(more=message(15, bytes(5000))), "longer than any"),
    (head(endianness=1), "big-endian"),
    (head(min_consumer=2), "newer version"),
    (head(shards=0), "claims to be in 0 files"),
    (head(shards=1 << 40), "claims to be in 1,099,511,627,776 files"),
    (lambda header, entries: entries.update({"x" * 2000: entries["step"]}), "longer than any"),
]


@pytest.mark.parametrize(("change", "text"), LIES, ids=[text for _, text in LIES])
def test_lies_with_right_checksums_are_refused(tmp_path, change, text):
    index = write_bundle(tmp_path, "m", ARRAYS, change=change)
    with pytest.raises(ValueError, match=text) as caught:
        read(tmp_path, index)
    assert "\n" not in str(caught.value) and "m.index" in str(caught.value)


def test_many_claims_to_the_same_bytes_are_refused(tmp_path):
    def change(header, entries):
        for n in range(100):
            entries[f"more/{n}"] = dict(entries["lm/char_embed"])

    index = write_bundle(tmp_path, "m", ARRAYS, change=change)
    with pytest.raises(ValueError, match="claim more bytes than its files have"):
        read(tmp_path, index)


def test_other_types_are_named_when_they_are_read(tmp_path):
    arrays = {"a": np.ones(2, np.float16), "b": np.ones(2, np.float32)}
    index = write_bundle(tmp_path, "m", arrays)
    found = open_bundle(index, list(tmp_path.iterdir()))
    assert found["b"][()].tolist() == [1, 1]
    with pytest.raises(ValueError, match="'a' holds float16, which cannot be converted"):
        found["a"][()]


BLOCKS = {
    "restarts": (lambda block: block[:-4] + struct.pack("<I", 1 << 30), "has no end"),
    "shared": (lambda block: b"\x05\x01\x01xx" + block, "longer than any"),
    "value": (lambda block: b"\x00\x01\x7fx" + encode_block([]), "points beyond"),
    "order": (lambda block: encode_block([(b"", b""), (b"b", b""), (b"a", b"")]), "not in order"),
    "twice": (lambda block: encode_block([(b"", b""), (b"b", b""), (b"b", b"")]), "not in order"),
    "no header": (lambda block: encode_block([(b"b", b"")]), "no header"),
    "not text": (lambda block: encode_block([(b"", b""), (b"\xff", b"")]), "is not text"),
    "empty": (lambda block: b"", "has no end"),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_that_cannot_be_right_are_refused(tmp_path, kind):
    change, text = BLOCKS[kind]
    index = write_bundle(tmp_path, "m", ARRAYS, change_block=change)
    with pytest.raises(ValueError, match=text):
        read(tmp_path, index)


def test_a_compressed_index_is_named(tmp_path):
    index = write_bundle(tmp_path, "m", ARRAYS, block_type=1)
    with pytest.raises(ValueError, match=r"is compressed; save it again with TensorFlow 1\.2"):
        read(tmp_path, index)


def test_bounds_of_an_index(tmp_path, monkeypatch):
    index = write_bundle(tmp_path, "m", ARRAYS)
    monkeypatch.setattr(tensor_bundle, "MOST_ENTRIES", 3)
    with pytest.raises(ValueError, match="more than 3 variables"):
        read(tmp_path, index)
    monkeypatch.setattr(tensor_bundle, "LARGEST_INDEX", 100)
    with pytest.raises(ValueError, match="more than 100 bytes"):
        read(tmp_path, index)


def test_shards_are_beside_the_index_or_unique(tmp_path):
    index = write_bundle(tmp_path / "1", "m", ARRAYS)
    write_bundle(tmp_path / "2", "m", {"other": np.zeros(1000)})
    files = sorted(tmp_path.rglob("*.data*"))
    assert open_bundle(index, files)["lm/char_embed"][()].shape == (3, 4)
    (tmp_path / "3").mkdir()
    moved = index.rename(tmp_path / "3" / "m.index")
    with pytest.raises(ValueError, match="several files 'm.data-00000-of-00001'"):
        open_bundle(moved, files)
    assert open_bundle(moved, files[:1]).keys() == ARRAYS.keys()
    with pytest.raises(FileNotFoundError, match="needs the file 'm.data-00000-of-00001' beside it"):
        open_bundle(moved, [])


def test_another_number_does_not_match_its_checksum(tmp_path):
    index = write_bundle(tmp_path, "m", ARRAYS)
    data = tmp_path / "m.data-00000-of-00001"
    found = open_bundle(index, [data])
    content = bytearray(data.read_bytes())
    content[10] ^= 1
    data.write_bytes(content)
    with pytest.raises(ValueError, match="'lm/char_embed' in .* does not match its checksum"):
        found["lm/char_embed"][()]
    data.write_bytes(content[:-30])
    with pytest.raises(ValueError, match="'step' in .* does not match"):
        found["step"][()]
    data.unlink()
    with pytest.raises(ValueError, match="cannot be read"):
        found["step"][()]


def damaged(content, draw):
    data = bytearray(content)
    start = draw.randrange(len(data))
    stop = start + draw.choice([1, 1, 4, 40])
    change = draw.choice(["flip", "cut", "zero", "delete", "insert", "random"])
    if change == "flip":
        data[start] ^= 1 << draw.randrange(8)
    elif change == "cut":
        del data[start:]
    elif change == "insert":
        data[start:start] = draw.randbytes(draw.choice([1, 4]))
    else:
        replaced = data[start:stop]
        fill = {"zero": bytes(len(replaced)), "random": draw.randbytes(len(replaced))}
        data[start:stop] = fill.get(change, b"")
    return bytes(data)


def test_random_damage_is_one_sentence_or_the_same_numbers(tmp_path):
    index = write_bundle(tmp_path, "m", ARRAYS, entries_per_block=2)
    whole = {file: file.read_bytes() for file in tmp_path.iterdir()}
    refused = 0
    for seed in range(250):
        draw = random.Random(seed)
        for file, content in whole.items():
            file.write_bytes(content)
        file = draw.choice(sorted(whole))
        file.write_bytes(damaged(whole[file], draw))
        try:
            found = read(tmp_path, index)
        except ValueError as error:
            assert "\n" not in str(error)
            refused += 1
            continue
        assert all(np.array_equal(found[name], array) for name, array in ARRAYS.items())
    assert refused > 200


def test_damage_with_right_checksums_is_one_sentence(tmp_path):
    """What no checksum finds: random bytes in the blocks, checksums made afterwards."""
    for seed in range(250):
        draw = random.Random(seed)
        folder = tmp_path / str(seed % 2)

        def change(block, draw=draw):
            return damaged(block, draw) if draw.random() < 0.7 else block

        index = write_bundle(folder, "m", ARRAYS, change_block=change, entries_per_block=3)
        try:
            read(folder, index)
        except (ValueError, FileNotFoundError) as error:
            assert "\n" not in str(error)
