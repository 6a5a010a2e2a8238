"""Saved calibrators: what they hold, and what is refused."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from calibration_cases import labelled_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd
from veridical.calibrate import saving
from veridical.errors import FileFormatError, ParameterError, SavedFileError, ShapeError, UnfittedError

STORED = Path(__file__).with_name("ptde_v1.json")


@pytest.fixture
def saved(rng, tmp_path):
    """(path, fitted calibrator, predictions)."""
    probs, labels = labelled_ensemble(rng)
    calibrator = vd.PTDE(random_state=0).fit(probs, labels)
    calibrator.save(tmp_path / "cal.json")
    return tmp_path / "cal.json", calibrator, probs


def unsealed(path):
    """The document of a saved calibrator without its checksum, as a determined tamperer would leave it."""
    document = json.loads(path.read_text())
    document.pop("sha256", None)
    return document


def arrays_beside(path):
    """The file with the arrays of the calibrator at ``path``."""
    return path.with_name(json.loads(path.read_text())["arrays"])


def test_version_one_keeps_loading(rng):
    calibrator = vd.load_calibrator(STORED)
    assert isinstance(calibrator, vd.PTDE)
    assert (calibrator.n_sources_, calibrator.n_classes_) == (3, 2)
    # One bin lowered by 0.1, one raised by 0.2; three sources that agree have HV 0.
    rows = np.array([[0.6, 0.4], [0.75, 0.25]])
    np.testing.assert_allclose(calibrator.predict_confidence(np.stack([rows] * 3)), [0.5, 0.95], atol=1e-12)
    disagreeing = np.array([[[0.9, 0.1]], [[0.7, 0.3]], [[0.65, 0.35]]])
    assert calibrator.predict_confidence(disagreeing)[0] > 0.95


@pytest.mark.parametrize(("value", "message"), [(1e9, "exponent of the mean"), (None, "log-pool is made of")])
def test_log_pool_files_need_a_sane_exponent_of_the_mean(value, message, rng, tmp_path):
    path = tmp_path / "pool.json"
    vd.LogPool().fit(*labelled_ensemble(rng)).save(path)
    document = unsealed(path)
    document["pooling"]["mean_weight"] = value
    path.write_text(json.dumps(document))
    with pytest.raises(SavedFileError, match=message):
        vd.load_calibrator(path)


def test_file_says_what_it_is(saved):
    path, _, _ = saved
    document = json.loads(path.read_text())
    assert document["format"] == "veridical calibrator"
    assert document["schema"] == 1
    assert document["method"] == "ptde-kde"
    assert document["veridical"] == vd.__version__
    assert (document["n_sources"], document["n_classes"]) == (5, 4)
    assert document["parameters"]["random_state"] == 0
    assert [child.name for child in path.parent.iterdir()] == ["cal.json"]


def test_other_classes_and_sources_are_refused(saved, rng):
    loaded = vd.load_calibrator(saved[0])
    with pytest.raises(ShapeError, match="fitted for 4 classes and the predictions have 7"):
        loaded.predict(labelled_ensemble(rng, n_classes=7)[0])
    with pytest.raises(ShapeError, match="fitted for 5 sources and the predictions have 3"):
        loaded.predict(labelled_ensemble(rng, n_sources=3)[0])


def test_unfitted_calibrator_is_not_saved(tmp_path):
    with pytest.raises(UnfittedError, match="not fitted"):
        vd.Temperature().save(tmp_path / "cal.json")
    assert not list(tmp_path.iterdir())


def test_large_arrays_lie_beside(saved, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "LARGE", 10)
    _, calibrator, probs = saved
    path = tmp_path / "big" / "cal.json"
    path.parent.mkdir()
    calibrator.save(path)
    assert sorted(path.parent.iterdir()) == sorted([path, arrays_beside(path)])
    again = vd.load_calibrator(path)
    assert again.predict_proba(probs).tobytes() == calibrator.predict_proba(probs).tobytes()
    arrays_beside(path).write_bytes(b"PK no archive")
    with pytest.raises(SavedFileError, match="arrays"):
        vd.load_calibrator(path)
    document = unsealed(path)
    for name in ("../cal.json.npz", "/etc/passwd", 7):
        document["arrays"] = name
        path.write_text(json.dumps(document))
        with pytest.raises(SavedFileError, match="not beside it"):
            vd.load_calibrator(path)


def test_pickled_arrays_are_never_unpacked(saved, monkeypatch, tmp_path):
    monkeypatch.setattr(saving, "LARGE", 10)
    path = tmp_path / "cal.json"
    saved[1].save(path)
    np.savez(arrays_beside(path), a0=np.array([{"run": "me"}], dtype=object), a1=np.zeros(1))
    with pytest.raises(SavedFileError):
        vd.load_calibrator(path)


TAMPERINGS = {
    "not that of a calibrator": lambda d: d.update(format="something else"),
    "schema version 99": lambda d: d.update(schema=99),
    "schema version \\[1\\]": lambda d: d.update(schema=[1]),
    "schema version True": lambda d: d.update(schema=True),
    "unknown entries: \\['more'\\]": lambda d: d.update(more=1),
    "unknown entries: \\['veridical'\\]": lambda d: d.pop("veridical"),
    "written by version 7": lambda d: d.update(veridical=7),
    "no method is called": lambda d: d.update(method="os.system"),
    "no parameter 'evil'": lambda d: d["parameters"].update(evil=1),
    "needs the parameter 'hv_gain'": lambda d: d["parameters"].pop("hv_gain"),
    "n_bins is 'x'": lambda d: d["parameters"].update(n_bins="x"),
    "random_state is 'evil'": lambda d: d["parameters"].update(random_state="evil"),
    "hv_scale 'bogus' is unknown": lambda d: d["parameters"].update(hv_scale="bogus"),
    "hv_gain is None": lambda d: d["parameters"].update(hv_gain=None),
    "kind 'zzz' is unknown": lambda d: d["parameters"].update(kind="zzz"),
    "missing 'maybe' is unknown": lambda d: d["parameters"].update(missing="maybe"),
    "n_threads is -5": lambda d: d["parameters"].update(n_threads=-5),
    "sources_axis is 9": lambda d: d["parameters"].update(sources_axis=9),
    "sources_axis is True": lambda d: d["parameters"].update(sources_axis=True),
    "not a number of sources": lambda d: d.update(n_sources=-1),
    "sources or classes": lambda d: d.update(n_classes=True),
    "combined by": lambda d: d["pooling"].update(name="exec"),
    "described by \\['extra', 'floor'": lambda d: d["pooling"].update(extra=1),
    "mean is made of": lambda d: d["pooling"].update(weights={"shape": [1], "values": [1.0]}),
    "is made of": lambda d: d["state"].pop("psi_"),
    "hv_unit_ is None": lambda d: d["state"].update(hv_unit_=None),
    "do not belong": lambda d: d["state"]["psi_"].update(shape=[1], values=[0.0]),
    "where \\(3,\\) was promised": lambda d: d["state"]["psi_"].update(shape=[3]),
    "other than numbers": lambda d: d["state"]["psi_"].update(values=["1.0"] * 15),
    "psi_ is not made of finite numbers from -1 to 1": lambda d: d["state"]["psi_"]["values"].__setitem__(0, 1e300),
    "edges_ is not made of finite numbers from 0 to 1": lambda d: d["state"]["edges_"]["values"].__setitem__(-1, 50.0),
    "edges_ does not rise": lambda d: d["state"]["edges_"]["values"].reverse(),
    "hv_gain_ is -1.0": lambda d: d["state"].update(hv_gain_=-1.0),
    "hv_unit_ is array": lambda d: d["state"].update(hv_unit_={"shape": [1], "values": [0.5]}),
    "does not say in which": lambda d: d["state"].update(psi_={"shape": [15], "npz": "a0"}),
}


@pytest.mark.parametrize("message", TAMPERINGS)
def test_tampered_files(saved, message):
    path = saved[0]
    document = unsealed(path)
    TAMPERINGS[message](document)
    path.write_text(json.dumps(document))
    with pytest.raises(SavedFileError, match=message):
        vd.load_calibrator(path)


@settings(max_examples=100)
@given(cut=st.integers(0, 1400), junk=st.binary(max_size=20))
def test_truncated_and_overwritten_files(cut, junk, tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "cal.json"
    content = STORED.read_bytes()
    broken = content[: cut % len(content)] + junk
    path.write_bytes(broken)
    with pytest.raises(SavedFileError):
        vd.load_calibrator(path)


@settings(max_examples=200)
@given(data=st.data())
def test_any_value_anywhere(data, tmp_path_factory):
    """Whatever is put in place of any one value, the file loads as a sane calibrator or is refused in one sentence."""
    document = json.loads(STORED.read_text())
    node, key = document, data.draw(st.sampled_from(list(document)))
    while isinstance(node[key], dict) and node[key] and data.draw(st.booleans()):
        node = node[key]
        key = data.draw(st.sampled_from(list(node)))
    node[key] = data.draw(
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.floats(), max_size=3)
        )
    )
    path = tmp_path_factory.mktemp("hostile") / "cal.json"
    path.write_text(json.dumps(document))
    try:
        loaded = vd.load_calibrator(path)
    except SavedFileError as error:
        assert "\n" not in str(error)  # noqa: PT017  either outcome is fine
    else:
        assert loaded.n_classes_ >= 2


def test_load_rejects_missing_file(tmp_path):
    with pytest.raises(SavedFileError, match="there is no file"):
        vd.load_calibrator(tmp_path / "nothing.json")
    with pytest.raises(SavedFileError, match="cannot be read"):
        vd.load_calibrator(tmp_path)


def test_failed_save_leaves_the_old_file(saved, monkeypatch):
    path, calibrator, _ = saved
    before = path.read_bytes()
    calibrator.psi_ = np.array([np.nan])
    with pytest.raises(ValueError, match="JSON"):
        calibrator.save(path)
    assert path.read_bytes() == before
    assert [child.name for child in path.parent.iterdir()] == ["cal.json"]


def test_checksum_detects_a_changed_value(saved):
    path = saved[0]
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document))  # another layout is the same document
    vd.load_calibrator(path)
    document["state"]["psi_"]["values"][0] += 0.01  # a value that nothing else could tell from a fitted one
    path.write_text(json.dumps(document))
    with pytest.raises(SavedFileError, match="checksum is wrong"):
        vd.load_calibrator(path)


def test_small_calibrator_removes_the_arrays_of_a_large_one(saved, monkeypatch):
    path, calibrator, probs = saved
    monkeypatch.setattr(saving, "LARGE", 10)
    calibrator.save(path)
    assert arrays_beside(path).exists()
    path.with_name("cal.json.npz").write_bytes(b"somebody else's")
    monkeypatch.setattr(saving, "LARGE", 100_000)
    calibrator.save(path)
    assert sorted(child.name for child in path.parent.iterdir()) == ["cal.json", "cal.json.npz"]
    assert vd.load_calibrator(path).predict(probs).shape == (300,)


def test_save_interrupted_between_two_files_leaves_the_old_ones(saved, rng, monkeypatch):
    path, calibrator, probs = saved
    monkeypatch.setattr(saving, "LARGE", 10)
    calibrator.save(path)
    before = sorted(path.parent.iterdir())

    def interrupted(path, content):
        raise KeyboardInterrupt

    other = vd.PTDE(n_bins=12, random_state=0).fit(*labelled_ensemble(rng))
    with monkeypatch.context() as broken:
        broken.setattr(saving, "write_atomically", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other.save(path)
    assert sorted(path.parent.iterdir()) == before
    assert vd.load_calibrator(path).predict_proba(probs).tobytes() == calibrator.predict_proba(probs).tobytes()
    other.save(path)
    assert sorted(path.parent.iterdir()) == sorted([path, arrays_beside(path)])


def test_save_refuses_what_load_would_refuse(saved, tmp_path):
    calibrator = saved[1]
    with pytest.raises(FileFormatError, match=r"saved as \.json, not as .*cal\.npz"):
        calibrator.save(tmp_path / "cal.npz")
    with pytest.raises(ParameterError, match="combine was set to 'atde' after a fit with 'mean'; fit again"):
        calibrator.set_params(combine="atde").save(tmp_path / "other.json")
    assert [child.name for child in tmp_path.iterdir()] == ["cal.json"]


def npy_image(shape, content):
    """A .npy file whose header claims ``shape``."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


