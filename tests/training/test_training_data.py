"""Data sets in their published file formats, and the errors for missing or damaged files."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from veridical.errors import (
    CorruptFileError,
    DatasetError,
    DtypeError,
    FileFormatError,
    InvalidInputError,
    LabelError,
    ParameterError,
    ShapeError,
    UnknownNameError,
    UnsafePickleError,
)
from veridical.predictions.files import cifar_batches
from veridical.training.data import DATASETS, load_dataset

CIFAR10_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
FASHION = Path("/usr/share/datasets/fashion-mnist")


def random_images(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8), rng.integers(0, 10, count)


def planes(images: np.ndarray) -> np.ndarray:
    """One row per image: 1,024 red bytes, then green, then blue, as CIFAR stores them."""
    return np.stack([image.transpose(2, 0, 1).reshape(-1) for image in images])


def write_cifar10_python(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    folder.mkdir(parents=True)
    images, labels = random_images(25, 0)
    for i in range(5):
        part = slice(5 * i, 5 * i + 5)
        batch = {
            b"batch_label": f"training batch {i + 1} of 5".encode(),
            b"labels": labels[part].tolist(),
            b"data": planes(images[part]),
            b"filenames": [b"a.png"] * 5,
        }
        (folder / f"data_batch_{i + 1}").write_bytes(pickle.dumps(batch, protocol=2))
    test_images, test_labels = random_images(3, 1)
    test_batch = {b"labels": test_labels.tolist(), b"data": planes(test_images)}
    (folder / "test_batch").write_bytes(pickle.dumps(test_batch, protocol=2))
    names = {b"label_names": [name.encode() for name in CIFAR10_NAMES], b"num_vis": 3072}
    (folder / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))
    return images, labels


def write_cifar10_binary(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    folder.mkdir(parents=True)
    images, labels = random_images(25, 0)
    rows = np.concatenate([labels[:, None].astype(np.uint8), planes(images)], axis=1)
    for i in range(5):
        rows[5 * i : 5 * i + 5].tofile(folder / f"data_batch_{i + 1}.bin")
    rows[:3].tofile(folder / "test_batch.bin")
    (folder / "batches.meta.txt").write_text("\n".join(CIFAR10_NAMES) + "\n\n")
    return images, labels


Publish = Callable[[Path], None]


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Makes the files of a folder known as the published ones are."""

    def add_checksums(folder: Path) -> None:
        sums = {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        monkeypatch.setitem(cifar_batches.PUBLISHED, "written here", sums)

    return add_checksums


@pytest.mark.parametrize("nested", [True, False])
def test_cifar10_python_files(tmp_path: Path, publish: Publish, nested: bool) -> None:
    folder = tmp_path / "cifar-10-batches-py" if nested else tmp_path / "here"
    images, labels = write_cifar10_python(folder)
    publish(folder)
    read = load_dataset("cifar10", tmp_path if nested else folder)
    np.testing.assert_array_equal(read.images, images)
    np.testing.assert_array_equal(read.labels, labels)
    assert read.n_classes == 10
    assert list(read.class_names or ()) == CIFAR10_NAMES
    assert read.published == {f"data_batch_{i}": True for i in range(1, 6)}
    assert len(load_dataset("cifar10", tmp_path, "test") if nested else read) == (3 if nested else 25)


def test_cifar10_binary_files(tmp_path: Path) -> None:
    images, labels = write_cifar10_binary(tmp_path / "cifar-10-batches-bin")
    read = load_dataset("cifar10", tmp_path)
    np.testing.assert_array_equal(read.images, images)
    np.testing.assert_array_equal(read.labels, labels)
    assert list(read.class_names or ()) == CIFAR10_NAMES


def test_cifar100_files_of_both_formats(tmp_path: Path, publish: Publish) -> None:
    images, _ = random_images(6, 2)
    fine, coarse = np.array([99, 0, 5, 50, 7, 8]), np.zeros(6, np.uint8)
    python, binary = tmp_path / "p" / "cifar-100-python", tmp_path / "b" / "cifar-100-binary"
    python.mkdir(parents=True)
    binary.mkdir(parents=True)
    batch = {b"fine_labels": fine.tolist(), b"coarse_labels": coarse.tolist(), b"data": planes(images)}
    (python / "train").write_bytes(pickle.dumps(batch, protocol=2))
    publish(python)
    np.concatenate([np.stack([coarse, fine.astype(np.uint8)], 1), planes(images)], axis=1).astype(np.uint8).tofile(
        binary / "train.bin"
    )
    for folder in (python.parent, binary.parent):
        read = load_dataset("cifar100", folder)
        np.testing.assert_array_equal(read.images, images)
        np.testing.assert_array_equal(read.labels, fine)
        assert read.n_classes == 100


def test_cifar_python_files_that_are_not_the_published_ones_are_refused_and_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    write_cifar10_python(folder)
    with pytest.raises(UnsafePickleError, match=r"data_batch_1 is not the published file .* the binary version"):
        load_dataset("cifar10", tmp_path)
    (folder / "test_batch").write_bytes(b"cos\nsystem\n(S'touch " + bytes(tmp_path / "ran") + b"'\ntR.")
    with pytest.raises(UnsafePickleError, match=r"test_batch is not the published file"):
        load_dataset("cifar10", tmp_path, "test")
    assert not (tmp_path / "ran").exists()


def test_cifar_rejects_damaged_binary_batches(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-bin"
    write_cifar10_binary(folder)
    content = bytearray((folder / "test_batch.bin").read_bytes())
    content[0] = 10
    (folder / "test_batch.bin").write_bytes(content)
    with pytest.raises(CorruptFileError, match=r"image 0 in .* has label 10, and there are 10 classes"):
        load_dataset("cifar10", tmp_path, "test")
    (folder / "test_batch.bin").write_bytes(content[:-1])
    with pytest.raises(CorruptFileError, match="9218 bytes, which is not a whole number of images"):
        load_dataset("cifar10", tmp_path, "test")
    (folder / "batches.meta.txt").write_text("cat dog")
    with pytest.raises(CorruptFileError, match="lists 2 classes instead of 10"):
        load_dataset("cifar10", tmp_path, "train")
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(DatasetError, match=r"data_batch_3\.bin is missing, while data_batch_1\.bin exists"):
        load_dataset("cifar10", tmp_path, "train")


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_missing_files_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match=r"nowhere does not exist; (unpack|put|give) .*"):
        load_dataset(name, tmp_path / "nowhere")
    if name != "npz":
        with pytest.raises(DatasetError, match=r"(unpack|put) .* there"):
            load_dataset(name, tmp_path)


def idx(array: np.ndarray) -> bytes:
    return bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder: Path, compress: bool, labels: list[int]) -> np.ndarray:
    images = np.random.default_rng(0).integers(0, 256, (len(labels), 28, 28), dtype=np.uint8)
    for stem, array in (("images-idx3", images), ("labels-idx1", np.array(labels, np.uint8))):
        for part in ("train", "t10k"):
            path = folder / f"{part}-{stem}-ubyte{'.gz' if compress else ''}"
            path.write_bytes(gzip.compress(idx(array)) if compress else idx(array))
    return images


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("split", ["train", "test"])
def test_mnist_files(tmp_path: Path, name: str, compress: bool, split: str) -> None:
    images = write_idx(tmp_path, compress, [3, 0, 9])
    read = load_dataset(name, tmp_path, split)
    np.testing.assert_array_equal(read.images[..., 0], images)  # type: ignore[index]
    assert read.labels.tolist() == [3, 0, 9]
    assert (read.n_classes, read.image_shape) == (10, (28, 28, 1))
    assert len(read.published) == (2 if compress else 0)
    assert not any(read.published.values())


