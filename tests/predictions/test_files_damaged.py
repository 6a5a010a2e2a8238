"""Damaged, hostile and misnamed files: one clear error each, nothing run, nothing allocated for empty claims."""

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import zarr
from conftest import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import veridical as vd
from veridical import errors
from veridical.predictions.files.file_checks import reading
from veridical.predictions.files.formats import read_labels, suffixes_with

CLASSES = ["cat", "dog", "owl"]


def ensemble(n_samples=6):
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(2, n_samples, 3)).astype(np.float32)
    labels = rng.integers(0, 3, n_samples)
    return vd.Predictions(logits, labels, kind="logits", source_names=["a", "b"], class_names=CLASSES)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One good file of each format that is a single file, small enough for damage to hit what matters."""
    folder = tmp_path_factory.mktemp("whole")
    predictions = ensemble()
    for suffix in (".npz", ".csv", ".parquet"):
        vd.save(predictions, folder / f"good{suffix}")
    np.save(folder / "good.npy", predictions.values)
    np.savez_compressed(folder / "packed.npz", logits=predictions.values, labels=predictions.labels)
    np.savez(folder / "plain.npz", logits=predictions.values, labels=predictions.labels)
    torch.save(
        {"logits": torch.from_numpy(predictions.values), "labels": torch.arange(3)[[0, 1, 2] * 2]}, folder / "good.pt"
    )
    return folder


#: pyarrow can end the process, and zarr take much memory, where bytes of their files contradict each other.
FILES = ["good.npz", "packed.npz", "plain.npz", "good.npy", "good.csv", "good.pt"]


@st.composite
def damages(draw):
    """What may happen to bytes: a cut, some changed, some put in."""
    return (
        draw(st.one_of(st.none(), st.floats(0, 1))),
        draw(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=4)),
        draw(st.one_of(st.none(), st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)))),
    )


def damage(content, how):
    cut, flips, extra = how
    content = bytearray(content if cut is None else content[: int(len(content) * cut)])
    for place, change in flips:
        if content:
            content[int(len(content) * place)] ^= change
    if extra is not None:
        place = int(len(content) * extra[0])
        content[place:place] = extra[1]
    return bytes(content)


def outcome(read, path, **options):
    """What a reader gives, or what it says; exceptions that are not ours are failures."""
    try:
        return read(path, **options), ""
    except errors.VeridicalError as error:
        return None, str(error)


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(how=damages())
def test_load_of_damaged_file_gives_predictions_or_one_error(whole, tmp_path, name, how):
    path = tmp_path / name
    path.write_bytes(damage((whole / name).read_bytes(), how))
    loaded, message = outcome(vd.load, path, kind="logits")
    if loaded is None:
        assert str(path) in message
        assert "\n" not in message
    else:
        assert np.asarray(loaded.values).copy().nbytes <= 64 * path.stat().st_size


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".txt", ".csv", ".json", ".pt", ".bin"])
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(how=damages())
def test_read_labels_of_damaged_file_gives_labels_or_one_error(tmp_path, suffix, how):
    path, good = tmp_path / f"damaged{suffix}", tmp_path / f"good{suffix}"
    if not good.exists():
        write_labels(np.arange(9) % 3, good)
        np.testing.assert_array_equal(read_labels(good).astype(np.int64), np.arange(9) % 3)
    path.write_bytes(damage(good.read_bytes(), how))
    labels, message = outcome(read_labels, path)
    assert str(path) in message if labels is None else labels.ndim == 1


def write_labels(labels, path):
    listed = labels.tolist()
    if path.suffix == ".npy":
        np.save(path, labels)
    elif path.suffix == ".npz":
        np.savez(path, labels=labels)
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({"label": listed}), path)
    elif path.suffix == ".pt":
        torch.save(torch.from_numpy(labels), path)
    elif path.suffix == ".bin":  # CIFAR-10's records: a label byte, then the pixels
        path.write_bytes(b"".join(bytes([label]) + bytes(3 * 32 * 32) for label in listed))
    elif path.suffix == ".json":
        path.write_text(json.dumps(listed))
    else:
        path.write_text("\n".join([*["label"] * (path.suffix == ".csv"), *map(str, listed)]) + "\n")


@pytest.mark.parametrize("suffix", suffixes_with("read"))
def test_load_rejects_missing_file(tmp_path, suffix):
    with pytest.raises(errors.FileFormatError, match=r"nothing\.[a-z]+ does not exist; check the name"):
        vd.load(tmp_path / f"nothing{suffix}")


@pytest.mark.parametrize("suffix", [suffix for suffix in suffixes_with("read") if suffix != ".zarr"])
def test_load_rejects_empty_file(tmp_path, suffix):
    path = tmp_path / f"empty{suffix}"
    path.touch()
    with pytest.raises(errors.FileFormatError, match=r"empty.* is empty; write it again"):
        vd.load(path)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet", ".pt"])
def test_load_names_the_format_of_misnamed_file(whole, tmp_path, suffix):
    other = "good.parquet" if suffix != ".parquet" else "good.npy"
    path = tmp_path / f"misnamed{suffix}"
    shutil.copy(whole / other, path)
    with pytest.raises(errors.CorruptFileError, match=rf"it looks like a \{other[4:]} "):
        vd.load(path)


def test_load_lists_formats_for_unknown_suffix(tmp_path):
    path = tmp_path / "predictions.xyz"
    path.write_text("0.5")
    with pytest.raises(errors.FileFormatError, match=r"suffix '\.xyz'; predictions come as \.npz, \.npy, \.csv"):
        vd.load(path)
    with pytest.raises(errors.FileFormatError, match=r"suffix '\.pt'; predictions are written as \.npz"):
        vd.save(ensemble(), tmp_path / "predictions.pt")


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".txt", ".json"])
def test_load_rejects_pipes(tmp_path, suffix):
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    with pytest.raises(errors.FileFormatError, match="is not a regular file"):
        read_labels(path) if suffix in (".txt", ".json") else vd.load(path)


def test_load_rejects_unreadable_file(tmp_path):
    path = tmp_path / "secret.npy"
    np.save(path, np.zeros((1, 2, 2)))
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(errors.FileFormatError, match="check its permissions"):
        vd.load(path)


def npy(shape, descr="'<f4'", content=b"", order="False", version=1):
    """A .npy image with any claim in its header."""
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return (
        b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + content
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("(1000000000, 1000000, 1000)"), "shape .* and contains 0 bytes"),
        (npy("(2, 3, 4)", content=bytes(95)), r"96 bytes, and contains 95 bytes"),
        (npy("(2, 3, 4)", content=bytes(97)), r"96 bytes, and contains 97 bytes"),
        (npy("(0, 99999999999999999999999999, 4)"), "cannot be read as a .npy array"),
        (npy("(2, 3" + "," * 20_000 + ")"), "claims a header of"),
        (b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + bytes(50), "claims a header of 4,294,967,295 bytes"),
        (b"\x93NUMPY\x01\x00", "is truncated"),
        (b"\x93NU", "is truncated"),
        (npy("(2, 3)", version=9), "not a .npy array"),
        (npy("(2, 3)", descr="'<f4', 'descr': [('a', '<f4')]"), "records"),
        (npy("(2, 3)", descr="[('a', '<f4')]"), "records with named fields"),
        (npy("(2, 3)", descr="'|V2'", content=bytes(12)), "has dtype .V2; save real numbers"),
        (npy("(2, 3)", descr="'<U0'"), "has dtype"),
        (npy("(2, 3, 2)", descr="'<c8'", content=bytes(96)), "has dtype complex64; give real numbers"),
        (npy("(2, 3)", descr="'<M9[s]'"), "cannot be parsed"),
        (npy("__import__('os').system('false')"), "without dtype, order or shape"),
    ],
)
def test_npy_header_is_checked(tmp_path, content, message):
    path = tmp_path / "claims.npy"
    path.write_bytes(content)
    with pytest.raises(errors.InvalidInputError, match=message) as caught:
        vd.load(path)
    assert str(path) in str(caught.value)


def test_npy_headers_of_other_writers_are_read(tmp_path):
    numbers = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    path = tmp_path / "python2.npy"
    path.write_bytes(npy("(2L, 3L, 2L)", content=numbers.tobytes()))
    np.testing.assert_array_equal(vd.load(path).values, numbers)
    path.write_bytes(npy("(2, 3, 2)", content=numbers.tobytes(), version=2))
    np.testing.assert_array_equal(vd.load(path).values, numbers)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_npz_rejects_arrays_larger_than_the_file(tmp_path, method):
    path = tmp_path / "claims.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("logits.npy", npy("(1000000000, 1000000, 1000)", content=bytes(1000)))
    with pytest.raises(errors.CorruptFileError, match=r"and contains|unusual way"):
        vd.load(path)


def test_npz_rejects_wrong_directory(tmp_path):
    path = tmp_path / "lies.npz"
    np.savez_compressed(path, logits=np.zeros((2, 3, 4), np.float32))
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = struct.pack("<I", 2**32 - 2)
    path.write_bytes(content)
    with pytest.raises(errors.CorruptFileError, match=r"and contains"):
        vd.load(path)


def test_npz_checksum_is_compared(tmp_path):
    path = tmp_path / "changed.npz"
    np.savez_compressed(path, logits=np.random.default_rng(0).normal(size=(2, 300, 4)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(errors.CorruptFileError, match=r"cannot be read as a .npz archive"):
        vd.load(path)


class Trap:
    """Leaves a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("name", ["p.npy", "p.npz", "p.pkl", "p.pickle", "p.joblib", "p.pt", "p.zarr"])
