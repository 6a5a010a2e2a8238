"""Tables: long form and one source, in text and in columns."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import veridical as vd
from veridical import errors
from veridical.cli.commands import program

LONG = """sample,source,label,cat,dog,owl
0,resnet,cat,0.7,0.2,0.1
0,densenet,cat,0.6,0.3,0.1
1,resnet,owl,0.1,0.2,0.7
"""


def load_csv(tmp_path, text, **options):
    (tmp_path / "table.csv").write_text(text)
    return vd.load(tmp_path / "table.csv", **options)


def test_long_form(tmp_path):
    loaded = load_csv(tmp_path, LONG)
    expected = [[[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], [[0.6, 0.3, 0.1], [np.nan] * 3]]
    np.testing.assert_array_equal(loaded.values, expected)
    assert loaded.source_names == ("resnet", "densenet")
    assert loaded.class_names == ("cat", "dog", "owl")
    assert loaded.labels.tolist() == [0, 2]
    assert loaded.kind == "probs"


def test_order_of_rows_and_columns_does_not_matter(tmp_path, rng):
    expected = rng.random((3, 12, 2))
    written = expected.tolist()
    rows = [f"{written[s][n][1]},{n},{n % 2},{s},{written[s][n][0]}" for s in range(3) for n in range(12)]
    rng.shuffle(rows)
    loaded = load_csv(tmp_path, "\n".join(["1,sample,label,source,0", *rows]), kind="logits")
    np.testing.assert_array_equal(loaded.values[..., ::-1], expected)
    assert loaded.source_names is None
    assert loaded.class_names == ("1", "0")
    assert loaded.labels.tolist() == [1 - n % 2 for n in range(12)]  # labels are names of columns


def test_named_samples_stay_in_order_of_appearance(tmp_path):
    loaded = load_csv(tmp_path, "sample,source,x,y\nimg9,a,1,0\nimg10,a,0,1\nimg10,b,0.5,0.5\nimg9,b,0,1\n")
    np.testing.assert_array_equal(loaded.values, [[[1, 0], [0, 1]], [[0, 1], [0.5, 0.5]]])


def test_table_of_one_source(tmp_path):
    loaded = load_csv(tmp_path, "label,cat,dog\ndog,0.5,0.5\n\ncat,,\n")
    np.testing.assert_array_equal(loaded.values, [[[0.5, 0.5], [np.nan, np.nan]]])
    assert loaded.labels.tolist() == [1, 0]
    numbered = load_csv(tmp_path, "sample,cat,dog,label\n2,0.5,0.5,1\n1,0.25,0.75,0\n")
    np.testing.assert_array_equal(numbered.values, [[[0.25, 0.75], [0.5, 0.5]]])
    assert numbered.labels.tolist() == [0, 1]


def test_byte_order_mark_quotes_and_whole_floats(tmp_path):
    (tmp_path / "excel.csv").write_bytes(b'\xef\xbb\xbflabel,"cat, big",dog\r\n1.0,0.5,0.5\r\n0.0, 1e-1 ,0.9\r\n')
    loaded = vd.load(tmp_path / "excel.csv")
    assert loaded.class_names == ("cat, big", "dog")
    assert loaded.labels.tolist() == [1, 0]
    np.testing.assert_array_equal(loaded.values, [[[0.5, 0.5], [0.1, 0.9]]])


def test_label_in_one_row_of_a_sample_is_enough(tmp_path):
    loaded = load_csv(tmp_path, "sample,source,label,x,y\n0,a,1,0.5,0.5\n0,b,,0.5,0.5\n")
    assert loaded.labels.tolist() == [1]
    assert load_csv(tmp_path, "sample,source,label,x,y\n0,a,,0.5,0.5\n").labels is None


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            LONG + "0,resnet,cat,0.1,0.2,0.7\n",
            errors.FileFormatError,
            "two rows for sample 0 of source resnet; keep one",
        ),
        (
            LONG.replace("0,densenet,cat", "0,densenet,dog"),
            errors.LabelError,
            "has label cat and label dog for sample 0",
        ),
        (LONG.replace("sample", "nr"), errors.FileFormatError, "a column source and no column sample"),
        (LONG.replace("cat,dog,owl", "cat,dog,dog"), errors.FileFormatError, "two columns called 'dog'"),
        (LONG.replace("cat,dog,owl", "cat,dog,"), errors.FileFormatError, r"column 6 of .*table.csv has no name"),
        (LONG.replace("0.3", "many"), errors.FileFormatError, "line 3 of .*: 'many' in column 'dog' is not a number"),
        (
            LONG.replace("owl,0.1,", "owl,"),
            errors.CorruptFileError,
            "line 4 of .* has 5 entries, and there are 6 columns",
        ),
        (
            LONG.replace("owl,0.1", "bat,0.1"),
            errors.LabelError,
            "sample 1 is 'bat', and the classes are: cat, dog, owl",
        ),
        (LONG.splitlines()[0], errors.FileFormatError, "column names and no rows"),
        ("sample,source,cat\n0,a,0.5\n", errors.ShapeError, "1 class column .*at least two"),
        ("sample,cat,dog\n0,1,0\n0,0,1\n", errors.FileFormatError, "two rows for sample 0 and no column source"),
        ("cat;dog\n0.5;0.5\n", errors.FileFormatError, "other than commas"),
        ("0.25,0.75\n0.5,0.5\n", errors.FileFormatError, "starts with numbers"),
        ("kind,x,y\nlogits,1,2\nprobs,1,0\n", errors.FileFormatError, "column kind .* both 'logits' and 'probs'"),
        ("kind,x,y\nscores,1,2\n", errors.UnknownNameError, "kind 'scores' is unknown; choose one of: probs"),
        ("dtype,x,y\nobject,1,2\n", errors.UnknownNameError, "dtype 'object' is unknown"),
    ],
)
def test_invalid_tables_are_rejected(tmp_path, text, error, message):
    with pytest.raises(error, match=message) as caught:
        load_csv(tmp_path, text)
    assert "table.csv" in str(caught.value)


def test_csv_that_is_not_text_is_rejected(tmp_path):
    (tmp_path / "latin.csv").write_bytes("café,thé\n0.5,0.5\n".encode("latin-1"))
    with pytest.raises(errors.CorruptFileError, match=r"not a \.csv table in UTF-8"):
        vd.load(tmp_path / "latin.csv")


def test_parquet_of_other_writers_is_read(tmp_path):
    table = pa.table(
        {
            "source": pa.array(["b", "b", "a"]).dictionary_encode(),
            "sample": pa.array([1, 0, 1], pa.int32()),
            "label": pa.array(["y", "x", None]),
            "x": pa.array([1, 2, None], pa.float32()),
            "y": pa.array([3, 4, 5], pa.int64()),
        }
    )
    pa.parquet.write_table(table, tmp_path / "logits_others.parquet")
    loaded = vd.load(tmp_path / "logits_others.parquet")
    np.testing.assert_array_equal(loaded.values, [[[2, 4], [1, 3]], [[np.nan, np.nan], [np.nan, 5]]])
    assert loaded.source_names == ("b", "a")
    assert loaded.labels.tolist() == [0, 1]
    assert loaded.kind == "logits"
    pa.parquet.write_table(table.append_column("z", pa.array(["p", "q", "r"])), tmp_path / "text.parquet")
    with pytest.raises(errors.DtypeError, match=r"column 'z' of .* is of type string; write numbers"):
        vd.load(tmp_path / "text.parquet")


def test_whole_numbers_without_gaps_stay_whole(tmp_path):
    whole = {"sample": [0, 0, 1], "source": [0, 1, 0], "x": [1, 2, 3], "y": [4, 5, 6]}
    pa.parquet.write_table(pa.table(whole).slice(0, 2), tmp_path / "whole.parquet")
    assert vd.load(tmp_path / "whole.parquet", kind="logits").dtype == np.int64
    pa.parquet.write_table(pa.table(whole), tmp_path / "gaps.parquet")
    np.testing.assert_array_equal(vd.load(tmp_path / "gaps.parquet").values[1], [[2, 5], [np.nan, np.nan]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("names", [["1", "0"], ["7", "8"], ["007", "+8"], ["0", "1"]])
def test_labels_come_back_if_class_names_are_numbers(tmp_path, names, suffix):
    predictions = vd.Predictions(np.full((2, 3, 2), 0.5), [names[0], names[1], names[1]], class_names=names)
    loaded = vd.load(vd.save(predictions, tmp_path / f"p{suffix}"))
    assert loaded.labels.tolist() == [0, 1, 1]
    assert loaded.class_names == (None if names == ["0", "1"] else tuple(names))


def test_class_names_that_are_numbers_may_be_written_as_floats(tmp_path):
    assert load_csv(tmp_path, "label,7,8\n8.0,0.5,0.5\n7.0,0.5,0.5\n").labels.tolist() == [1, 0]


def _rounded(digits, form):
    """Distributions with so many decimals, or significant digits."""
    probs = np.random.default_rng(digits).dirichlet(np.full(7, 0.3), size=(2, 300))
    return np.vectorize(lambda number: float(format(number, f".{digits}{form}")))(probs)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", "frames"])
@pytest.mark.parametrize(("digits", "form"), [(2, "f"), (4, "f"), (5, "f"), (5, "g"), (6, "f")])
def test_tolerance_of_sums_follows_the_digits_of_a_table(tmp_path, suffix, digits, form):
    probs = _rounded(digits, form)
    assert digits == 6 or abs(probs.sum(axis=-1) - 1).max() > 1e-5
    frames = {name: pd.DataFrame(source, columns=list("abcdefg")) for name, source in zip("st", probs, strict=True)}
    if suffix == "frames":
        predictions = vd.Predictions(frames)
    else:
        table = pd.concat([frame.assign(sample=range(300), source=name) for name, frame in frames.items()])
        table.to_csv(tmp_path / "p.csv", index=False) if suffix == ".csv" else table.to_parquet(
            tmp_path / "p.parquet", index=False
        )
        predictions = vd.load(tmp_path / f"p{suffix}")
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(300) < 0.7, probs.mean(axis=0).argmax(axis=1), rng.integers(0, 7, 300))
    evaluation = vd.evaluate(predictions, labels, methods=["members", "tde", "log-pool", "temperature"], floors=False)
    assert len(evaluation.methods) == 5
    beyond = probs.copy()
    beyond[1, 7, 0] += max(8 * 10.0**-digits, 1e-4)
    with pytest.raises(errors.NotNormalisedError, match=r"sample 7: .*renormalize=True"):
        vd.discover([pd.DataFrame(source, columns=list("abcdefg")) for source in beyond])


def test_files_of_one_table_each_keep_their_digits(tmp_path):
    for s, source in enumerate(_rounded(5, "f")):
        pd.DataFrame(source, columns=list("abcdefg")).to_csv(tmp_path / f"{s}.csv", index=False)
    predictions = vd.load(tmp_path)
    assert vd.discover(predictions).probs.shape == (300, 7)
    assert vd.discover(predictions.select(samples=slice(100))).probs.shape == (100, 7)


def test_tables_may_be_renormalized(tmp_path):
    (tmp_path / "p.csv").write_text("a,b\n3,1\n20,20\n")
    np.testing.assert_array_equal(vd.load(tmp_path / "p.csv", renormalize=True).values, [[[0.75, 0.25], [0.5, 0.5]]])
    with pytest.raises(errors.NotNormalisedError):
        vd.discover(vd.load(tmp_path / "p.csv"))
    result = CliRunner().invoke(program, ["inspect", str(tmp_path / "p.csv"), "--renormalize"])
    assert result.exit_code == 0, result.output
