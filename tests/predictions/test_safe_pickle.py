"""The reader of plain pickles: what it reads, and what it must refuse without running it."""

from __future__ import annotations

import os
import pickle
import pickletools
import re
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from veridical.errors import CorruptFileError, UnsafePickleError
from veridical.predictions import safe_pickle
from veridical.predictions.safe_pickle import load_plain_pickle

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "file.pk"
    path.write_bytes(content)
    return path


def same(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return (
            type(left) is type(right) is np.ndarray
            and left.dtype == right.dtype
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
        )
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and type(left) is type(right):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reads_what_data_sets_hold(tmp_path: Path, protocol: int) -> None:
    value = {
        b"data": np.arange(12, dtype=np.uint8).reshape(3, 4),
        b"labels": [1, 0, 2],
        b"batch_label": b"training batch 1 of 5",
        "nested": [np.asfortranarray(np.eye(3)), (np.float32(2.5), np.arange(3, dtype=">i2"), None, True)],
        "text": np.array(["cat", "dog"]),
        "empty": b"",
        "buffer": b"\x00\xff",
    }
    assert same(load_plain_pickle(written(tmp_path, pickle.dumps(value, protocol=protocol))), value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_containers_of_other_kinds(tmp_path: Path, protocol: int) -> None:
    value = [OrderedDict(a=1), {1, 2}, frozenset([3])]
    assert load_plain_pickle(written(tmp_path, pickle.dumps(value, protocol=protocol))) == value


def test_python_2_strings(tmp_path: Path) -> None:
    # What Python 2 wrote for {'data': numpy.array([1, 2], 'uint8'), 'labels': [3]} with protocol 2.
    content = (
        b"\x80\x02}q\x00(U\x04dataq\x01cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85U\x01b"
        b"\x87Rq\x04(K\x01K\x02\x85cnumpy\ndtype\nq\x05U\x02u1K\x00K\x01\x87Rq\x06(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff"
        b"\xff\xff\xffK\x00tb\x89U\x02\x01\x02tbU\x06labelsq\x07]q\x08K\x03au."
    )
    as_bytes = load_plain_pickle(written(tmp_path, content))
    as_text = load_plain_pickle(written(tmp_path, content), encoding="latin1")
    assert as_bytes[b"labels"] == as_text["labels"] == [3]
    assert as_bytes[b"data"].tolist() == as_text["data"].tolist() == [1, 2]
    assert as_text["data"].dtype == np.uint8


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)
arrays = hnp.arrays(
    st.sampled_from(["u1", "<i8", ">i4", "<f2", "<f8", "c16", "?", "S3", "<U2"]),
    hnp.array_shapes(min_dims=0, min_side=0),
)


@given(value=plain | arrays | st.lists(arrays, max_size=3), protocol=st.sampled_from(list(PROTOCOLS)))
def test_values_come_back(tmp_path_factory: pytest.TempPathFactory, value: object, protocol: int) -> None:
    path = written(tmp_path_factory.mktemp("round"), pickle.dumps(value, protocol=protocol))
    assert same(load_plain_pickle(path), value)


class Hostile:
    """Pickles to a call of any function."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (os.system, ("touch {marker}",)),
        (exec, ("open('{marker}', 'w')",)),
        (eval, ("open('{marker}', 'w')",)),
        (open, ("{marker}", "w")),
        (getattr, (Path, "cwd")),
        (np.save, ("{marker}", [1])),
        (np.load, ("{marker}",)),
        (Fraction, (1, 2)),
        (range, (10,)),
        (type, ("Name", (), {})),
    ],
)
def test_pickle_that_calls_a_function_is_refused(
    tmp_path: Path, protocol: int, function: object, arguments: tuple[object, ...]
) -> None:
    marker = tmp_path / "marker.npy"
    filled = [text.format(marker=marker) if isinstance(text, str) else text for text in arguments]
    path = written(tmp_path, pickle.dumps([1, Hostile(function, *filled)], protocol=protocol))
    with pytest.raises(UnsafePickleError, match=r"file\.pk is refused: it names .*; a pickle can run programs"):
        load_plain_pickle(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    "array",
    [
        np.array([Fraction(1, 2), None], dtype=object),
        np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]),
        np.zeros(2, dtype="datetime64[s]"),
    ],
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_objects_are_refused(tmp_path: Path, array: np.ndarray, protocol: int) -> None:
    with pytest.raises(UnsafePickleError, match="is refused"):
        load_plain_pickle(written(tmp_path, pickle.dumps(array, protocol=protocol)))


def test_object_flag_of_a_number_type_is_ignored(tmp_path: Path) -> None:
    """A dtype's state may claim that eight-byte numbers are references; following them would crash the process."""
    honest = pickle.dumps(np.arange(4, dtype=np.int64), protocol=2)
    flags = b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t"
    assert honest.count(flags) == 1
    hostile = honest.replace(flags, flags[:-2] + b"\x3ft")
    loaded = load_plain_pickle(written(tmp_path, hostile))
    assert not loaded.dtype.hasobject
    assert loaded.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("state", [b"}", b"(}}t", b"N"])
@pytest.mark.parametrize("name", sorted(safe_pickle._ALLOWED))
def test_reader_cannot_be_changed(tmp_path: Path, name: tuple[str, str], state: bytes) -> None:
    module, function = name
    content = b"c" + module.encode() + b"\n" + function.encode() + b"\n" + state + b"b."
    assert [code.name for code, _, _ in pickletools.genops(content)][-2:] == ["BUILD", "STOP"]  # it is well formed
    with pytest.raises(UnsafePickleError, match="tries to change the reader"):
        load_plain_pickle(written(tmp_path, content))


def test_persistent_references_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsafePickleError, match="outside itself"):
        load_plain_pickle(written(tmp_path, b"Psomething\n."))