def test_pickles_are_refused_and_not_run(tmp_path, name):
    path, sprung = tmp_path / name, tmp_path / "sprung"
    trap = np.array([Trap(sprung), Trap(sprung)], dtype=object)
    if name == "p.npy":
        np.save(path, trap, allow_pickle=True)
    elif name == "p.npz":
        np.savez(path, logits=trap)
    elif name == "p.pt":
        torch.save([Trap(sprung)], path)
    elif name == "p.zarr":
        group = zarr.open_group(str(path), mode="w", zarr_format=2)
        group.create_array("logits", shape=(2, 3, 2), dtype="float32", compressors=None)
        metadata = json.loads((path / "logits" / ".zarray").read_text())
        metadata["filters"] = [{"id": "pickle", "protocol": 5}]
        (path / "logits" / ".zarray").write_text(json.dumps(metadata))
        (path / "logits" / "0.0.0").write_bytes(pickle.dumps(Trap(sprung)))
    else:
        path.write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(errors.FileFormatError, match=r"run programs.*(convert it|write it again)"):
        vd.load(path)
    assert not sprung.exists()


@pytest.mark.parametrize("name", ["labels.pkl", "labels.pk", "labels.pickle", "test_batch"])
def test_pickled_labels_are_refused_and_not_run(tmp_path, name):
    path, sprung = tmp_path / name, tmp_path / "sprung"
    path.write_bytes(pickle.dumps([0, Trap(sprung)]))
    with pytest.raises(errors.UnsafePickleError, match=r"never|not one of CIFAR's .*numpy\.save\('labels\.npy'"):
        vd.load(vd.save(ensemble(2), tmp_path / "p.npz"), labels=path)
    assert not sprung.exists()


