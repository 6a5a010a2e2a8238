"""Predictions of any models: what is written, in how much memory, and what is rejected."""

from __future__ import annotations

import resource
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from programs import in_new_process
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import veridical as vd
from veridical.errors import InvalidInputError, LabelError, NotFiniteError, ParameterError, ShapeError, StorageError
from veridical.training import collect_predictions


def linear(seed: int, classes: int = 4) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Linear(6, classes)


@pytest.fixture
def samples() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(50, 6, generator=generator), torch.randint(0, 4, (50,), generator=generator)


@pytest.fixture
def loader(samples: tuple[torch.Tensor, torch.Tensor]) -> DataLoader:
    return DataLoader(TensorDataset(*samples), batch_size=16)


@pytest.mark.parametrize("to_disk", [True, False])
def test_modules_give_logits(
    tmp_path: Path, samples: tuple[torch.Tensor, torch.Tensor], loader: DataLoader, to_disk: bool
) -> None:
    models = [linear(seed) for seed in range(3)]
    out = tmp_path / "p.npz" if to_disk else None
    predictions = collect_predictions(models, loader, out=out, source_names=["a", "b", "c"], class_names=list("wxyz"))
    with torch.inference_mode():
        expected = torch.stack([model(samples[0]) for model in models]).numpy()
    np.testing.assert_allclose(predictions.values, expected, rtol=1e-6)
    assert (predictions.kind, predictions.dtype, predictions.source_names, predictions.class_names) == (
        "logits",
        np.float32,
        ("a", "b", "c"),
        ("w", "x", "y", "z"),
    )
    np.testing.assert_array_equal(predictions.labels, samples[1])
    assert isinstance(predictions.values.base, np.memmap) is to_disk
    assert [path.name for path in tmp_path.iterdir()] == (["p.npz"] if to_disk else [])


def test_file_is_a_plain_npz_whose_scores_can_be_mapped(tmp_path: Path, loader: DataLoader) -> None:
    out = tmp_path / "p.npz"
    predictions = collect_predictions([linear(0), linear(1)], loader, out=out, source_names=["first", "second"])
    with np.load(out, allow_pickle=False) as stored:
        assert sorted(stored) == ["labels", "logits", "source_names"]
        np.testing.assert_array_equal(stored["logits"], predictions.values)
        assert stored["labels"].dtype == np.int64
        assert stored["source_names"].tolist() == ["first", "second"]
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
    assert predictions.values.flags.aligned
    loaded = vd.load(out)
    assert (loaded.kind, loaded.source_names) == ("logits", ("first", "second"))
    np.testing.assert_array_equal(loaded.values, predictions.values)


def test_iterator_of_models_is_consumed_one_at_a_time(loader: DataLoader) -> None:
    alive: list[int] = []

    def load() -> Iterator[nn.Module]:
        for seed in range(4):
            alive.append(seed)
            yield linear(seed)

    models = load()
    assert collect_predictions(models, loader).n_sources == 4
    assert alive == [0, 1, 2, 3]


def test_module_list_is_several_models(loader: DataLoader) -> None:
    assert collect_predictions(nn.ModuleList([linear(0), linear(1)]), loader).n_sources == 2


def test_modules_are_unchanged(loader: DataLoader) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4)).train()
    model[2].eval()
    statistics = model[1].running_mean.clone()  # type: ignore[union-attr]
    collect_predictions(model, loader)
    assert [module.training for module in model] == [True, True, False, True]
    assert torch.equal(model[1].running_mean, statistics)  # type: ignore[arg-type]
    one, two = collect_predictions(model, loader), collect_predictions(model, loader)
    np.testing.assert_array_equal(one.values, two.values)


