"""What is missing is named in one sentence, with what to install."""

import sys

import pytest

from elmo_hf.engines import RayEmbedder, RayTagger, elmo_embed, elmo_tag, require_java


@pytest.mark.parametrize("kind", [RayEmbedder, RayTagger])
def test_ray(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"requires ray: pip install 'elmo_hf\[ray\]'$"):
        kind(keys=["id"])


@pytest.mark.parametrize("run", [elmo_embed, elmo_tag])
def test_spark(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ImportError, match=r"requires pyspark: pip install 'elmo_hf\[spark\]'$"):
        run(None, keys=["id"])


@pytest.mark.parametrize("home", [None, "home"])
def test_java(home, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
    with pytest.raises(OSError, match="install Debian's openjdk-17-jre-headless, or let JAVA_HOME"):
        require_java()
