"""Small files that claim or unpack to much: refused before memory is taken, with one sentence."""

import collections
import json
import resource
import time
import zipfile

import numcodecs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import zarr
from programs import in_new_process
from test_files_damaged import npy

import veridical as vd
from veridical import errors
from veridical.predictions.files import file_checks
from veridical.predictions.files.format_npz import NpzArrays

LARGE = 1 << 27
#: What a small file may claim here: less than users are allowed, so that the files of these tests are small.
ALLOWED = 64 << 20
#: How much more a process may take than before, whatever the file claims.
MOST = 124 << 20


def load_and_measure(path, warm, out):
    """Write the sentence of the error, and how much the memory of this process grew."""
    file_checks._ALWAYS_ALLOWED = ALLOWED
    vd.load(warm)  # imports what the format needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    message = ""
    try:
        vd.load(path)
    except errors.VeridicalError as error:
        message = str(error)
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    out.write_text(json.dumps([message, growth]))


@pytest.fixture(autouse=True)
def small_claims(monkeypatch):
    monkeypatch.setattr("veridical.predictions.files.file_checks._ALWAYS_ALLOWED", ALLOWED)


def assert_refused(path, message):
    """One sentence, and little memory."""
    warm = path.parent / f"warm{path.suffix}"
    if path.suffix == ".pt":
        torch.save(torch.full((1, 2, 2), 0.5), warm)
    else:
        vd.save(vd.Predictions(np.full((1, 2, 2), 0.5)), warm)
    out = path.parent / "measured.json"
    assert in_new_process(load_and_measure, path, warm, out) == 0
    sentence, growth = json.loads(out.read_text())
    assert message in sentence
    assert growth < MOST, f"{growth >> 20} MB"


@pytest.mark.parametrize("column", ["x", "source"])
def test_parquet_text_that_is_stored_once_is_held_once(tmp_path, column):
    """50,000 times the same text of 90,000 characters, stored once."""
    path = tmp_path / "p.parquet"
    n = 50_000
    columns = {"sample": np.arange(n), "source": pa.array(["s"] * n), "x": np.full(n, 0.5), "y": np.full(n, 0.5)}
    columns[column] = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["a" * 90_000]))
    pq.write_table(pa.table(columns), path, store_schema=False)
    if column == "x":
        assert_refused(path, "column 'x' of")
    else:
        assert vd.load(path).source_names == ("a" * 90_000,)


@pytest.mark.parametrize("compression", ["zstd", "gzip", "snappy"])
def test_parquet_of_constant_columns(tmp_path, compression):
    path = tmp_path / "p.parquet"
    constant = pa.array(np.zeros(20_000_000, np.float32))
    schema = pa.schema([("x", pa.float32()), ("y", pa.float32())])
    with pq.ParquetWriter(path, schema, compression=compression) as writer:
        writer.write_table(pa.table([constant, constant], schema=schema), row_group_size=20_000_000)
    assert path.stat().st_size < 1 << 20
    assert_refused(path, "far more than its")


def test_parquet_page_sizes_are_checked(tmp_path):
    """A page of 128 MB of zeros, while the table of contents states a few bytes."""
    path = tmp_path / "p.parquet"
    values = pa.array([b"\0" * (1 << 25)] * 4)
    table = pa.table({"label": values.cast(pa.string()), "x": np.zeros(4), "y": np.zeros(4)})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    assert path.stat().st_size < 1 << 20
    assert_refused(path, "far more than its")


@pytest.mark.parametrize("column", ["sample", "group", "label"])
def test_parquet_texts_count_as_objects(tmp_path, column):
    """A million ids take 14 kB as differences, and 300 MB as texts."""
    path, n = tmp_path / "p.parquet", 1_000_000
    table = pa.table({column: np.arange(n), "x": np.zeros(n, np.float32), "y": np.ones(n, np.float32)})
    pq.write_table(
        table, path, compression="zstd", use_dictionary=["x", "y"], column_encoding={column: "DELTA_BINARY_PACKED"}
    )
    assert path.stat().st_size < 20_000
    assert_refused(path, "claims 17")
    with pytest.raises(vd.errors.CorruptFileError, match="far more than its"):
        vd.load_votes(path)


@pytest.mark.parametrize("name", ["labels", "class_names", "source_names"])
def test_npz_with_too_many_labels_or_names(tmp_path, name):
    path = tmp_path / "p.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("probs.npy", npy("(1, 2, 2)", "'<f4'", np.full(4, 0.5, "<f4").tobytes()))
        archive.writestr(f"{name}.npy", npy(f"({LARGE // 8},)", "'<i8'", bytes(LARGE)))
    assert_refused(path, f"(array {name}) has shape (16777216,)")