def test_bytes_of_a_number_are_refused(tmp_path: Path) -> None:
    content = b"cbuiltins\nbytes\n(I100000000000\ntR."
    with pytest.raises(UnsafePickleError, match="encodes something other than text"):
        load_plain_pickle(written(tmp_path, content))


CONTENT = pickle.dumps({b"data": np.arange(20, dtype=np.uint8), b"labels": [1, 2]}, protocol=2)
ONE_SENTENCE = r"file\.pk (is not a whole pickle|is refused)"


@given(cut=st.integers(0, len(CONTENT) - 1))
def test_truncated_files_end_in_one_sentence(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    with pytest.raises(CorruptFileError, match=ONE_SENTENCE):
        load_plain_pickle(written(tmp_path_factory.mktemp("cut"), CONTENT[:cut]))


@given(flip=st.integers(0, len(CONTENT) - 1), byte=st.integers(0, 255), cut=st.integers(1, len(CONTENT)))
def test_damaged_files_give_plain_values_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, flip: int, byte: int, cut: int
) -> None:
    """A changed byte can leave a whole pickle of other values, which no reader could notice."""
    content = bytearray(CONTENT)
    content[flip] = byte
    plain = (dict, list, tuple, set, int, float, str, bytes, np.ndarray, np.dtype, type(None))
    try:
        value = load_plain_pickle(written(tmp_path_factory.mktemp("flip"), bytes(content[:cut])))
        outcome = "plain" if isinstance(value, plain) else repr(value)
    except CorruptFileError as error:
        outcome = str(error)
    assert outcome == "plain" or re.search(ONE_SENTENCE, outcome)


def test_bytes_after_the_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match=r"it stops after 4 of 9 bytes"):
        load_plain_pickle(written(tmp_path, b"I1\n.I2\n.\n"))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match=r"nothing\.pk cannot be read"):
        load_plain_pickle(tmp_path / "nothing.pk")


