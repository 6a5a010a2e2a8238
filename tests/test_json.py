"""JSON: what stands for NaN and infinity, and files that are not what they should be."""

import json
import os

import numpy as np
import pytest

from veridical._json import read_json, to_json, write_json
from veridical.errors import CorruptFileError


def test_numbers_that_json_lacks():
    content = {"a": float("nan"), "b": (float("inf"), -np.inf), "c": np.float32(0.5), "d": np.int64(3), "e": None}
    assert json.loads(to_json(content)) == {"a": None, "b": ["infinity", "-infinity"], "c": 0.5, "d": 3, "e": None}
    assert to_json([True, False]) == "[true, false]"


def test_text_is_ascii_even_with_lone_surrogates():
    names = ["café", "\ud800", "中"]
    text = to_json(names)
    assert text.isascii()
    assert json.loads(text) == names


def test_other_objects_are_written_as_text():
    assert json.loads(to_json({1: np.dtype("float32")})) == {"1": "float32"}


def test_written_json_is_read_back(tmp_path):
    write_json(tmp_path / "a.json", {"x": [1, 2.5, "é"]})
    assert read_json(tmp_path / "a.json") == {"x": [1, 2.5, "é"]}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b'{"a": NaN}', b"[-Infinity]"],
    ids=lambda c: repr(c[:6]),
)
def test_damaged_json_is_rejected(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"a\.json"):
        read_json(path)


def test_only_regular_files_are_read(tmp_path):
    with pytest.raises(CorruptFileError, match="not a regular file"):
        read_json(tmp_path)
    with pytest.raises(CorruptFileError, match="not a regular file"):
        read_json("/dev/zero")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(CorruptFileError, match="not a regular file"):
        read_json(tmp_path / "pipe.json")