def test_npz_with_long_names(tmp_path):
    path = tmp_path / "p.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("probs.npy", npy("(1, 2, 2)", "'<f4'", np.full(4, 0.5, "<f4").tobytes()))
        archive.writestr("class_names.npy", npy("(2,)", f"'|S{LARGE // 150}'", bytes(LARGE // 150 * 2)))
    assert_refused(path, "entries of 894,784 bytes")


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_npz_packed_without_limit_is_refused_when_opened(tmp_path, packing):
    """Before a header is read: 4 kB of such an archive can be gigabytes."""
    path = tmp_path / "p.npz"
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr("probs.npy", npy("(1, 2, 2)", "'<f4'", np.full(4, 0.5, "<f4").tobytes()))
    message = r"array probs\) is encrypted or packed in an unusual way"
    with pytest.raises(vd.errors.CorruptFileError, match=message), NpzArrays(path):
        pass


@pytest.mark.parametrize("name", ["labels", "groups", "sample_ids"])
def test_npz_texts_count_as_what_they_become(tmp_path, name):
    """60 MB of bytes, 300 MB as text."""
    path, n = tmp_path / "p.npz", 250_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("probs.npy", npy(f"(1, {n}, 2)", "'|u1'", b"\0\1" * n))
        archive.writestr(f"{name}.npy", npy(f"({n},)", "'|S240'", b"a" * 240 + bytes(240 * (n - 1))))
    assert_refused(path, "claims 332,500,000 bytes")


def test_npz_many_ids_count_as_objects(tmp_path):
    path, n = tmp_path / "p.npz", 4_000_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("probs.npy", npy(f"(1, {n}, 2)", "'|u1'", b"\0\1" * n))
        archive.writestr("groups.npy", npy(f"({n},)", "'|S4'", b"abcd" * n))
    assert_refused(path, "far more than its")


def write_store(path, codec, content, *, version=3, shape=(1, 2, 2), chunk=(1, 2, 2), shards=None):
    """A store of float32 whose every chunk file is ``content``."""
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    options = {"shards": shards} if shards else {}
    array = group.create_array("probs", shape=shape, chunks=chunk, dtype="float32", compressors=codec, **options)
    array[...] = 0.5
    for file in (path / "probs").rglob("*"):
        if file.is_file() and not file.name.startswith((".z", "zarr")) and content is not None:
            file.write_bytes(content)


ZEROS = bytes(LARGE)


def test_zarr_chunk_shape_is_checked(tmp_path):
    """The metadata claim chunks of half a gigabyte, and the array is small."""
    path = tmp_path / "p.zarr"
    write_store(path, zarr.codecs.ZstdCodec(), numcodecs.Zstd().encode(ZEROS))
    metadata = json.loads((path / "probs" / "zarr.json").read_text())
    metadata["chunk_grid"]["configuration"]["chunk_shape"] = [1, LARGE // 8, 2]
    (path / "probs" / "zarr.json").write_text(json.dumps(metadata))
    assert_refused(path, "far more than its")
    with pytest.raises(vd.errors.CorruptFileError, match="far more than its"):
        vd.scale.open(path)


@pytest.mark.parametrize("shards", [None, (1, 100_000, 20)])
def test_zarr_chunks_are_counted(tmp_path, shards):
    """Each takes a tenth of a millisecond and 2 kB, stored or not."""
    path = tmp_path / "p.zarr"
    write_store(path, None, None, shards=(1, 2, 2) if shards else None, chunk=(1, 1, 1))
    metadata = json.loads((path / "probs" / "zarr.json").read_text())
    metadata["shape"] = [1, 100_000, 20]
    if shards:
        metadata["chunk_grid"]["configuration"]["chunk_shape"] = shards
        (path / "probs" / "c" / "0" / "0" / "0").write_bytes(b"\xff" * 32_000_004)
    (path / "probs" / "zarr.json").write_text(json.dumps(metadata))
    assert_refused(path, "2,000,000 chunks of shape (1, 1, 1) to read at once" if shards else "far more than its")
    with pytest.raises(vd.errors.FileFormatError):
        vd.scale.open(path).read(0, 100_000)


@pytest.mark.parametrize("options", [{"dtype": "<U100000"}, {"encode_dtype": "S100000", "decode_dtype": "<f4"}])
def test_zarr_filters_compute_with_numbers(tmp_path, options):
    path = tmp_path / "p.zarr"
    write_store(path, None, None, version=2)
    metadata = json.loads((path / "probs" / ".zarray").read_text())
    metadata["filters"] = [{"id": "delta" if "dtype" in options else "astype", **options}]
    (path / "probs" / ".zarray").write_text(json.dumps(metadata))
    assert_refused(path, "write numbers")


@pytest.mark.parametrize("codec", ["zstd", "gzip", "blosc", None])
@pytest.mark.parametrize("version", [2, 3])
def test_zarr_codecs_that_are_read(tmp_path, codec, version):
    values = np.random.default_rng(0).dirichlet(np.ones(3), (2, 500)).astype(np.float32)
    if version == 2:
        compressor = {"zstd": numcodecs.Zstd(), "gzip": numcodecs.GZip(), "blosc": numcodecs.Blosc(), None: None}[codec]
    else:
        codecs = zarr.codecs
        compressor = {
            "zstd": codecs.ZstdCodec(), "gzip": codecs.GzipCodec(), "blosc": codecs.BloscCodec(), None: None
        }[codec]  # fmt: skip
    group = zarr.open_group(str(tmp_path / "p.zarr"), mode="w", zarr_format=version)
    array = group.create_array("probs", shape=values.shape, chunks=(1, 120, 3), dtype="float32", compressors=compressor)
    array[...] = values
    np.testing.assert_array_equal(vd.load(tmp_path / "p.zarr").values, values)


@pytest.mark.parametrize("content", ["stride 0", "many tensors", "shared lists"])
def test_pt_that_claims_much(tmp_path, content):
    path = tmp_path / "p.pt"
    if content == "stride 0":
        torch.save(torch.zeros(1).expand(10_000, 10_000, 2_000), path)
        message = "claims 800,000,000,000 bytes of content"
    elif content == "many tensors":
        half = torch.zeros(1, dtype=torch.bfloat16).expand(1000, 10_000)  # copied when it becomes float32
        torch.save([half] * 1000, path)
        message = "far more than its"
    else:
        shared = [0]
        for _ in range(60):
            shared = [shared, shared]
        torch.save({"probs": torch.full((1, 2, 2), 0.5), "class_names": shared}, path)
        message = "holds more than 1,000,000 values"
    assert_refused(path, message)


def test_pt_compressed_is_refused(tmp_path):
    torch.save(torch.full((1, 2, 2), 0.5), tmp_path / "stored.pt")
    with (
        zipfile.ZipFile(tmp_path / "stored.pt") as stored,
        zipfile.ZipFile(tmp_path / "p.pt", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in stored.namelist():
            packed.writestr(name, stored.read(name))
    with pytest.raises(vd.errors.FileFormatError, match="is compressed, which"):
        vd.load(tmp_path / "p.pt")


def test_pt_of_parameters_and_ordered_dictionaries_is_read(tmp_path):
    logits = torch.randn(2, 3, 4, dtype=torch.bfloat16)
    entries = {"logits": torch.nn.Parameter(logits), "class_names": list("abcd"), "epoch": 3, "rate": 0.1, "on": True}
    torch.save(collections.OrderedDict(entries, big=1 << 70, nothing=None, shape=(2, 3)), tmp_path / "p.pt")
    loaded = vd.load(tmp_path / "p.pt")
    np.testing.assert_array_equal(loaded.values, logits.float().numpy())
    assert loaded.class_names == ("a", "b", "c", "d")


def test_csv_of_few_pairs_in_many_columns(tmp_path):
    path = tmp_path / "p.csv"
    n, classes = 1000, 500
    rows = "".join(f"{i},s{i}" + ",0" * classes + "\n" for i in range(n))
    path.write_text("sample,source," + ",".join(f"c{l}" for l in range(classes)) + "\n" + rows)
    assert_refused(path, "under 1% of all pairs")


def test_csv_header_of_many_columns_is_read_in_time(tmp_path):
    """40,000 columns took 15 seconds when each name was compared with all before."""
    path = tmp_path / "wide.csv"
    names = [f"c{l}" for l in range(200_000)]
    path.write_text(",".join(names) + "\n" + ",".join(["0.5"] * len(names)) + "\n")
    started = time.process_time()
    assert vd.load(path, kind="logits").n_classes == 200_000
    assert time.process_time() - started < 30


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "none"},
        {"compression": "gzip", "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0", "write_page_index": True},
        {"compression": "snappy", "write_statistics": False, "write_page_checksum": True},
        {"compression": "lz4", "data_page_size": 64, "dictionary_pagesize_limit": 64},
        {"use_byte_stream_split": ["x", "y"], "use_dictionary": ["source"], "store_schema": False},
    ],
    ids=lambda options: "-".join(options),
)
def test_parquet_of_other_writers_is_read(tmp_path, options):
    rng = np.random.default_rng(0)
    x = rng.random(3000)
    table = pa.table(
        {
            "sample": np.tile(np.arange(1000), 3),
            "source": pa.array(np.repeat(["a", "b", "c"], 1000)),
            "label": pa.array([["x", "y"][n % 2] for n in range(1000)] * 3),
            "x": x,
            "y": 1 - x,
        }
    )
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=700, **options)
    loaded = vd.load(tmp_path / "p.parquet")
    np.testing.assert_array_equal(loaded.values, np.stack([x, 1 - x], -1).reshape(3, 1000, 2))
    assert loaded.source_names == ("a", "b", "c")
    assert loaded.labels.tolist() == [0, 1] * 500
