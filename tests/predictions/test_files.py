"""Loading and saving predictions: what comes back is what went in."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import zarr
from conftest import examples
from ensembles import DTYPES, random_ensemble
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import veridical as vd
from veridical import errors
from veridical.predictions.classes import ClassIndices, is_class_column
from veridical.predictions.files.format_torch import load_tensors
from veridical.predictions.files.formats import FORMATS
from veridical.predictions.validation import KINDS

WRITTEN = [suffix for suffix, known in FORMATS.items() if known.write]
COMPLETE = [suffix for suffix in WRITTEN if suffix != ".npy"]

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r\n"), min_size=1, max_size=6).filter(
    lambda name: name.strip() == name and is_class_column(name)
)


def assert_same(loaded, predictions):
    np.testing.assert_array_equal(loaded.values, predictions.values)
    assert loaded.dtype == predictions.dtype
    assert loaded.kind == predictions.kind
    assert loaded.source_names == predictions.source_names
    assert loaded.class_names == predictions.class_names
    assert (loaded.labels is None) == (predictions.labels is None)
    if predictions.labels is not None:
        np.testing.assert_array_equal(loaded.labels, predictions.labels)


@pytest.fixture
def predictions(rng):
    labels = rng.integers(0, 4, 20)
    return vd.Predictions(
        random_ensemble(rng, dtype=np.float32), labels, source_names=list("vwxyz"), class_names=["a", "b", "c", "d"]
    )


@pytest.mark.parametrize("suffix", COMPLETE)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_round_trip(tmp_path, suffix, data):
    """Any numbers, NaN rows and infinities included, any names, labelled or not, stacked or not."""
    shape = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(2, 3)))
    dtype = data.draw(st.sampled_from(DTYPES))
    width, size = 8 * np.dtype(dtype).itemsize, math.prod(shape)
    numbers = data.draw(st.lists(st.floats(width=width), min_size=size, max_size=size))
    values = np.asarray(numbers, dtype).reshape(shape)

    def draw_names(count):
        names = st.lists(NAMES, min_size=count, max_size=count, unique=True)
        # Names 0, 1, 2, ... are places, and come back as no names.
        return data.draw(st.none() | names.filter(lambda some: some != [str(place) for place in range(count)]))

    is_list = data.draw(st.booleans())
    labels = data.draw(st.none() | st.lists(st.integers(0, shape[2] - 1), min_size=shape[1], max_size=shape[1]))
    predictions = vd.Predictions(
        list(values) if is_list else values,
        None if labels is None else ClassIndices(np.array(labels)),  # names may be numbers, too
        kind=data.draw(st.sampled_from(KINDS)),
        source_names=draw_names(shape[0]),
        class_names=draw_names(shape[2]),
    )
    path = vd.save(predictions, tmp_path / f"round{suffix}")
    loaded = vd.load(path)
    if suffix in (".csv", ".parquet") and predictions.source_names and all_whole(predictions.source_names):
        order = sorted(range(shape[0]), key=lambda s: int(predictions.source_names[s]))
        predictions = predictions.select(sources=order)  # tables put numbered sources into the order of their numbers
    assert_same(loaded, predictions)


def all_whole(names):
    return all(name.lstrip("+-").isdecimal() and name.isascii() for name in names)


@pytest.mark.parametrize("suffix", WRITTEN)
@pytest.mark.parametrize("dtype", [*DTYPES, np.int32])
def test_precision_is_kept(tmp_path, rng, suffix, dtype):
    values = rng.integers(-9, 9, (3, 7, 4)).astype(dtype) if dtype == np.int32 else -random_ensemble(rng, dtype=dtype)
    loaded = vd.load(vd.save(vd.Predictions(values, kind="logits"), tmp_path / f"logits_p{suffix}"))
    np.testing.assert_array_equal(loaded.values, values)
    if not (suffix == ".csv" and dtype == np.int32):  # text has no whole numbers of its own
        assert loaded.dtype == dtype


def is_mapped(array):
    """Whether an array is, or is a view of, a map of a file."""
    while not isinstance(array, np.memmap) and isinstance(array.base, np.ndarray):
        array = array.base
    return isinstance(array, np.memmap)


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_plain_arrays_are_mapped(tmp_path, predictions, suffix):
    loaded = vd.load(vd.save(predictions, tmp_path / f"mapped{suffix}"))
    assert is_mapped(loaded.values)
    assert loaded.values.flags.aligned
    assert not loaded.values.flags.writeable


def test_archives_of_numpy(tmp_path, predictions):
    for name, write in (("plain", np.savez), ("packed", np.savez_compressed)):
        for dtype in DTYPES:
            path = tmp_path / f"{name}.npz"
            write(path, probs=predictions.values.astype(dtype), labels=predictions.labels, class_names=list("abcd"))
            loaded = vd.load(path)
            np.testing.assert_array_equal(loaded.values, predictions.values.astype(dtype))
            assert loaded.values.flags.aligned
            assert loaded.class_names == ("a", "b", "c", "d")


def test_saved_files_are_read_by_numpy(tmp_path, predictions):
    with np.load(vd.save(predictions, tmp_path / "p.npz"), allow_pickle=False) as stored:
        assert set(stored) == {"probs", "labels", "source_names", "class_names"}
        np.testing.assert_array_equal(stored["probs"], predictions.values)
    np.testing.assert_array_equal(np.load(vd.save(predictions, tmp_path / "p.npy")), predictions.values)


def test_npy_name_must_declare_the_kind(tmp_path, rng):
    logits = vd.Predictions(rng.normal(size=(2, 3, 4)), kind="logits")
    with pytest.raises(
        errors.ParameterError, match=r"logits would be read as probabilities; call it logits_p\.npy, or save a \.npz"
    ):
        vd.save(logits, tmp_path / "p.npy")
    assert not os.listdir(tmp_path)
    assert vd.load(vd.save(logits, tmp_path / "logits_p.npy")).kind == "logits"


@pytest.mark.parametrize(
    "names", [["1", "2", "3"], ["2", "1", "0"], ["01", "02", "10"], ["0", "1", "2"], ["7", "b", "1"]]
)
@pytest.mark.parametrize("suffix", COMPLETE)
def test_labels_come_back_if_class_names_are_numbers(tmp_path, suffix, names):
    labels = [names[label] for label in (1, 2, 1, 0)]
    predictions = vd.Predictions(np.full((3, 4, 3), 1 / 3), labels, source_names=list("cba"), class_names=names)
    assert vd.load(vd.save(predictions, tmp_path / f"p{suffix}")).labels.tolist() == [1, 2, 1, 0]


@pytest.mark.parametrize("names", [["10", "9", "8"], ["1", "2", "3"], ["2", "0", "1"], ["b", "a", "c"]])
@pytest.mark.parametrize("suffix", COMPLETE)
def test_sources_keep_their_order(tmp_path, suffix, names, rng):
    probs = rng.dirichlet(np.ones(2), (3, 4))
    loaded = vd.load(vd.save(vd.Predictions(probs, source_names=names), tmp_path / f"p{suffix}"))
    source_names = loaded.source_names or ("0", "1", "2")
    np.testing.assert_allclose(loaded.values[[source_names.index(name) for name in names]], probs, rtol=1e-12)
    assert source_names == tuple(names) or sorted(names) == ["0", "1", "2"]


def test_equal_predictions_give_equal_files(tmp_path, predictions):
    first, second = vd.save(predictions, tmp_path / "a.npz"), vd.save(predictions, tmp_path / "b.npz")
    assert first.read_bytes() == second.read_bytes()


def test_files_of_the_paper_are_read(tmp_path, rng):
    logits = rng.normal(size=(3, 10, 5)).astype(np.float32)
    path = tmp_path / "logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy"
    np.save(path, logits)
    loaded = vd.load(path, labels=rng.integers(0, 5, 10))
    assert loaded.kind == "logits"
    np.testing.assert_array_equal(loaded.values, logits)


def test_discover_gives_the_same_for_loaded_predictions(tmp_path, predictions):
    expected = vd.discover(predictions).probs
    for suffix in WRITTEN:
        np.testing.assert_array_equal(
            vd.discover(vd.load(vd.save(predictions, tmp_path / f"p{suffix}"))).probs, expected
        )
    moved = tmp_path / "moved.npy"
    np.save(moved, np.moveaxis(predictions.values, 0, 2))
    np.testing.assert_array_equal(vd.discover(vd.load(moved, sources_axis=2)).probs, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pt", ".zarr"])
def test_sources_axis(tmp_path, predictions, axis, suffix):
    moved = np.ascontiguousarray(np.moveaxis(predictions.values, 0, axis))
    path = tmp_path / f"moved{suffix}"
    if suffix == ".npy":
        np.save(path, moved)
    elif suffix == ".npz":
        np.savez(path, probs=moved)
    elif suffix == ".pt":
        torch.save(torch.from_numpy(moved), path)
    else:
        zarr.save_array(str(path), moved)
    np.testing.assert_array_equal(vd.load(path, sources_axis=axis).values, predictions.values)


def test_sources_axis_is_rejected_without_such_an_axis(tmp_path, predictions):
    path = tmp_path / "one.npy"
    np.save(path, predictions.values[0])
    with pytest.raises(errors.ParameterError, match=r"is one source; leave sources_axis out"):
        vd.load(path, sources_axis=1)
    with pytest.raises(errors.ParameterError, match="sources_axis is 3; it is 0 for"):
        vd.load(path, sources_axis=3)
    np.save(tmp_path / "two.npy", predictions.values[1])
    with pytest.raises(errors.ParameterError, match="separate sources have no axis of sources; leave sources_axis out"):
        vd.load(tmp_path, sources_axis=1)


def test_one_source_in_two_dimensions(tmp_path, predictions):
    path = tmp_path / "log_probs_averaged.npy"
    np.save(path, np.log(predictions.values.mean(axis=0)))
    loaded = vd.load(path)
    assert (loaded.n_sources, loaded.n_samples, loaded.n_classes, loaded.kind) == (1, 20, 4, "log_probs")


@pytest.mark.parametrize("shape", [(6,), (2, 3, 4, 5), (), (2, 5, 1), (0, 5, 2)])
def test_load_rejects_other_dimensions(tmp_path, shape):
    path = tmp_path / "odd.npy"
    np.save(path, np.zeros(shape))
    with pytest.raises(errors.ShapeError, match=r"odd\.npy.*shape"):
        vd.load(path)


def test_load_converts_other_byte_order(tmp_path, predictions):
    path = tmp_path / "big.npy"
    np.save(path, predictions.values.astype(">f4"))
    loaded = vd.load(path)
    assert loaded.dtype == np.float32
    assert loaded.dtype.isnative
    np.testing.assert_array_equal(loaded.values, predictions.values)


def test_load_reads_fortran_order(tmp_path, predictions):
    np.save(tmp_path / "f.npy", np.asfortranarray(predictions.values))
    np.savez_compressed(tmp_path / "f.npz", probs=np.asfortranarray(predictions.values))
    for name in ("f.npy", "f.npz"):
        np.testing.assert_array_equal(vd.load(tmp_path / name).values, predictions.values)


class TestKind:
    def test_default_kind_is_probs(self, tmp_path):
        np.save(tmp_path / "p.npy", np.full((1, 1, 2), 0.5))
        assert vd.load(tmp_path / "p.npy").kind == "probs"
        assert vd.load(tmp_path / "p.npy", kind="logits").kind == "logits"

    @pytest.mark.parametrize("name", ["probs_x.npy", "x.npz", "probs_x.csv", "x.parquet", "probs.zarr", "x.csv"])
    def test_contradicting_kind_is_rejected(self, tmp_path, predictions, name):
        path = vd.save(predictions, tmp_path / name)
        assert vd.load(path, kind="probs").kind == "probs"
        with pytest.raises(errors.ParameterError, match=r"kind='logits' contradicts .*, which holds 'probs'; leave"):
            vd.load(path, kind="logits")

    @pytest.mark.parametrize("name", ["logits_x.npy", "logits_x.npz", "log_probs-3.csv", "logits.zarr"])
    def test_save_rejects_name_of_another_kind(self, tmp_path, predictions, name):
        with pytest.raises(errors.ParameterError, match="the predictions are 'probs'; rename it"):
            vd.save(predictions, tmp_path / name)
        assert not os.listdir(tmp_path)

    def test_unknown(self, tmp_path):
        with pytest.raises(errors.UnknownNameError, match="probs, logits, log_probs"):
            vd.load(tmp_path, kind="scores")

    def test_kind_chooses_one_of_several_arrays(self, tmp_path, predictions):
        path = tmp_path / "both.npz"
        np.savez(path, probs=predictions.values, logits=np.log(predictions.values))
        assert vd.load(path, kind="logits").kind == "logits"
        with pytest.raises(errors.ParameterError, match="holds probs and logits; choose one"):
            vd.load(path)

    def test_array_without_a_kind(self, tmp_path, predictions):
        path = tmp_path / "unnamed.npz"
        np.savez(path, predictions.values, labels=predictions.labels)
        with pytest.raises(
            errors.FileFormatError, match=r"no array called probs, logits, log_probs or binary \(its arrays: arr_0\)"
        ):
            vd.load(path)
        assert_same(vd.load(path, kind="probs").select(), vd.Predictions(predictions.values, predictions.labels))


class TestTorch:
    @pytest.mark.filterwarnings("ignore::veridical.errors.SuspectKindWarning")
    @pytest.mark.parametrize("content", ["stacked", "listed", "named"])
    def test_tensors(self, tmp_path, predictions, content):
        tensor = torch.from_numpy(predictions.values)
        named = {"logits": tensor, "labels": torch.from_numpy(predictions.labels), "class_names": list("abcd")}
        saved = {"stacked": tensor, "listed": list(tensor), "named": named}[content]
        path = tmp_path / "tensors.pt"
        torch.save(saved, path)
        loaded = vd.load(path)
        np.testing.assert_array_equal(loaded.values, predictions.values)
        assert loaded.kind == ("logits" if content == "named" else "probs")
        assert (loaded.labels is not None) == (content == "named")
        assert loaded.class_names == (("a", "b", "c", "d") if content == "named" else None)

    def test_kinds_of_tensors(self, tmp_path):
        path = tmp_path / "logits_half.pth"
        torch.save(torch.zeros(2, 3, 4, dtype=torch.bfloat16, requires_grad=True), path)
        assert vd.load(path).dtype == np.float32
        torch.save(torch.zeros(3, 4).to_sparse(), path)
        with pytest.raises(errors.DtypeError, match=r"logits_half\.pth: the tensor is a sparse or quantised tensor"):
            vd.load(path)
        torch.save({"logits": torch.zeros(3, 4), "labels": [[0], [1, 2]]}, path)
        with pytest.raises(errors.LabelError, match=r"logits_half\.pth: labels cannot be made into one array"):
            vd.load(path)
        torch.save({"logits": "text"}, path)
        with pytest.raises(errors.FileFormatError, match="holds a str; save a tensor"):
            vd.load(path)


class TestSaving:
    def test_default_format_is_npz(self, tmp_path, predictions):
        path = vd.save(predictions, str(tmp_path / "answer"))
        assert path == Path(tmp_path / "answer.npz")
        assert_same(vd.load(path), predictions)

    @pytest.mark.parametrize("suffix", WRITTEN)
    def test_save_replaces_the_file_it_was_loaded_from(self, tmp_path, predictions, suffix):
        path = vd.save(predictions, tmp_path / f"p{suffix}")
        half = vd.load(path).select(sources=slice(0, 2))
        vd.save(half, path)
        np.testing.assert_array_equal(vd.load(path).values, predictions.values[:2])
        assert os.listdir(tmp_path) == [path.name]

    @pytest.mark.parametrize("suffix", WRITTEN)
    def test_save_leaves_nothing_half_written(self, tmp_path, predictions, suffix):
        path = vd.save(predictions, tmp_path / f"p{suffix}")
        broken = vd.Predictions(list(predictions.values), predictions.labels)
        broken._values = (*broken._values[:3], BreaksHalfway(broken._values[3]), broken._values[4])
        with pytest.raises(RuntimeError, match="halfway"):
            vd.save(broken, path)
        assert os.listdir(tmp_path) == [path.name]
        np.testing.assert_array_equal(vd.load(path).values, predictions.values)

    @pytest.mark.parametrize("suffix", WRITTEN)
    def test_no_such_directory(self, tmp_path, predictions, suffix):
        with pytest.raises(errors.StorageError, match=r"cannot be written \(No such file or directory\)"):
            vd.save(predictions, tmp_path / "missing" / f"p{suffix}")

    def test_other_directories_are_not_replaced(self, tmp_path, predictions):
        (tmp_path / "mine.zarr").mkdir()
        (tmp_path / "mine.zarr" / "thesis.txt").write_text("precious")
        with pytest.raises(errors.StorageError, match=r"exists and is not a \.zarr store"):
            vd.save(predictions, tmp_path / "mine.zarr")
        assert (tmp_path / "mine.zarr" / "thesis.txt").read_text() == "precious"

    def test_save_rejects_other_objects(self, tmp_path):
        with pytest.raises(errors.ParameterError, match="predictions are a ndarray"):
            vd.save(np.zeros((1, 2, 3)), tmp_path / "p.npz")

    @pytest.mark.parametrize("names", [["label", "b"], ["", "b"]])
    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_names_that_tables_cannot_hold(self, tmp_path, names, suffix):
        predictions = vd.Predictions(np.full((2, 2, 2), 0.5), class_names=names)
        with pytest.raises(errors.ParameterError, match="a table cannot hold; rename"):
            vd.save(predictions, tmp_path / f"p{suffix}")
        assert not os.listdir(tmp_path)

    @pytest.mark.parametrize("name", [" a0 ", "a\n", "\xa0a", "a\rb"])
    @pytest.mark.parametrize("what", ["class", "source"])
    def test_names_that_text_cannot_hold(self, tmp_path, name, what):
        predictions = vd.Predictions(np.full((2, 2, 2), 0.5), **{f"{what}_names": [name, "b"]})
        with pytest.raises(errors.ParameterError, match=rf"a {what} is called .* which a \.csv cannot hold; rename it"):
            vd.save(predictions, tmp_path / "p.csv")
        assert not os.listdir(tmp_path)
        assert_same(vd.load(vd.save(predictions, tmp_path / "p.parquet")), predictions)


class BreaksHalfway:
    """A source that cannot be read to its end, as on a disk that fails."""

    def __init__(self, values):
        self.shape, self.dtype = values.shape, values.dtype

    def __getitem__(self, rows):
        raise RuntimeError("halfway")

    def __array__(self, dtype=None, copy=None):
        return np.zeros(self.shape, self.dtype)


@pytest.mark.parametrize(
    ("module", "extra", "name"),
    [("pyarrow", "parquet", "p.parquet"), ("zarr", "zarr", "p.zarr"), ("torch", "torch", "p.pt")],
)
def test_missing_extra_is_named(tmp_path, predictions, module, extra, name):
    path = tmp_path / name
    if extra == "torch":
        torch.save(torch.from_numpy(predictions.values), path)
    else:
        vd.save(predictions, path)
    program = f"import sys; sys.modules[{module!r}] = None; import veridical as vd; vd.load({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert f"pip install '.[{extra}]'" in done.stderr


def test_documented():
    """Every suffix has its line in the table of formats."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "files.md").read_text()
    for suffix, known in FORMATS.items():
        if not suffix:
            continue
        line = next(line for line in page.splitlines() if line.startswith("|") and f"`{suffix}`" in line)
        assert known.extra is None or f"`{known.extra}`" in line


