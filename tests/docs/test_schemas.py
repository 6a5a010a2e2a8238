"""What ``--json`` prints agrees with the schemas that the reference publishes."""

import csv
import json

import jsonschema
import numpy as np
import pytest
from page_blocks import DOCS
from programs import veridical_in_process

import veridical as vd

pytestmark = pytest.mark.compiled

SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (DOCS / "reference" / "schemas").glob("*.json")}

#: Commands, in the order in which they need each other's files, and the types of their documents.
COMMANDS = [
    ("evaluate p.npz --methods members,mean,temperature", "evaluation"),
    ("calibrate p.npz --method temperature --out cal.json", "calibration"),
    ("calibrate p.npz --method log-pool --out pool.json", "calibration"),
    ("apply cal.json p.npz --out out.csv", "calibrated"),
    ("threshold cal.json p.npz --max-risk 0.2", "threshold"),
    ("export plain.json cal.onnx", "exported"),
    ("compare p.npz --methods mean,temperature", "comparison"),
    ("inspect p.npz", "inspection"),
    ("inspect unlabelled.npz", "inspection"),
    ("inspect pool.json", "calibrator"),
    ("methods", "methods"),
    ("report p.npz --out report.html", "report"),
    ("report unlabelled.npz --out report2.html", "report"),
    ("jury votes.csv --gold gold.csv", "jury"),
    ("jury votes.csv --out answers.csv", "jury"),
    ("reproduce table1 p.npz", "table"),
    ("reproduce figure3 p.npz --out figure.svg", "figure"),
    ("reproduce all p.npz --splits 1 --sources 2 --out reproduction", "reproduction"),
    ("compile", "compiled"),
    (
        "train --dataset npz --data images.npz --arch resnet8 --recipe one-cycle --epochs 1 --batch-size 16 "
        "--members 1 --out run",
        "training",
    ),
    ("predict run --data images.npz --out logits.npz", "predictions"),
]


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """(type, document) of every command."""
    folder = tmp_path_factory.mktemp("json")
    rng = np.random.default_rng(0)
    demo = vd.load_demo().select(sources=slice(3), samples=slice(300))
    answers = rng.integers(0, 3, 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        vd.save(demo, "p.npz")
        vd.save(vd.Predictions(demo.values, kind="logits"), "unlabelled.npz")
        vd.Temperature(kind="logits").fit(demo).save("plain.json")
        write_images("images.npz", rng)
        chosen = np.where(rng.random((4, 60)) < 0.8, answers, 0)
        votes = [[f"q{n}", f"m{s}", "ABC"[chosen[s, n]]] for s in range(4) for n in range(60)]
        write_table("votes.csv", ["item", "source", "label"], votes)
        write_table("gold.csv", ["item", "label"], [[f"q{n}", "ABC"[answers[n]]] for n in range(20)])
        printed = []
        for command, kind in COMMANDS:
            done = veridical_in_process(*command.split(), "--json")
            assert done.returncode == 0, f"{command}: {done.stderr}"
            printed.append((kind, json.loads(done.stdout)))
    return printed


def write_images(name, rng):
    images, labels = rng.integers(0, 256, (48, 16, 16, 3), dtype=np.uint8), np.arange(48) % 3
    train, test = slice(32), slice(32, None)
    np.savez(
        name, train_images=images[train], train_labels=labels[train], test_images=images[test], test_labels=labels[test]
    )


def write_table(name, heading, rows):
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows([heading, *rows])


def test_documents_agree_with_their_schemas(documents):
    for kind, document in documents:
        assert document["type"] == kind
        jsonschema.validate(document, SCHEMAS[kind], jsonschema.Draft202012Validator)
    assert {kind for kind, _ in documents} == SCHEMAS.keys()


def test_schemas_name_every_entry_of_their_documents(documents):
    unnamed = {
        (kind, name) for kind, content in documents for name in content.keys() - SCHEMAS[kind]["properties"].keys()
    }
    assert unnamed == set()


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schema_is_a_schema(kind):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[kind])
    assert SCHEMAS[kind]["properties"]["type"] == {"const": kind}


def test_wrong_documents_are_rejected():
    with pytest.raises(jsonschema.ValidationError, match="'mean_confidence' is a required property"):
        jsonschema.validate({"schema": 1, "type": "calibrated", "out": "a.csv", "n_samples": 3}, SCHEMAS["calibrated"])


def test_page_names_every_type():
    page = (DOCS / "reference" / "json.md").read_text()
    for kind in SCHEMAS:
        assert f"`{kind}`" in page
        assert f"schemas/{kind}.json" in page