def test_load_checks_claims_before_allocating(tmp_path):
    """In a process that may not have the memory that the files claim."""
    (tmp_path / "a.npy").write_bytes(npy("(100000, 100000, 100)", content=bytes(4000)))
    group = zarr.open_group(str(tmp_path / "b.zarr"), mode="w")
    group.create_array("probs", shape=(100_000, 100_000, 100), chunks=(1, 100_000, 100), dtype="float32")
    with (tmp_path / "c.csv").open("w") as file:
        file.write("sample,source,x,y\n" + "".join(f"{n},s{n},0.5,0.5\n" for n in range(30_000)))
    program = (
        "import resource, sys, veridical as vd, zarr, numpy\n"
        "from veridical.errors import FileFormatError\n"
        "import veridical.predictions.files\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({12 << 30}, {12 << 30}))\n"
        "for path in sys.argv[1:]:\n"
        "    try: vd.load(path)\n"
        "    except FileFormatError as error: print(error)\n"
    )
    paths = [str(tmp_path / name) for name in ("a.npy", "b.zarr", "c.csv")]
    done = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True, check=True)
    messages = done.stdout.splitlines()
    assert len(messages) == 3
    assert "and contains" in messages[0]
    assert "far more than its" in messages[1]
    assert "under 1% of all pairs" in messages[2]