@pytest.mark.parametrize("suffix", WRITTEN)
@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8", ">i4"])
def test_saving_other_byte_orders(tmp_path, suffix, dtype):
    values = np.arange(24).reshape(2, 3, 4).astype(dtype)
    loaded = vd.load(vd.save(vd.Predictions(values, kind="logits"), tmp_path / f"logits_big{suffix}"))
    np.testing.assert_array_equal(loaded.values, values)
    if not (suffix == ".csv" and dtype == ">i4"):  # text has no whole numbers of its own
        assert loaded.dtype == np.dtype(dtype).newbyteorder("=")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (5, r"the path is 5 \(int\); give a file name"),
        (None, "the path is None"),
        ("", "which is not a file name"),
        ("a\0.npz", "which is not a file name"),
        ("/", "is a directory; give a file name, as in /predictions.npz"),
        (".", "is a directory"),
    ],
)
def test_saving_refuses_what_is_not_a_path(path, message):
    with pytest.raises(errors.ParameterError, match=message):
        vd.save(vd.Predictions(np.full((1, 2, 2), 0.5)), path)


@pytest.mark.parametrize("suffix", COMPLETE)
@pytest.mark.parametrize("name", ["\ud800", "a\0", "\0a", "line\nbreak", "return\r", "\xa0wide", "\x1b[31m"])
@pytest.mark.parametrize("what", ["source_names", "class_names"])
def test_unusual_names_come_back_or_are_refused(tmp_path, suffix, name, what):
    predictions = vd.Predictions(np.full((2, 3, 2), 0.5), **{what: [name, "b"]})
    if is_changed_by(suffix, name):
        with pytest.raises(errors.ParameterError, match=rf"which a \{suffix} cannot hold; rename it or save a "):
            vd.save(predictions, tmp_path / f"p{suffix}")
        assert not os.listdir(tmp_path)
    else:
        assert_same(vd.load(vd.save(predictions, tmp_path / f"p{suffix}")), predictions)