def test_monte_carlo_dropout_is_seeded_and_unbiased(samples: tuple[torch.Tensor, torch.Tensor]) -> None:
    loader = list(zip(*(part.split(16) for part in samples), strict=True))  # a DataLoader would draw a seed
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Dropout(0.5), nn.Linear(32, 4)).eval()
    before = torch.get_rng_state()
    first = collect_predictions(model, loader, mc_samples=5, random_state=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert first.n_sources == 5
    assert len({source.tobytes() for source in first.values}) == 5
    np.testing.assert_array_equal(collect_predictions(model, loader, mc_samples=5, random_state=1).values, first.values)
    assert (collect_predictions(model, loader, mc_samples=5, random_state=7).values != first.values).any()
    plain = collect_predictions(model, loader).values[0]
    many = collect_predictions(model, loader, mc_samples=300).values.mean(axis=0)
    assert np.abs(many - plain).mean() < 0.1 * np.abs(first.values[0] - plain).mean() + 0.02


def test_classifiers_give_probabilities(samples: tuple[torch.Tensor, torch.Tensor]) -> None:
    inputs, labels = samples[0].numpy(), samples[1].numpy()
    models = [LogisticRegression(C=strength).fit(inputs, labels) for strength in (0.1, 10)]
    predictions = collect_predictions(models, (inputs, labels), dtype=np.float64)
    assert (predictions.kind, predictions.n_sources) == ("probs", 2)
    np.testing.assert_array_equal(predictions.values, [model.predict_proba(inputs) for model in models])
    np.testing.assert_array_equal(predictions.labels, labels)


def test_classifiers_with_other_labels_are_rejected(samples: tuple[torch.Tensor, torch.Tensor]) -> None:
    inputs, labels = samples[0].numpy(), samples[1].numpy()
    model = LogisticRegression().fit(inputs, np.array(list("abcd"))[labels])
    with pytest.raises(LabelError, match="fit it on labels 0 to L-1"):
        collect_predictions([model], (inputs, labels))


def test_labels_are_optional(samples: tuple[torch.Tensor, torch.Tensor], tmp_path: Path) -> None:
    batches = list(samples[0].split(20))
    assert collect_predictions([linear(0)], batches, out=tmp_path / "p.npz").labels is None
    with np.load(tmp_path / "p.npz") as stored:
        assert sorted(stored) == ["logits"]
    assert collect_predictions([linear(0)], DataLoader(TensorDataset(samples[0]), 16)).n_samples == 50


def test_kind_can_be_declared(loader: DataLoader, tmp_path: Path) -> None:
    model = nn.Sequential(linear(0), nn.Softmax(dim=1))
    predictions = collect_predictions([model], loader, kind="probs", out=tmp_path / "p.npz")
    assert predictions.kind == "probs"
    np.testing.assert_allclose(predictions.values.sum(axis=2), 1, rtol=1e-6)
    with np.load(tmp_path / "p.npz") as stored:
        assert "probs" in stored


def test_modules_among_classifiers_need_a_declared_kind(loader: DataLoader) -> None:
    rows, labels = next(iter(loader))
    module, classifier = nn.Sequential(linear(0), nn.Softmax(dim=1)), LogisticRegression().fit(rows, labels)
    predictions = collect_predictions([module, classifier], loader, kind="probs")
    assert predictions.kind == "probs"
    np.testing.assert_allclose(predictions.values.sum(axis=2), 1, rtol=1e-6)


class _NaN(nn.Module):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scores = torch.zeros(len(inputs), 4)
        scores[3, 1] = torch.nan
        return scores


def test_invalid_input_leaves_no_file(tmp_path: Path, samples: tuple[torch.Tensor, torch.Tensor]) -> None:
    inputs, labels = samples
    loader = DataLoader(TensorDataset(*samples), batch_size=16)
    shuffled = DataLoader(TensorDataset(*samples), batch_size=16, shuffle=True)
    classifier = LogisticRegression().fit(inputs, labels)
    cases: list[tuple[object, object, dict[str, object], type[Exception], str]] = [
        ([], loader, {}, ParameterError, "there are no models"),
        ([linear(0), "net"], loader, {}, ParameterError, "a model is a str; give torch modules"),
        ([linear(0), linear(1)], shuffled, {}, LabelError, "model 1, samples from 0: the labels differ"),
        (
            [linear(0), linear(1)],
            iter(list(loader)),
            {},
            InvalidInputError,
            "gave 0 samples to model 1 and 50 to the f",
        ),
        ([linear(0), linear(1, 3)], loader, {}, ShapeError, "model 1, samples from 0: 3 classes, and 4 before"),
        ([nn.Flatten(0)], loader, {}, ShapeError, r"model 0, samples from 0: the output has shape \(96,\)"),
        ([linear(0), _NaN()], loader, {}, NotFiniteError, "model 1 predicts NaN for sample 3"),
        (
            [linear(0), linear(1), classifier],
            loader,
            {},
            ParameterError,
            "0 returns logits and model 2 returns probs; coll",
        ),
        ([classifier, linear(0)], loader, {}, ParameterError, "model 0 returns probs and model 1 returns logits"),
        ([linear(0)], (inputs, labels[:-1]), {}, LabelError, "there are 49 labels for 50 samples"),
        ([linear(0)], (inputs, labels + 3), {}, LabelError, r"the label of sample \d+ is [456]; with 4 classes"),
        ([linear(0)], loader, {"source_names": ["a", "b"]}, ShapeError, "2 source names for 1 source"),
        ([linear(0)], loader, {"mc_samples": 3}, ParameterError, "mc_samples is for one torch module"),
        (linear(0), loader, {"mc_samples": 3}, ParameterError, "needs a module with dropout, and this one has none"),
        (linear(0), 7, {}, ParameterError, "loader is 7; give an iterable of batches"),
        (linear(0), loader, {"precision": "float8"}, ParameterError, "precision 'float8' is unknown"),
    ]
    for models, batches, options, error, message in cases:
        with pytest.raises(error, match=message):
            collect_predictions(models, batches, out=tmp_path / "p.npz", **options)  # type: ignore[arg-type]
        assert list(tmp_path.iterdir()) == []


def test_existing_file_survives_a_failure(tmp_path: Path, loader: DataLoader) -> None:
    out = tmp_path / "p.npz"
    collect_predictions([linear(0)], loader, out=out)
    before = out.read_bytes()
    with pytest.raises(NotFiniteError):
        collect_predictions([linear(1), _NaN()], loader, out=out)
    assert out.read_bytes() == before


class _Samples:
    """Batches of 500 samples."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for start in range(0, self.count, 500):
            yield torch.full((500, 1), float(start)), torch.zeros(500, dtype=torch.int64)


def collect_in_little_memory(out: Path) -> None:
    torch.set_num_threads(1)
    peaks = []
    for members, samples in ((2, 500), (8, 6000)):
        models = (nn.Linear(1, 1000) for _ in range(members))
        predictions = collect_predictions(models, _Samples(samples), out=out)
        assert predictions.values.shape == (members, samples, 1000)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert out.stat().st_size > 190e6  # more than the memory that may be used
    # Kilobytes; of the mapped result some pages are looked at, and the system maps up to 2 MB around each.
    assert peaks[1] - peaks[0] < 60_000, peaks


def test_memory_does_not_depend_on_members_and_samples(tmp_path: Path) -> None:
    assert in_new_process(collect_in_little_memory, tmp_path / "p.npz") == 0


def collect_on_a_full_disk(out: Path) -> None:
    batches = [(torch.zeros(100, 1), torch.zeros(100, dtype=torch.int64))] * 4
    for limit in (480_100, 250_000, 1000):  # when the .npz is written, in a later batch, in the first one
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, 1_000_000))
        with pytest.raises(StorageError, match=r"there is no space to write .*free some space and try again"):
            collect_predictions([nn.Linear(1, 100)] * 3, batches, out=out)
        assert list(out.parent.iterdir()) == []


def test_full_disk_raises_storage_error_and_leaves_no_file(tmp_path: Path) -> None:
    assert in_new_process(collect_on_a_full_disk, tmp_path / "p.npz") == 0


def test_missing_directory_raises_storage_error(tmp_path: Path, loader: DataLoader) -> None:
    with pytest.raises(StorageError, match=r"p\.npz cannot be written \(No such file or directory\)"):
        collect_predictions([linear(0)], loader, out=tmp_path / "nowhere" / "p.npz")