def test_load_rejects_impossible_paths(tmp_path):
    with pytest.raises(errors.ParameterError, match="has a part of 5,004 bytes; file names have at most 255"):
        vd.load(tmp_path / ("x" * 5000 + ".npy"))
    with pytest.raises(errors.ParameterError, match="is not a file name"):
        vd.load("nul\0.npy")
    with pytest.raises(errors.ParameterError, match=r"path is a ndarray; .* veridical\.Predictions of an array"):
        vd.load(np.zeros((1, 2, 3)))


def test_reading_reports_lack_of_memory(tmp_path):
    with (
        pytest.raises(errors.FileFormatError, match="does not fit into memory"),
        reading(tmp_path / "large.csv", "a .csv table"),
    ):
        np.empty(1 << 62, np.uint8)


@pytest.mark.parametrize(("name", "suffix"), [("good.npz", ".npz"), ("good.pt", ".pt")])
def test_truncated_archive_is_recognised(whole, tmp_path, name, suffix):
    content = (whole / name).read_bytes()
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(content[: len(content) // 2])
    message = rf"cut\{suffix} begins as a \{suffix} and is truncated; write it again"
    with pytest.raises(errors.CorruptFileError, match=message):
        vd.load(path)


def test_other_file_named_as_archive_is_recognised(tmp_path):
    (tmp_path / "other.npz").write_bytes(b"PAR1" + bytes(50))
    with pytest.raises(errors.CorruptFileError, match=r"is not a \.npz archive; it looks like a \.parquet table"):
        vd.load(tmp_path / "other.npz")
    (tmp_path / "other.pt").write_bytes(b"PAR1" + bytes(50))
    with pytest.raises(errors.CorruptFileError, match=r"is not a \.pt file of tensors .*; it looks like a \.parquet"):
        vd.load(tmp_path / "other.pt")


def test_parquet_statistics_that_contradict_the_schema_do_not_end_the_process(tmp_path):
    """pyarrow 26 calls abort() when it is asked for the metadata of such a column."""
    path = tmp_path / "probs.parquet"
    pq.write_table(pa.table({"cat": [0.5, 0.25], "dog": [0.5, 0.75]}), path)
    good = path.read_bytes()
    # A column that may have nulls becomes one that may not: fewer levels than its statistics count.
    bad = good.replace(b"\x25\x02\x18\x03cat", b"\x25\x00\x18\x03cat")
    assert bad != good
    path.write_bytes(bad)
    program = """
import sys, veridical as vd
try:
    vd.load(sys.argv[1])
except vd.errors.FileFormatError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


def test_too_many_labels_are_refused_with_the_shape_of_the_scores(tmp_path):
    np.savez(tmp_path / "p.npz", probs=np.full((1, 2, 2), 0.5), labels=np.zeros(1000, int))
    with pytest.raises(errors.ShapeError, match=r"has shape \(1000,\), and the scores have shape \(1, 2, 2\); save"):
        vd.load(tmp_path / "p.npz")
