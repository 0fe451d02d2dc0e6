"""Which files a path or a glob names."""

import pytest

from elmo_hf.text import find_files, size_of


def test_a_path_or_a_glob(tmp_path):
    for name, text in (("b.txt", "two"), ("a.txt", "1"), ("[1].txt", "a glob's character")):
        (tmp_path / name).write_text(text)
    files = find_files(str(tmp_path / "?.txt"))
    assert [path.name for path in files] == ["a.txt", "b.txt"] and size_of(files) == 4
    assert find_files(tmp_path / "[1].txt") == [tmp_path / "[1].txt"]


def test_no_file_and_a_folder_are_one_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file .*nothing'"):
        find_files(tmp_path / "*.nothing")
    with pytest.raises(IsADirectoryError, match="is a folder; name its files"):
        find_files(tmp_path)