def test_mnist_rejects_damaged_files(tmp_path: Path) -> None:
    write_idx(tmp_path, True, [1, 2])
    path = tmp_path / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    for damaged, message in [
        (whole[:100], "cannot be decompressed"),
        (b"no gzip at all", "cannot be decompressed"),
        (
            gzip.compress(idx(np.zeros((2, 28, 28), np.uint8))[:-1]),
            "declares shape .* and has 1567 bytes",
        ),
        (gzip.compress(idx(np.zeros((2, 28, 28), np.uint8)) + bytes(1 << 26)), "declares shape .* and has more bytes"),
        (gzip.compress(idx(np.zeros((2, 28, 28), np.uint8))[:4] + b"\xff" * 12), "claims .* bytes of content"),
        (gzip.compress(idx(np.zeros(2, np.uint8))), "does not begin as an idx file of bytes in 3 dimensions"),
        (gzip.compress(b""), "does not begin as"),
        (gzip.compress(idx(np.zeros((3, 28, 28), np.uint8))), "has 3 images and .* 2 labels"),
    ]:
        path.write_bytes(damaged)
        with pytest.raises(CorruptFileError, match=message):
            load_dataset("mnist", tmp_path)
    write_idx(tmp_path, True, [1, 12])
    with pytest.raises(CorruptFileError, match=r"image 1 in .* has label 12, and there are 10 classes"):
        load_dataset("mnist", tmp_path)