@pytest.mark.parametrize("name", ["pipe", "/dev/zero"])
def test_special_files_are_not_read(tmp_path: Path, name: str) -> None:
    if name == "pipe":
        os.mkfifo(tmp_path / name)
    with pytest.raises(CorruptFileError, match="is not a regular file; give a pickle"):
        load_plain_pickle(tmp_path / name)


def test_buffers_are_bytes(tmp_path: Path) -> None:
    """NumPy makes arrays of lists of bytearrays, which may all be the same one."""
    assert load_plain_pickle(written(tmp_path, pickle.dumps([bytearray(b"ab")], protocol=5))) == [b"ab"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_numbers_and_text_are_keys(tmp_path: Path, protocol: int) -> None:
    value = {None: 0, True: 1, 2**63: 2, 0.5: 3, "a" * 4096: 4, b"a": 5, np.int64(7): 6, np.float32(0.25): 7}
    value[np.str_("b")] = 8
    assert load_plain_pickle(written(tmp_path, pickle.dumps(value, protocol=protocol))) == value


def test_container_within_itself_is_refused(tmp_path: Path) -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(CorruptFileError, match="a container holds itself"):
        load_plain_pickle(written(tmp_path, pickle.dumps(endless)))


def nested_lists(depth: int) -> bytes:
    """[[...], the same list again], ``depth`` times: a few bytes for 2 ** depth values."""
    content = b"]q\x00"
    for level in range(depth):
        content += b"](h" + bytes([level]) + b"h" + bytes([level]) + b"eq" + bytes([level + 1])
    return content + b"."


def again_and_again(made: bytes, again: bytes, times: int) -> bytes:
    """A value under number 0, and ``times`` calls that make another of it, all in one tuple."""
    return b"(" + made + b"q\x000" + again * times + b"t."


HALF_A_MEGABYTE = b"X" + (500_000).to_bytes(4, "little") + b"a" * 500_000
BYTES = b"B" + HALF_A_MEGABYTE[1:]
LONG_LIST = b"](" + b"N" * 100_000 + b"e"
ARRAY_OF_BYTES = (
    b"cnumpy._core.numeric\n_frombuffer\n(h\x00cnumpy\ndtype\n(X\x02\x00\x00\x00u1tR"
    b"J\x20\xa1\x07\x00\x85X\x01\x00\x00\x00CtR"
)


def text(characters: bytes) -> bytes:
    return b"X" + len(characters).to_bytes(4, "little") + characters


def dtype(code: bytes) -> bytes:
    return b"cnumpy\ndtype\n(" + text(code) + b"tR"


def keys(numbers: Iterable[bytes]) -> bytes:
    return b"}(" + b"".join(number + b"N" for number in numbers) + b"u."


SCALAR = b"cnumpy._core.multiarray\nscalar\n(" + dtype(b"S500000") + b"h\x00tR"
LONG_KEYS = keys([text(b"a" * 5000)])
#: Multiples of 2**61 - 1, whose hash is 0.
SAME_HASH = keys(b"\x8a\x0a" + ((2**61 - 1) * n).to_bytes(10, "little") for n in range(1, 50_000))
COMPLEX = b"cnumpy._core.multiarray\nscalar\n(" + dtype(b"c16") + b"C\x10"
COMPLEX_KEYS = keys(COMPLEX + np.complex128(-1000003 * n + n * 1j).tobytes() + b"tR" for n in range(9))
LONG_DICT = b"}(" + b"".join(b"J" + n.to_bytes(4, "little") + b"N" for n in range(50_000)) + b"u"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x80\x02Kxr\xff\xff\xff\x7f.", "it numbers a value 2,147,483,647, and is 10 bytes long"),
        (b"I1\np99999999999\n.", "it numbers a value 99,999,999,999"),
        (nested_lists(40), "hold the same values again and again"),
        (b"\x80\x05\x96" + b"\xff" * 7 + b"\x00ab.", "bytearray8"),
        (again_and_again(HALF_A_MEGABYTE, b"c_codecs\nencode\n(h\x00tR", 1000), "than a file of its length holds"),
        (again_and_again(BYTES, ARRAY_OF_BYTES, 1000), "than a file of its length holds"),
        (again_and_again(LONG_LIST, b"cbuiltins\nlist\n(h\x00tR", 100_000), "than a file of its length holds"),
        (again_and_again(LONG_LIST, b"h\x00", 100_000), "hold the same values again and again"),
        (again_and_again(BYTES, SCALAR, 1000), "than a file of its length holds"),
        (again_and_again(BYTES, ARRAY_OF_BYTES + b"q\x00", 1)[:-2] + b"cbuiltins\nlist\n(h\x00tRt.", "not a container"),
        (again_and_again(LONG_DICT, b"cbuiltins\ndict\n(h\x00tR", 1000), "than a file of its length holds"),
        (b"\x8b" + BYTES[1:] + b".", "an integer of 3,999,999 bits"),
        (dtype(b"U" + b"0" * 500_000 + b"1") + b".", "an array of records or objects"),
        (dtype(b"u2") + b"(K\x03" + text(b"<" * 500_000) + b"tb.", "an array of records or objects"),
        (LONG_KEYS, "a key of type str, and only text of at most 4,096 characters"),
        (SAME_HASH, "a key of type int, and only .* numbers of at most 64 bits"),
        (COMPLEX_KEYS, "a key of type complex128"),
        (BYTES + b"q\x000" + ARRAY_OF_BYTES + b"NK\x01s" * 1000 + b".", "does not support item assignment"),
    ],
    ids=[
        *("memo", "memo as text", "nested", "bytearray", "encode", "arrays", "copies", "shared"),
        *("scalars", "views", "dictionaries", "long integer", "long dtype", "long byte order"),
        *("long key", "same hash", "complex key", "writing"),
    ],
)
def test_short_pickles_take_little_memory_and_time(tmp_path: Path, content: bytes, message: str) -> None:
    """In a process that may have only so much of both."""
    path = written(tmp_path, content)
    program = (
        "import resource, sys\n"
        "from veridical.errors import CorruptFileError\n"
        "from veridical.predictions.safe_pickle import load_plain_pickle\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: load_plain_pickle(sys.argv[1])\n"
        "except CorruptFileError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    sentence, kilobytes = done.stdout.splitlines()
    assert re.search(message, sentence)
    assert int(kilobytes) * 1024 < 130 * len(content) + (20 << 20)


def test_shared_values_are_read_once(tmp_path: Path) -> None:
    row, array = [1, 2], np.arange(3)
    value = load_plain_pickle(written(tmp_path, pickle.dumps([row, row, array, array])))
    assert value[0] is value[1]
    assert value[2] is value[3]
    value[2][0] = 9
    assert value[3].tolist() == [9, 1, 2]


@pytest.mark.parametrize("depth", [50, 100_000])
def test_deep_nesting_is_read_or_refused(tmp_path: Path, depth: int) -> None:
    path = written(tmp_path, b"]" * depth + b"a" * (depth - 1) + b".")
    if depth == 50:
        assert str(load_plain_pickle(path)) == "[" * depth + "]" * depth
    else:
        with pytest.raises(CorruptFileError, match="is not a whole pickle"):
            load_plain_pickle(path)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_transposed_arrays_are_read(tmp_path, protocol):
    whole = np.arange(24).reshape(2, 3, 4)
    arrays = [whole, whole.T, whole.transpose(1, 0, 2), whole[::-1, 1:]]
    (tmp_path / "arrays.pk").write_bytes(pickle.dumps(arrays, protocol))
    for read, array in zip(load_plain_pickle(tmp_path / "arrays.pk"), arrays, strict=True):
        np.testing.assert_array_equal(read, array)
