"""Names that a terminal would act on are made harmless wherever they are printed."""

import numpy as np
import pytest
from programs import veridical_in_process

import veridical as vd
from veridical import errors
from veridical._names import natural_order, one_line, printable, shortened

HOSTILE = ["\x1b]0;owned\x07cat", "two\nlines", "\x9b31mred", "half \ud800", "\u202egnp.exe", "\u200fgnp", "a\u200bb"]


@pytest.mark.parametrize("name", HOSTILE)
def test_printable_names_have_one_harmless_line(name):
    shown = printable(name)
    assert shown.isprintable()
    shown.encode("utf-8")


@pytest.mark.parametrize("name", ["café", "日本語", "a b", "naïve 😀", ""])
def test_printable_leaves_ordinary_names_alone(name):
    assert printable(name) == name


def test_natural_order_counts():
    names = ["m10", "m9", "M1", "m", "10", "9", "m09", "1.5"]
    assert sorted(names, key=natural_order) == ["1.5", "9", "10", "M1", "m", "m09", "m9", "m10"]


@pytest.mark.parametrize("name", HOSTILE)
def test_error_messages_are_one_harmless_line(name):
    for kind in (errors.ParameterError, errors.UnknownNameError, errors.StorageError, errors.NotConvergedWarning):
        assert str(kind(f"no source is called {name}.")) == f"no source is called {printable(name)}."
    predictions = vd.Predictions(np.full((2, 3, 2), 0.5), source_names=[name, "b"])
    with pytest.raises(errors.ParameterError) as caught:
        predictions.select(sources=["absent"])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", HOSTILE[:3])
def test_commands_print_names_harmlessly(tmp_path, name):
    """inspect prints the names of sources, and an error the name of a file."""
    rng = np.random.default_rng(0)
    predictions = vd.Predictions(rng.dirichlet([1, 1], (3, 20)), rng.integers(0, 2, 20), source_names=[name, "b", "c"])
    path = vd.save(predictions, tmp_path / "p.npz")
    done = veridical_in_process("inspect", path)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        assert line.isprintable(), line
    done = veridical_in_process("inspect", tmp_path / f"{name}.npz")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.strip().isprintable()


def test_long_names_lose_their_middle():
    assert shortened("a" * 200) == "a" * 200
    assert shortened("a" * 10_000 + "/model.npy") == "a" * 187 + "…" + "aa/model.npy"


@pytest.mark.parametrize("name", ["n" * 10_000, "a b " * 2_500])
def test_messages_with_very_long_names_are_cut(name):
    for kind in (errors.ParameterError, errors.UnknownNameError, errors.NotConvergedWarning):
        message = str(kind(f"no source is called {name}; choose another."))
        assert len(message) <= 2_000
        assert message.startswith("no source is called")
        assert message.endswith("another.")


def test_tables_with_very_long_names_are_cut(tmp_path):
    rng = np.random.default_rng(0)
    long = "n" * 10_000
    predictions = vd.Predictions(rng.dirichlet([1, 1], (3, 20)), rng.integers(0, 2, 20), source_names=[long, "b", "c"])
    assert len(str(vd.inspect(predictions))) < 5_000
    path = vd.save(predictions, tmp_path / "p.csv")
    done = veridical_in_process("inspect", path)
    assert done.returncode == 0, done.stderr
    assert "…" in done.stdout
    assert len(done.stdout) < 10_000
    assert long in veridical_in_process("inspect", path, "--json").stdout


def test_messages_have_no_addresses():
    assert one_line(f"{object()} is not a label.") == "<object> is not a label."
