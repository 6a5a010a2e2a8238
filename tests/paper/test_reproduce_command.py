"""The program ``veridical reproduce``: good input, bad input, exit codes."""

import json

import numpy as np
import pytest
from programs import veridical, veridical_in_process
from small_ensembles import write_as_the_authors, write_npz


def run_program(*arguments, cwd=None):
    """The program as a user starts it."""
    return veridical("reproduce", *arguments, cwd=cwd)


def run(*arguments):
    """The same without a new process."""
    return veridical_in_process("reproduce", *arguments)


def assert_refused(done, *words):
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("Error: ")
    for word in words:
        assert word in done.stderr


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_npz(tmp_path_factory.mktemp("data") / "small.npz", 4, 300)


@pytest.mark.compiled
def test_table1_of_the_shipped_ensemble():
    done = run_program("table1", "--sources", "20", "--updates", "6")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bar where there is no terminal
    de = next(line for line in done.stdout.splitlines() if line.startswith("DE "))
    tde = next(line for line in done.stdout.splitlines() if line.startswith("TDE, 6 updates"))
    assert de.split()[1:] == ["5.90", "5.45", "0.434", "0.210", "5.45", "85.93"]
    assert [cell.rstrip("*") for cell in tde.split()[3:]] == ["4.79", "4.29", "0.428", "0.208", "4.29", "85.95"]


@pytest.mark.compiled
@pytest.mark.parametrize("option", [("--format", "json"), ("--json",), ("--json", "-q")], ids=" ".join)
def test_json_is_alone_on_stdout(small, option):
    done = run("table2", small, "--splits", "2", *option)
    assert done.returncode == 0, done.stderr
    stored = json.loads(done.stdout)
    assert (stored["schema"], stored["type"], stored["unit"]) == (1, "table", "fraction")
    assert stored["name"] == "table2"
    assert 0 < stored["rows"][0]["values"]["ece"]["mean"] < 1
    assert stored["settings"] == {"splits": 2, "random_state": 0, "setting": "library"}


@pytest.mark.compiled
def test_table1_prints_published_numbers(tmp_path):
    path, labels = write_as_the_authors(tmp_path)
    done = run("table1", path, "--labels", labels, "--sources", "5,10")
    assert done.returncode == 0, done.stderr
    assert "CIFAR10 PreResNet110 (deep ensemble), 10 sources" in done.stdout
    papers = [line.split()[1:] for line in done.stdout.splitlines() if line.strip().startswith("paper")]
    assert papers == [
        ["1.10", "0.50", "0.113", "0.054", "0.19", "96.28"],
        ["1.38", "1.35", "0.119", "0.056", "1.35", "96.32"],
        ["1.43", "1.38", "0.119", "0.056", "1.38", "96.28"],
    ]
    assert sum(line.strip().startswith("difference") for line in done.stdout.splitlines()) == 3


@pytest.mark.compiled
def test_output_is_the_same_each_time_and_for_any_number_of_threads(small, tmp_path):
    outputs = [run("table4", small, "--splits", "3", "--threads", n, "--format", "csv").stdout for n in (1, 2, 2)]
    assert outputs[0] == outputs[1] == outputs[2]
    assert outputs[0].count("\n") == 10
    for name in ("first.svg", "second.svg"):
        assert (
            run("figure3", small, "--out", tmp_path / name).stdout.replace("\n", " ").strip()
            == f"Wrote {tmp_path / name}"
        )
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


@pytest.mark.compiled
@pytest.mark.parametrize(("figure", "ending"), [("figure2", "png"), ("figure3", "pdf"), ("figureA", "svg")])
def test_figures_are_written(small, tmp_path, figure, ending):
    done = run(figure, small, "--out", tmp_path / f"it.{ending}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"it.{ending}").stat().st_size > 5000


@pytest.mark.compiled
def test_figures_print_their_numbers_as_json(small, tmp_path):
    done = run("figure3", small, "--out", tmp_path / "f.svg", "--json")
    stored = json.loads(done.stdout)
    assert (stored["type"], stored["out"]) == ("figure", str(tmp_path / "f.svg"))
    assert sum(stored["panels"][0]["counts"][0]) == 150
    assert run("figureA", small, "--out", tmp_path / "a.svg", "-q").stdout == ""


@pytest.mark.compiled
def test_tables_are_written_to_files(small, tmp_path):
    done = run("table3", small, "--splits", "1", "--format", "latex", "--out", tmp_path / "t.tex")
    assert (done.returncode, done.stdout.replace("\n", " ").strip()) == (0, f"Wrote {tmp_path / 't.tex'}")
    assert r"\toprule" in (tmp_path / "t.tex").read_text()


def test_bad_input_is_answered_with_one_sentence(small, tmp_path):
    path, labels = write_as_the_authors(tmp_path)
    assert_refused(run("table1", path), "has no labels", "--labels")
    assert run_program("table1", path).returncode == 2
    np.save(labels, np.zeros(17, dtype=int))
    assert_refused(run("table2", path, "--labels", labels), "17 labels", "400 samples")
    assert_refused(run("table1", small, "--sources", "2,50"), "4 sources", "50")
    assert_refused(run("table1", small, "--sources", "ten"), "--sources", "ten")
    assert_refused(run("table1", tmp_path / "nothing.npy"), "nothing.npy")
    assert_refused(run("figure3", small, "--method", "magic", "--out", tmp_path / "f.svg"), "magic", "opt-hist")
    assert_refused(run("figure2", small, "--out", tmp_path / "f.gif"), ".svg, .png or .pdf")
    assert_refused(run("figure2", small, "--out", tmp_path / "no" / "where.svg"), "cannot be written")
    assert sorted(path.name for path in tmp_path.iterdir()) == [labels.name, path.name]


def test_help_names_every_table_and_figure():
    done = run("--help")
    assert done.returncode == 0
    for name in ("table1", "table2", "table3", "table4", "figure2", "figure3", "figureA", "all"):
        assert f"  {name} " in done.stdout


@pytest.mark.compiled
def test_all_writes_a_page(small, tmp_path):
    done = run_program("all", small, "--splits", "1", "--sources", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Wrote reproduction/index.html\n"
    assert (tmp_path / "reproduction" / "table4.tex").is_file()