@pytest.mark.skipif(not FASHION.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_fashion_mnist_as_distributed() -> None:
    train, test = (load_dataset("fashion-mnist", FASHION, split) for split in ("train", "test"))
    assert np.bincount(train.labels).tolist() == [6000] * 10
    assert np.bincount(test.labels).tolist() == [1000] * 10
    scaled = np.asarray(train.images, np.float64) / 255
    assert scaled.mean() == pytest.approx(train.normalisation.mean[0], abs=1e-4)
    assert scaled.std() == pytest.approx(train.normalisation.std[0], abs=1e-4)


def write_npz(path: Path, **changes: object) -> Path:
    images, labels = random_images(6, 3)
    arrays = {
        "train_images": images,
        "train_labels": labels % 3,
        "test_images": images[:2],
        "test_labels": [0, 1],
        "class_names": np.array(["a", "b", "c"]),
    } | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})  # type: ignore[arg-type]
    return path


def test_npz_splits_share_classes_and_normalisation(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "data.npz")
    train, test = load_dataset("npz", path), load_dataset("npz", path, "test")
    assert (len(train), len(test), train.n_classes, test.n_classes) == (6, 2, 3, 3)
    assert test.class_names == ("a", "b", "c")
    assert test.normalisation == train.normalisation
    pixels = np.asarray(train.images, np.float64).reshape(-1, 3) / 255
    np.testing.assert_allclose(train.normalisation.mean, pixels.mean(axis=0))
    np.testing.assert_allclose(train.normalisation.std, pixels.std(axis=0))


