"""Labels and names of classes: one rule wherever they come from."""

import numpy as np
import pytest

import veridical as vd
from veridical import errors

NAN = float("nan")


def labels_of(labels, names, n_classes=None):
    values = np.full((1, len(labels), n_classes or len(names)), 1 / (n_classes or len(names)))
    return vd.Predictions(values, labels, class_names=names).labels.tolist()


@pytest.mark.parametrize(
    ("names", "labels", "indices"),
    [
        (["1", "0"], [1, 0, 1], [0, 1, 0]),
        (["1", "0"], ["1", "0", "1"], [0, 1, 0]),
        (["1.0", "0.0"], [1, 0, 1], [0, 1, 0]),
        (["1", "0"], ["1.0", "0.0", " 1 "], [0, 1, 0]),
        (["True", "False"], [True, False, True], [0, 1, 0]),
        (["True", "False"], ["true", "False", "TRUE"], [0, 1, 0]),
        (["true", "false"], np.array([True, False, True]), [0, 1, 0]),
        (["True", "False"], [1, 0, 1], [0, 1, 0]),
        (["ham", "spam"], [True, False, True], [1, 0, 1]),
        (["no", "true", "false"], [True, False, "no"], [1, 2, 0]),
        ([str(l) for l in range(1, 8)], [1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5]),
        (["3", "1", "0", "2", "4", "5", "6"], [0, 1, 2, 3, 4, 5, 6], [2, 1, 3, 0, 4, 5, 6]),
        (["10", "20", "30"], [0, 2, 1], [0, 2, 1]),
        (["10", "20", "30"], [10.0, 30.0, NAN], [0, 2, -1]),
        (["0.5", "0.1", "2"], np.float32([0.1, 0.5, 2]), [1, 0, 2]),
        (["-1", "1"], [-1, 1, -1], [0, 1, 0]),
        (["cat", "1", "dog"], ["cat", 1, "dog"], [0, 1, 2]),
        (["cat", "dog"], ["dog", 0, None, "", NAN, "nan", -1, b"cat"], [1, 0, -1, -1, -1, -1, -1, 0]),
        (["nan", "dog"], ["nan", "dog"], [0, 1]),
        (["01", "1"], ["01", "1"], [0, 1]),
        (None, ["1", "+1", "1.0", 1, 1.0, "1e0"], [1] * 6),
    ],
)
def test_labels_name_classes(names, labels, indices):
    entries = np.empty(len(labels), object)
    for n, label in enumerate(labels):
        entries[n] = label
    assert labels_of(entries, names, None if names else 2) == indices
    if len({type(label) for label in labels}) == 1:  # NumPy makes texts of what is mixed with them
        assert labels_of(np.asarray(labels), names, None if names else 2) == indices


@pytest.mark.parametrize(
    ("names", "labels", "message"),
    [
        (
            [str(l) for l in range(1, 8)],
            [0, 1, 2],
            "label 1 is the name of a class and the label 0 is not .the classes",
        ),
        (["7", "b", "1"], [1, 2, 0], "label 1 is the name of a class and the label 0 is not"),
        (["1", "2", "3"], [1, 2, 9], "the label of sample 2 is 9, and the classes are: 1, 2, 3"),
        (["01", "1.0"], [1, 1], "1 is class '01' and class '1.0'; give classes names of other values"),
        (["a", "b"], ["a", "--1"], "the label of sample 1 is '--1', and the classes are: a, b"),
        (["a", "b"], ["a", "+-1"], "the label of sample 1 is '.-1', and the classes are: a, b"),
        (["a", "b"], ["a", "1_0"], "the label of sample 1 is '1_0'"),
        (["a", "b", "c"], ["a", "true"], "the label of sample 1 is 'true', and the classes are: a, b, c"),
        (None, [0, "--1"], "labels are names .'--1', ...., and the predictions have no class_names"),
        (None, [0, [1]], "labels"),
        (["a", "b"], [0, 2], "the label of sample 1 is 2; with 2 classes labels go from 0 to 1"),
    ],
)
def test_labels_that_name_no_class_are_refused(names, labels, message):
    with pytest.raises(errors.LabelError, match=message):
        labels_of(labels, names, 2 if names is None else None)


@pytest.mark.parametrize("text", ["--1", "+-1", "1-", "1e", "²", "٣"])
@pytest.mark.parametrize("suffix", [".txt", ".csv"])
def test_label_file_with_what_is_not_a_number_is_one_sentence(tmp_path, text, suffix):
    np.save(tmp_path / "p.npy", np.full((2, 2, 2), 0.5))
    (tmp_path / f"y{suffix}").write_text(f"label\n{text}\n0\n"[6 * (suffix == ".txt") :])
    with pytest.raises(errors.LabelError, match="labels are names"):
        vd.load(tmp_path / "p.npy", tmp_path / f"y{suffix}")


def test_first_line_of_single_column_may_be_any_number(tmp_path):
    np.save(tmp_path / "p.npy", np.full((2, 2, 2), 0.5))
    (tmp_path / "y.csv").write_text("1.0\n0.0\n")
    assert vd.load(tmp_path / "p.npy", tmp_path / "y.csv").labels.tolist() == [1, 0]