@pytest.mark.parametrize("damage", ["claims more", "deflated junk", "unknown packing", "another array", "flipped bit"])
def test_damaged_arrays(saved, monkeypatch, damage):
    path, calibrator, _ = saved
    monkeypatch.setattr(saving, "LARGE", 10)
    calibrator.save(path)
    beside = arrays_beside(path)
    document = unsealed(path)
    if damage == "flipped bit":
        content = bytearray(beside.read_bytes())
        content[content.index(calibrator.psi_.tobytes()) + 3] ^= 1
        beside.write_bytes(content)
    else:
        document.pop("arrays_sha256", None)
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
            shape = (10**13,) if damage == "claims more" else (14,)
            archive.writestr("a0.npy", npy_image(shape, np.linspace(0, 1, 14).tobytes()))
            archive.writestr("a1.npy", npy_image((15,), bytes(120)))
            if damage == "another array":
                archive.writestr("a2.npy", npy_image((15,), bytes(120)))
        content = bytearray(beside.read_bytes())
        if damage == "deflated junk":
            content[45:60] = b"\xff" * 15
        elif damage == "unknown packing":
            content = content.replace(b"\x08\x00", b"\x63\x00")
        beside.write_bytes(content)
    path.write_text(json.dumps(document))
    with pytest.raises(SavedFileError, match=r"the arrays of .* cannot be read from cal\.json\..*\.npz"):
        vd.load_calibrator(path)


