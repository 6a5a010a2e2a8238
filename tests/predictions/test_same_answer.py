"""The same data in other containers: classes, labels and ids are matched, or the input is refused."""

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner

import veridical as vd
from veridical import errors
from veridical.cli.commands import program

CLASSES = ["ant", "bee", "cow"]


@pytest.fixture(scope="module")
def data():
    """Probabilities of two sources, exact in float32, whose mean names the label of nine in ten samples."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    probs = rng.dirichlet(np.ones(3), (2, 40)) + 4 * np.eye(3)[labels]
    probs = (probs / probs.sum(axis=-1, keepdims=True)).astype(np.float32)
    labels[::10] = (labels[::10] + 1) % 3
    return probs, labels


def accuracy(predictions):
    known = predictions.labelled()
    return float((np.mean(list(known), axis=0).argmax(axis=1) == known.labels).mean())


def frames_of(probs, classes=CLASSES, **options):
    return {name: pd.DataFrame(source, columns=classes, **options) for name, source in zip("ab", probs, strict=True)}


# --- one ensemble in every container


def _directory(folder, probs, labels, suffix):
    for name, source in zip("ab", probs, strict=True):
        vd.save(vd.Predictions(source, class_names=CLASSES), folder / f"{name}{suffix}")
    np.savetxt(folder / "labels.txt", labels, fmt="%d")
    return vd.load(folder)


def _file(folder, probs, labels, suffix):
    predictions = vd.Predictions(dict(zip("ab", probs, strict=True)), labels, class_names=CLASSES)
    return vd.load(vd.save(predictions, folder / f"p{suffix}"))


def _torch(folder, probs, labels, suffix):
    named = {"probs": torch.from_numpy(probs), "labels": torch.from_numpy(labels)}
    torch.save(named | {"source_names": ["a", "b"], "class_names": CLASSES}, folder / "p.pt")
    return vd.load(folder / "p.pt")


def _frames(folder, probs, labels, suffix):
    frames = frames_of(probs)
    frames["b"] = frames["b"].iloc[::-1][CLASSES[::-1]]
    return vd.Predictions(frames, pd.Series([CLASSES[label] for label in labels]))


@pytest.mark.parametrize(
    ("container", "suffix"),
    [
        *((_file, suffix) for suffix in (".npz", ".csv", ".parquet", ".zarr")),
        *((_directory, suffix) for suffix in (".npz", ".csv", ".parquet")),
        (_torch, ".pt"),
        (_frames, ""),
    ],
)
def test_every_container_gives_the_same_predictions(tmp_path, data, container, suffix):
    probs, labels = data
    expected = vd.Predictions(dict(zip("ab", probs, strict=True)), labels, class_names=CLASSES)
    predictions = container(tmp_path, probs, labels, suffix)
    np.testing.assert_array_equal(predictions.values, expected.values)
    for name in ("labels", "sample_ids", "groups"):
        np.testing.assert_array_equal(getattr(predictions, name), getattr(expected, name))
    for name in ("source_names", "class_names", "kind", "sample_shape"):
        assert getattr(predictions, name) == getattr(expected, name)
    np.testing.assert_array_equal(vd.discover(predictions).probs, vd.discover(expected).probs)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet", ".zarr"])
def test_renamed_and_permuted_input_gives_the_same_truth(tmp_path, data, suffix):
    probs, labels = data
    rng = np.random.default_rng(1)
    order = rng.permutation(3), rng.permutation(40), rng.permutation(2)
    permuted = probs[order[2]][:, order[1]][..., order[0]]
    kept = suffix == ".npy"
    saved = vd.save(vd.Predictions(permuted), tmp_path / f"p{suffix}")
    loaded = vd.load(saved, labels=np.argsort(order[0])[labels[order[1]]])
    assert accuracy(loaded) == accuracy(vd.Predictions(probs, labels))
    truth = vd.discover(vd.Predictions(probs)).probs[order[1]][:, order[0]]
    np.testing.assert_allclose(vd.discover(loaded).probs, truth, atol=1e-6)
    assert kept or loaded.class_names is None


# --- classes of sources in different order


@pytest.mark.parametrize("names", [["0", "1", "2"], ["1.0", "0.0", "2.0"], CLASSES])
@pytest.mark.parametrize("labelled", ["", "a", "b", "ab"])
def test_columns_of_files_are_matched_with_their_labels(tmp_path, data, names, labelled):
    probs, labels = data
    for place, (name, frame) in enumerate(frames_of(probs, names).items()):
        if name in labelled:
            frame = frame.assign(label=[names[label] for label in labels])
        columns = list(frame.columns)
        columns[:3] = columns[:3][::-1] if place else columns[:3]
        frame[columns].to_csv(tmp_path / f"{name}.csv", index=False)
    chosen = names if names[0] == "1.0" else None
    predictions = vd.load(tmp_path, None if labelled else [names[label] for label in labels], class_columns=chosen)
    np.testing.assert_allclose(predictions.values, probs, atol=1e-7)
    np.testing.assert_array_equal(predictions.labels, labels)


def test_names_of_classes_are_matched_by_value(tmp_path, data):
    probs, labels = data
    pd.DataFrame(probs[0], columns=["0", "1", "2"]).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame(probs[1][:, ::-1], columns=["2.0", "1.0", "0.0"]).assign(sample=range(40)).to_csv(
        tmp_path / "b.csv", index=False
    )
    predictions = vd.load([tmp_path / "a.csv", tmp_path / "b.csv"], labels=labels)
    np.testing.assert_allclose(predictions.values, probs, atol=1e-7)
    np.save(tmp_path / "c.npy", probs[1])
    pd.DataFrame(probs[0][:, ::-1], columns=["2", "1", "0"]).to_csv(tmp_path / "a.csv", index=False)
    predictions = vd.load([tmp_path / "a.csv", tmp_path / "c.npy"], labels=labels)
    np.testing.assert_allclose(predictions.values, probs[:, :, ::-1], atol=1e-7)
    assert accuracy(predictions) == accuracy(vd.Predictions(probs, labels))


def test_places_of_classes_belong_to_the_file_that_has_them(tmp_path, data):
    """Whole numbers beside names of classes are places among the names of their own file."""
    probs, labels = data
    vd.save(vd.Predictions(probs[0], labels, class_names=CLASSES), tmp_path / "a.npz")
    vd.save(vd.Predictions(probs[1][:, ::-1], 2 - labels, class_names=CLASSES[::-1]), tmp_path / "b.npz")
    predictions = vd.load(tmp_path)
    np.testing.assert_array_equal(predictions.values, probs)
    np.testing.assert_array_equal(predictions.labels, labels)
    (tmp_path / "a.npz").unlink()
    vd.save(vd.Predictions(probs[0], class_names=CLASSES), tmp_path / "a.npz")
    np.testing.assert_array_equal(vd.load(tmp_path).labels, labels)


def test_binary_predictions_in_another_order_are_no_longer_binary():
    scores = np.random.default_rng(0).random(60)
    binary = vd.Predictions(
        scores, labels=(scores > 0.5) ^ (np.arange(60) % 5 == 0), kind="binary", class_names=["ham", "spam"]
    )
    other = binary.in_class_order(["spam", "ham"])
    assert (other.input_kind, binary.in_class_order(["ham", "spam"]).input_kind) == ("probs", "binary")
    with pytest.raises(errors.ShapeError, match="1 dimension"):
        vd.Temperature().fit(other).predict(scores)


# --- columns that are no classes


@pytest.mark.parametrize("form", ["csv", "parquet", "frame"])
@pytest.mark.parametrize("column", ["target", "Fold", "y_true", "Unnamed: 0", "__index_level_0__", "index", "split"])
def test_columns_about_samples_are_not_classes(tmp_path, data, form, column):
    frame = pd.DataFrame(np.log(data[0][0]), columns=CLASSES).assign(**{column: 1.5})
    if form == "frame":
        with pytest.warns(errors.AmbiguousInputWarning, match=f"column '{column}' is not read as a class; the classes"):
            predictions = vd.Predictions(frame, kind="logits")
    else:
        path = tmp_path / f"logits_p.{form}"
        frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path, index=False)
        with pytest.warns(errors.AmbiguousInputWarning, match=f"column '{column}' is not read as a class; the classes"):
            predictions = vd.load(path)
    assert predictions.class_names == tuple(CLASSES)


def test_class_columns_are_chosen(tmp_path, data):
    frame = pd.DataFrame(np.log(data[0][0]), columns=CLASSES).assign(index=0.0, extra=1.0)
    frame.to_csv(tmp_path / "logits_p.csv", index=False)
    chosen = vd.load(tmp_path / "logits_p.csv", class_columns=["cow", "index"])
    assert chosen.class_names == ("cow", "index")
    np.testing.assert_array_equal(chosen.values[0, :, 1], np.zeros(40))
    assert vd.Predictions(frame, kind="logits", class_names=["bee", "ant"]).class_names == ("bee", "ant")
    with pytest.raises(errors.FileFormatError, match="has no column 'dog'; it has: ant, bee, cow, index, extra"):
        vd.load(tmp_path / "logits_p.csv", class_columns=["ant", "dog"])
    with pytest.raises(errors.ParameterError, match="class_columns is 'ant'; give a list of names"):
        vd.load(tmp_path / "logits_p.csv", class_columns="ant")
    (tmp_path / "numbers.csv").write_text("1.0,0.0\n0.25,0.75\n")
    with pytest.raises(errors.FileFormatError, match=r"starts with numbers; .*choose them with class_columns"):
        vd.load(tmp_path / "numbers.csv")
    predictions = vd.load(tmp_path / "numbers.csv", labels=[0], class_columns=["1.0", "0.0"])
    assert predictions.labels.tolist() == [1]
    result = CliRunner().invoke(
        program, ["inspect", str(tmp_path / "logits_p.csv"), "--class-columns", "ant,bee,cow", "--json"]
    )
    assert result.exit_code == 0, result.output
    assert '"n_classes": 3' in result.output


def test_columns_that_differ_between_sources_are_named(tmp_path, data):
    frame = pd.DataFrame(np.log(data[0][0]), columns=CLASSES)
    frame.to_csv(tmp_path / "logits_a.csv", index=False)
    frame.assign(extra=1.0).to_csv(tmp_path / "logits_b.csv", index=False)
    message = "has a column 'extra' that others lack; .* its columns are read as the classes ant, bee, cow, extra"
    with pytest.raises(errors.ShapeError, match=rf"logits_b\.csv {message}"):
        vd.load(tmp_path)
    assert vd.load(tmp_path, class_columns=CLASSES).n_classes == 3


def test_classes_without_labels_are_named(tmp_path, data):
    probs, labels = data
    frame = pd.DataFrame(np.log(probs[0]), columns=CLASSES)
    frame.assign(weight=1.0, label=[CLASSES[label] for label in labels]).to_csv(tmp_path / "logits_p.csv", index=False)
    with pytest.warns(errors.AmbiguousInputWarning, match="no label names the classes weight, which are columns of"):
        assert vd.load(tmp_path / "logits_p.csv").n_classes == 4
    vd.load(tmp_path / "logits_p.csv", class_columns=[*CLASSES, "weight"])  # nothing to say


@pytest.mark.parametrize("form", [lambda frame: frame, lambda frame: {"a": frame, "b": frame}])
def test_classes_of_frames_without_labels_are_named(data, form):
    probs, labels = data
    frame = pd.DataFrame(np.log(probs[0]), columns=CLASSES).assign(weight=1.0)
    names = pd.Series(CLASSES)[labels]
    with pytest.warns(
        errors.AmbiguousInputWarning, match=r"no label names the classes weight, .* with class_names=\."
    ) as w:
        assert vd.Predictions(form(frame), names.to_numpy(), kind="logits").n_classes == 4
    assert len(w) == 1
    for chosen in (CLASSES, [*CLASSES, "weight"]):
        predictions = vd.Predictions(form(frame), names.to_numpy(), kind="logits", class_names=chosen)  # nothing to say
        assert predictions.n_classes == len(chosen)


# --- rows in different order


@pytest.mark.parametrize("change", [lambda f: f.iloc[::-1], lambda f: f.sample(frac=1, random_state=0)])
def test_frames_are_joined_by_an_index_of_numbers(data, change):
    probs, labels = data
    frames = frames_of(probs)
    joined = vd.Predictions({"a": frames["a"], "b": change(frames["b"])}, labels)
    np.testing.assert_array_equal(joined.values, probs)
    assert joined.sample_ids is None
    shuffled = change(frames["a"])
    predictions = vd.Predictions(shuffled, pd.Series(labels))
    np.testing.assert_array_equal(predictions.labels, labels[shuffled.index])
    np.testing.assert_array_equal(vd.Predictions(shuffled, labels[shuffled.index]).labels, labels[shuffled.index])


def test_slices_of_frames_keep_their_index(data):
    probs, labels = data
    frames = {name: frame.iloc[10:30] for name, frame in frames_of(probs).items()}
    frames["b"] = frames["b"].iloc[::-1]
    with pytest.warns(errors.UnmatchedIdWarning, match="20 labels belong to no sample"):
        predictions = vd.Predictions(frames, pd.Series(labels))
    np.testing.assert_array_equal(predictions.values, probs[:, 10:30])
    np.testing.assert_array_equal(predictions.labels, labels[10:30])
    np.testing.assert_array_equal(predictions.sample_ids, np.arange(10, 30))
    own_order = vd.Predictions(frames, pd.Series(labels[10:30]))  # counts, and is no index of these
    np.testing.assert_array_equal(own_order.labels, labels[10:30])


@pytest.mark.parametrize("index", [np.arange(40), [f"row {n:02d}" for n in range(40)]])
def test_labels_without_ids_for_frames_in_different_order_are_warned_about(data, index):
    probs, labels = data
    first, second = frames_of(probs, index=index).values()
    message = "the samples of the data frames are in the order of source 0, and other sources are joined to it by id"
    with pytest.warns(errors.UnmatchedIdWarning, match=message):
        predictions = vd.Predictions([first.iloc[::-1], second], labels[::-1])
    np.testing.assert_array_equal(predictions.values, probs[:, ::-1])
    for named in (pd.Series(labels, index=index), dict(zip(index, labels.tolist(), strict=True)), None):
        same = vd.Predictions([first.iloc[::-1], second], named)  # nothing to say
        assert same.labels is None if named is None else (same.labels == labels[::-1]).all()
    vd.Predictions([first, second.iloc[::-1]], labels)
    vd.Predictions([first.iloc[::-1], second.iloc[::-1]], labels)


def test_labels_without_ids_for_files_in_different_order_are_warned_about(tmp_path, data):
    probs, labels = data
    ids = np.arange(40)
    for name, source, order in zip("ab", probs, (ids[::-1], ids), strict=True):
        np.savez(tmp_path / f"{name}.npz", probs=source[order], sample_ids=order)
    with pytest.warns(
        errors.UnmatchedIdWarning, match=r"are in the order of .*a\.npz, and other sources are joined to it"
    ):
        predictions = vd.load(tmp_path, labels=labels[::-1])
    np.testing.assert_array_equal(predictions.values, probs[:, ::-1])
    vd.load(tmp_path, labels=dict(zip(ids.tolist(), labels.tolist(), strict=True)))  # nothing to say


def test_series_in_another_order_beside_no_ids_is_warned_about(data):
    probs, labels = data
    with pytest.warns(errors.UnmatchedIdWarning, match="the index of labels is in another order than 0, 1, 2"):
        predictions = vd.Predictions(probs, pd.Series(labels).iloc[::-1])
    np.testing.assert_array_equal(predictions.labels, labels[::-1])
    vd.Predictions(probs, pd.Series(labels, index=np.random.default_rng(0).permutation(1000)[:40]))  # of other rows


def test_rows_that_are_put_in_order_are_warned_about(tmp_path, data):
    probs, labels = data
    ids = np.random.default_rng(0).permutation(40)
    frame = pd.DataFrame(probs[0], columns=CLASSES).assign(id=ids)
    frame.to_csv(tmp_path / "p.csv", index=False)
    message = r"the samples of .*p\.csv are in the order of their numbers, not of its rows"
    with pytest.warns(errors.UnmatchedIdWarning, match=message):
        vd.load(tmp_path / "p.csv", labels=labels)
    by_id = vd.load(tmp_path / "p.csv", labels=dict(zip(ids.tolist(), labels.tolist(), strict=True)))
    assert accuracy(by_id) == accuracy(vd.Predictions(probs[:1], labels))
    frame.sort_values("id").to_csv(tmp_path / "p.csv", index=False)
    vd.load(tmp_path / "p.csv", labels=labels)  # nothing to say


@pytest.mark.parametrize("labels", [[-1, 1, 1, -1], [-1.0, 1.0, 1.0, -1.0], ["-1", "1", "1", "-1"]])
def test_labels_of_minus_one_and_one_are_warned_about(labels):
    probs = np.full((2, 4, 2), 0.5)
    with pytest.warns(errors.AmbiguousInputWarning, match="are -1 and 1, and -1 is read as a label that is not known"):
        assert vd.Predictions(probs, labels).n_labelled == 2
    vd.Predictions(probs, labels, class_names=["-1", "1"])
    vd.Predictions(probs, [-1, 1, 0, -1])
    vd.Predictions(probs, [None, 1, 1, None])


def test_weights_that_sum_to_one_are_warned_about(data):
    probs, labels = data
    with pytest.warns(errors.AmbiguousInputWarning, match="weights sum to 1, and are read as those of one sample"):
        shares = vd.metrics.ece(labels, probs[0], sample_weight=np.full(40, 1 / 40))
    ones = vd.metrics.ece(labels, probs[0], sample_weight=np.ones(40))  # nothing to say
    assert shares != pytest.approx(ones)


def test_selection_without_labels_says_so(data):
    predictions = vd.Predictions(data[0], np.where(np.arange(40) < 10, data[1], -1))
    assert repr(predictions.select(samples=slice(20, 30))).endswith(", unlabelled)")


# --- what a file does not hold


def test_saving_says_what_a_file_does_not_hold(tmp_path, data):
    votes = vd.Predictions([[0, 1, -1], [1, 1, 0]], kind="labels")
    with pytest.warns(errors.AmbiguousInputWarning, match=r"v\.npz does not hold that these are votes"):
        vd.save(votes, tmp_path / "v.npz")
    images = vd.Predictions(np.full((2, 2, 3, 4, 2), 0.5))
    with pytest.warns(errors.AmbiguousInputWarning, match=r"i\.csv does not hold the shape of images \(2 x 3 x 4\)"):
        vd.save(images, tmp_path / "i.csv")
    assert vd.load(vd.save(images, tmp_path / "i.npz")).sample_shape == (2, 3, 4)
    named = vd.Predictions(data[0], sample_ids=[f"s{n}" for n in range(40)])
    with pytest.raises(errors.ParameterError, match=r"can hold each sample once, and these sample_ids: 1 id occurs"):
        vd.save(named.select(samples=[0, 1, 1]), tmp_path / "b.npz")
    assert not (tmp_path / "b.npz").exists()


def test_cells_of_calibrated_tables_are_no_formulas(tmp_path, data):
    probs, labels = data
    names, ids = ["=1+1", "+x", "ok"], ["@sum", "-3", "=cmd()", *(f"s{n}" for n in range(37))]
    predictions = vd.Predictions(probs, labels, class_names=names, sample_ids=ids)
    calibrated = vd.apply_calibrator(vd.Temperature().fit(predictions), predictions)
    calibrated.save(tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,label,confidence,'=1+1,'+x,ok"
    assert [line.split(",")[0] for line in lines[1:4]] == ["'@sum", "-3", "'=cmd()"]
    assert vd.load(vd.save(predictions, tmp_path / "p.csv")).class_names == tuple(names)
    answers = vd.judge({"item": ["=q", "r"], "source": ["a", "a"], "label": ["-x", "y"]})
    answers.save(tmp_path / "answers.csv")
    assert [line.split(",")[:2] for line in (tmp_path / "answers.csv").read_text().splitlines()[1:]] == [
        ["'=q", "'-x"],
        ["r", "y"],
    ]


# --- doubt


@pytest.mark.parametrize("n_sources", [1, 2])
def test_calibrate_writes_nothing_where_labels_are_in_another_order(tmp_path, data, n_sources):
    probs, labels = data
    predictions = vd.Predictions(probs[:n_sources], (labels + 1) % 3)
    path = str(vd.save(predictions, tmp_path / "p.npz"))
    for options in (["--out", str(tmp_path / "cal.json")], ["--report", str(tmp_path / "report.html")]):
        result = CliRunner().invoke(program, ["calibrate", path, "--method", "temperature", *options])
        assert isinstance(result.exception, errors.LabelError)
        assert "are the labels in the order of the predictions" in str(result.exception)
    assert [file.name for file in tmp_path.iterdir()] == ["p.npz"]
    for command in ("evaluate", "calibrate"):
        result = CliRunner().invoke(program, [command, path])
        assert result.exit_code == 0, result.output
        assert "are the labels in the order of the predictions" in result.output.replace("\n", " ")
