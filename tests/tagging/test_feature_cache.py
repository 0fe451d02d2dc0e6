"""The layers of a frozen biLM, kept on disk."""

import errno
import os
import shutil
from collections import namedtuple

import pytest
import torch
from accelerate import Accelerator
from datasets import Dataset

from elmo_hf import ElmoTokenizer
from elmo_hf.tagging import FeatureCache, feature_cache

WORDS = [["Dogs", "bark"], ["A", "dog", "barks", "loudly", "."], ["Yes"]] * 3


@pytest.fixture
def new_cache(tiny_model, tmp_path):
    return lambda: FeatureCache(
        tmp_path / "features", tiny_model, Dataset.from_dict({"tokens": WORDS}), "train"
    )


def fill(cache: FeatureCache) -> FeatureCache:
    width = cache.model.config.max_characters_per_token
    cache.fill(Accelerator(cpu=True), ElmoTokenizer(max_characters_per_token=width), "reads")
    return cache


def test_another_clip_has_another_file(new_cache):
    """Weights alone do not tell what a biLM makes of words."""
    cache = new_cache()
    cache.model.config.cell_clip = 0.5
    other = new_cache()
    assert other.path != cache.path
    # of the head, not of the biLM
    cache.model.config.classifier_dropout = 0.1
    assert new_cache().path == other.path


@pytest.mark.parametrize("system", ["linux", "macos"])
def test_layers_are_those_of_the_model(new_cache, system, monkeypatch):
    if system == "macos":
        monkeypatch.delattr(os, "posix_fallocate")
    cache = fill(new_cache())
    tokenizer = ElmoTokenizer(max_characters_per_token=cache.model.config.max_characters_per_token)
    for number, words in enumerate(WORDS):
        batch = tokenizer([words], is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            states = cache.model(**batch, output_hidden_states=True).hidden_states
        expected = torch.stack(states, dim=2)[0]
        torch.testing.assert_close(cache.layers(number), expected, rtol=1e-5, atol=1e-6)
    suffixes = sorted(path.suffix for path in cache.path.parent.iterdir())
    assert suffixes == [".checksums", ".float32"]


def test_only_missing_chunks_are_computed(new_cache, monkeypatch):
    """After a run that was killed in its second chunk, and after one that was whole."""
    monkeypatch.setattr(feature_cache, "CHUNK", 3)
    written = []
    write = FeatureCache.write

    def counting(self, values, numbers, tokenizer) -> None:
        if len(written) == 1:
            written.append(None)
            raise KeyboardInterrupt
        written.append(numbers)
        write(self, values, numbers, tokenizer)

    monkeypatch.setattr(FeatureCache, "write", counting)
    with pytest.raises(KeyboardInterrupt):
        fill(new_cache())
    fill(new_cache())
    assert written == [range(0, 3), None, range(3, 6), range(6, 9)]
    fill(new_cache())
    assert len(written) == 4


@pytest.mark.parametrize("suffix", [".float32", ".checksums"])
@pytest.mark.parametrize("damage", ["truncated", "deleted", "zeroed", "one bit"])
def test_damaged_chunks_are_computed_again(new_cache, suffix, damage, monkeypatch):
    monkeypatch.setattr(feature_cache, "CHUNK", 3)
    cache = fill(new_cache())
    whole = cache.path.read_bytes()
    file = cache.path.with_suffix(suffix)
    content = bytearray(file.read_bytes())
    if damage == "one bit":
        content[len(content) // 2] ^= 1
    changed = {"truncated": content[: len(content) // 2], "zeroed": bytes(len(content))}
    file.unlink()
    if damage != "deleted":
        file.write_bytes(changed.get(damage, content))
    assert fill(new_cache()).path.read_bytes() == whole


def test_a_whole_cache_of_somebody_else_is_only_read(new_cache, monkeypatch):
    whole = fill(new_cache()).path
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    opened, memmap = [], feature_cache.np.memmap

    def noted(path, kind, mode, **more):
        opened.append(mode)
        return memmap(path, kind, mode, **more)

    monkeypatch.setattr(feature_cache.np, "memmap", noted)
    assert fill(new_cache()).path == whole and set(opened) == {"r"}


def test_changed_weights_and_words_get_another_file(new_cache, tiny_model):
    before = new_cache().path
    assert new_cache().path == before
    other = FeatureCache(before.parent, tiny_model, Dataset.from_dict({"tokens": [["x"]]}), "train")
    assert other.path != before
    with torch.no_grad():
        next(tiny_model.layers.parameters())[0, 0] += 1
    assert new_cache().path != before


@pytest.mark.parametrize(
    "system, reason", [("linux", "No space left on device"), ("macos", "the disk is full")]
)
def test_a_full_disk_is_reported_before_the_work(new_cache, system, reason, monkeypatch):
    if system == "macos":
        monkeypatch.delattr(os, "posix_fallocate")
        usage = namedtuple("usage", "total used free")(1000, 1000, 0)
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    else:

        def refuse(descriptor: int, start: int, size: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", refuse)
    cache = new_cache()
    with pytest.raises(
        OSError, match=rf"no room for the biLM's layers, 0 MB.*\({reason}\)"
    ) as raised:
        fill(cache)
    assert "--no_feature_cache" in str(raised.value) and not list(cache.path.parent.iterdir())