AUTO_TAMPERINGS = {
    "schema version 99": lambda d: d["state"]["best_"].update(schema=99),
    "not that of a calibrator": lambda d: d["state"]["best_"].pop("format"),
    "unknown entries: \\['more'\\]": lambda d: d["state"]["best_"].update(more=1),
    "does not fit": lambda d: d.update(n_sources=7),
    "columns": lambda d: d["state"]["table_"][0].pop("score"),
    "score is 'low'": lambda d: d["state"]["table_"][0].update(score="low"),
    "not in the table": lambda d: d["state"].update(table_=[]),
    "candidate 'magic' is unknown": lambda d: d["parameters"].update(candidates=["magic"]),
    "keep_labels is 'no'": lambda d: d["parameters"].update(keep_labels="no"),
    "n_folds is 1": lambda d: d["parameters"].update(n_folds=1),
}


@pytest.mark.parametrize("message", AUTO_TAMPERINGS)
def test_tampered_auto(rng, tmp_path, message):
    path = tmp_path / "cal.json"
    probs, labels = labelled_ensemble(rng)
    vd.Auto(candidates=["platt", ("atde", "spline")], random_state=0).fit(probs, labels).save(path)
    document = unsealed(path)
    path.write_text(json.dumps(document))
    vd.load_calibrator(path)
    AUTO_TAMPERINGS[message](document)
    path.write_text(json.dumps(document))
    with pytest.raises(SavedFileError, match=message):
        vd.load_calibrator(path)


def test_bad_parameters_are_not_saved(saved):
    path, calibrator, _ = saved
    before = path.read_bytes()
    with pytest.raises(ParameterError, match="n_bins is 0"):
        calibrator.set_params(n_bins=0).save(path)
    assert path.read_bytes() == before