def is_changed_by(suffix, name):
    """Whether a format cannot hold a name as it is."""
    if suffix == ".csv":
        return name != name.strip() or any(character in name for character in "\0\r\ud800")
    return (suffix == ".npz" and name.endswith("\0")) or (suffix == ".parquet" and "\ud800" in name)


@pytest.mark.parametrize("class_axis", [2, -3])
def test_images_have_a_label_for_each_pixel(tmp_path, rng, class_axis):
    probs, labels = np.moveaxis(rng.dirichlet([1] * 5, size=(2, 3, 4, 4)), -1, 2), rng.integers(0, 5, (3, 4, 4))
    np.savez(tmp_path / "images.npz", probs=probs, labels=labels)
    predictions = vd.load(tmp_path / "images.npz", class_axis=class_axis)
    np.testing.assert_array_equal(predictions.in_sample_shape(predictions.labels), labels)


def test_ids_may_be_long(tmp_path):
    ids = [f"{n:06d}" + "x" * 290 for n in range(60_000)]
    predictions = vd.Predictions(np.full((1, 60_000, 2), 0.5), sample_ids=ids)
    assert predictions.sample_ids[-1] == ids[-1]


def test_checkpoints_hold_optimisers_and_schedules(tmp_path):
    network = torch.nn.Linear(3, 2)
    optimiser = torch.optim.Adam(network.parameters())
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [3, 5])
    facts = {"shape": torch.Size([3, 2]), "dtype": torch.float32, "device": torch.device("cpu"), "seen": {1, "a"}}
    states = {"network": network.state_dict(), "optimiser": optimiser.state_dict(), "schedule": schedule.state_dict()}
    path = tmp_path / "checkpoint.pt"
    torch.save({**states, **facts, 0.5: None}, path)
    np.testing.assert_array_equal(load_tensors(path)["network"]["bias"], network.bias.detach().numpy())


def test_labels_may_be_short_integers(tmp_path):
    labels = torch.tensor([0, 1, 0]).to(torch.uint16)
    torch.save({"probs": torch.full((2, 3, 2), 0.5), "labels": labels}, tmp_path / "p.pt")
    assert vd.load(tmp_path / "p.pt").labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".zarr"])
def test_files_of_repeated_rows_are_read(tmp_path, suffix):
    """Real predictions may be nearly the same for all samples, and pack into almost nothing."""
    probs = np.tile(np.float32([1, 0]), (1, 400_000, 1))
    path = vd.save(vd.Predictions(probs, np.zeros(400_000, int)), tmp_path / f"probs{suffix}")
    assert vd.load(path).n_samples == 400_000