def test_npz_counts_the_classes_of_both_splits(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "data.npz", class_names=None, train_labels=[0, 1, 0, 1, 0, 4])
    assert load_dataset("npz", path, "test").n_classes == 5


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"train_images": None}, DatasetError, "has no array train_images; give a .npz file with train_images"),
        ({"train_labels": [0, 1, 2, 3, 0, 0]}, LabelError, "the label of sample 3 is 3; with 3 classes"),
        ({"train_labels": [0, 1, 2, -1, 0, 0]}, LabelError, "the label of sample 3 is -1"),
        ({"train_labels": list("abcabc")}, LabelError, "labels have dtype <U1; give integers from 0 to 2"),
        ({"train_labels": list("abcabc"), "class_names": None}, LabelError, "labels have dtype <U1"),
        ({"train_labels": [0, 1]}, LabelError, "there are 2 labels for 6 samples"),
        (
            {"train_labels": [0, 1, 2, 10**9, 0, 0], "class_names": None},
            LabelError,
            "there are 1000000001 classes, and at most 100000 are supported",
        ),
        ({"train_images": np.zeros((6, 32, 32, 3))}, DtypeError, "dtype float64; give pixels from 0 to 255 as uint8"),
        ({"train_images": np.zeros((6, 32), np.uint8)}, ShapeError, r"shape \(6, 32\); give \(images, height"),
        ({"train_images": np.array([None] * 6)}, FileFormatError, "holds Python objects"),
    ],
)
def test_npz_rejects_invalid_arrays(
    tmp_path: Path, changes: dict[str, object], error: type[InvalidInputError], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_dataset("npz", write_npz(tmp_path / "data.npz", **changes))


def test_npz_rejects_truncated_files(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "data.npz")
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(CorruptFileError, match=r"data\.npz begins as a \.npz and is truncated"):
        load_dataset("npz", path)


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for split, count in (("train", 3), ("val", 2)):
        for name, brightness in (("n01", 40), ("n02", 220)):
            folder = tmp_path / split / name
            folder.mkdir(parents=True)
            for i in range(count):
                noise = rng.integers(0, 20, (60 + 10 * i, 90, 3))
                Image.fromarray((noise + brightness).astype(np.uint8)).save(folder / f"{i}.JPEG")
    return tmp_path


def test_image_folders_are_classes(folders: Path) -> None:
    train, test = load_dataset("imagenet", folders), load_dataset("imagenet", folders, "test")
    assert (len(train), len(test), train.n_classes, train.image_shape) == (6, 4, 2, (224, 224, 3))
    assert test.class_names == ("n01", "n02")
    assert test.labels.tolist() == [0, 0, 1, 1]
    assert train.first(2).labels.tolist() == [0, 1]  # the first few are of all classes
    pixels = test.images.read(np.arange(4), None)  # type: ignore[union-attr]
    assert pixels.shape == (4, 224, 224, 3)
    assert (pixels.mean(axis=(1, 2, 3)) > 128).tolist() == [False, False, True, True]


def test_image_folder_crops_depend_on_the_seed(folders: Path) -> None:
    images = load_dataset("imagenet", folders).images
    indices = np.array([5, 2])
    first = images.read(indices, (7, 0))  # type: ignore[union-attr]
    np.testing.assert_array_equal(images.read(indices[::-1].copy(), (7, 0)), first[::-1])  # type: ignore[union-attr]
    assert (images.read(indices, (7, 1)) != first).any()  # type: ignore[union-attr]


def test_image_folder_test_images_are_centred(tmp_path: Path) -> None:
    """A white square in the middle of a wide black image is in the middle of the crop."""
    picture = np.zeros((256, 512, 3), np.uint8)
    picture[:, :100] = (255, 0, 0)
    picture[96:160, 224:288] = 255
    for name in ("a", "b"):
        (tmp_path / "val" / name).mkdir(parents=True)
        Image.fromarray(picture).save(tmp_path / "val" / name / "x.png")
    (pixels,) = load_dataset("imagenet", tmp_path, "test").images.read(np.array([0]), None)  # type: ignore[union-attr]
    white = np.argwhere((pixels > 250).all(axis=2))
    assert (white.min(axis=0).tolist(), white.max(axis=0).tolist()) == ([80, 80], [143, 143])
    assert pixels[..., 0].max() == pixels[..., 1].max() == 255
    assert (pixels[..., 0] == pixels[..., 1]).all()  # no red, which is outside the centre


def test_image_folders_reject_missing_or_damaged_images(folders: Path) -> None:
    (folders / "val" / "n02" / "0.JPEG").write_bytes(b"no image")
    with pytest.raises(CorruptFileError, match=r"0\.JPEG cannot be decoded"):
        load_dataset("imagenet", folders, "test").images.read(np.array([2]), None)  # type: ignore[union-attr]
    (folders / "train" / "n03").mkdir()
    with pytest.raises(DatasetError, match="n03 has no images"):
        load_dataset("imagenet", folders)
    with pytest.raises(DatasetError, match="has no folder train/; put the images there as train/CLASS"):
        load_dataset("imagenet", folders / "val")
    (folders / "val" / "n01").rename(folders / "train" / "n04")
    with pytest.raises(DatasetError, match="has 1 class folders, and at least two are needed"):
        load_dataset("imagenet", folders, "test")


def test_limit_and_fingerprint(tmp_path: Path, folders: Path) -> None:
    path = write_npz(tmp_path / "data.npz")
    whole = load_dataset("npz", path)
    assert len(load_dataset("npz", path, limit=4)) == 4
    assert len(load_dataset("npz", path, limit=400)) == 6
    with pytest.raises(ParameterError, match="limit is 0; give a whole number of at least 1"):
        load_dataset("npz", path, limit=0)
    pictures = load_dataset("imagenet", folders)
    prints = {s.fingerprint() for s in (whole, whole.first(5), pictures, pictures.first(5), whole)}
    assert len(prints) == 4


def test_load_dataset_rejects_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="dataset 'svhn' is unknown; choose one of: cifar10"):
        load_dataset("svhn", ".")
    with pytest.raises(UnknownNameError, match="split 'valid' is unknown; choose one of: train, test"):
        load_dataset("mnist", ".", "valid")
