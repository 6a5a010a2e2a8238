"""``veridical jury``."""

from __future__ import annotations

import click

from veridical._tables import Table
from veridical.cli import with_options
from veridical.cli.options import option_group, seed_option, split_names, vote_options
from veridical.cli.output import Output, output_options

#: Rows of the table of jurors in the terminal.
MOST_ROWS = 30
#: Rows of the table of jurors to look at.
MOST_FINDINGS = 12


@click.command()
@click.argument("votes", type=click.Path())
@click.option("--gold", type=click.Path(), help="Known answers to some items: a table with the columns item and label.")
@click.option("--classes", callback=split_names, metavar="A,B,...", help="All classes; default: those with votes.")
@click.option("--out", "-o", type=click.Path(dir_okay=False), help="A .csv file to write the answers to.")
@click.option("--report", "report_path", type=click.Path(dir_okay=False), help="Also write an HTML report.")
@option_group(*vote_options)
@seed_option
@output_options
def command(
    votes: str,
    gold: str | None,
    classes: list[str] | None,
    out: str | None,
    report_path: str | None,
    normalize: bool,
    abstain: list[str] | None,
    seed: int,
    output: Output,
) -> None:
    """The consensus of jurors who vote: an answer and a confidence for every item, and whom to believe.

    VOTES is a table, such as a .csv, with the columns item, source and label, one row per vote; a column confidence, or
    a column of probabilities per class instead of label, is used where there is one.  Jurors are weighed by how they
    agree over all items, and copies of a juror count once.  With --gold the confidence is calibrated.

    \b
    Examples:
      veridical jury votes.csv --out answers.csv
      veridical jury votes.csv --gold gold.csv --out answers.csv --report jury.html
    """
    from veridical._outputs import check_outputs, check_report_target
    from veridical.errors import FileFormatError
    from veridical.jury import judge
    from veridical.report.jury_page import write_jury_report

    if out is not None and not out.lower().endswith(".csv"):
        raise FileFormatError(f"answers cannot be written to {out!r}; use the extension .csv.")
    if report_path is not None:
        check_report_target(report_path)
    check_outputs({"--out": out, "--report": report_path}, [path for path in (votes, gold) if path is not None])
    with output.progress() as progress:
        result = judge(
            votes,
            gold,
            classes=classes,
            normalize=normalize,
            abstain=abstain or (),
            random_state=seed,
            progress=progress,
        )
    if out is not None:
        result.save(out)
    if report_path is not None:
        write_jury_report(result, report_path)
    print_jury(result, output)
    output.wrote(out, report_path)
    output.json(result, out=out, report=report_path)


def print_jury(result: object, output: Output) -> None:
    """Facts, the table of jurors, jurors to look at, and notes."""
    from veridical.jury import JuryResult
    from veridical.jury.result import COLUMNS, DASH

    assert isinstance(result, JuryResult)
    output.text(repr(result))
    output.text(result.distinct_jurors_in_words())
    heading, rows = result.rows()
    title = f"Jurors by weight; {COLUMNS}; {DASH}"
    output.table(Table.of(heading, rows[:MOST_ROWS], title))
    _say_left_out(len(rows) - MOST_ROWS, "Not shown, with smaller weights", output)
    if result.jurors_to_check:
        rows = [[finding.juror, finding.text] for finding in result.jurors_to_check]
        output.table(Table.of(["juror", "finding"], rows[:MOST_FINDINGS], "Jurors to look at"), of_words=True)
        _say_left_out(len(rows) - MOST_FINDINGS, "Also to look at", output)
    for note in result.notes:
        output.text(with_options(note))


def _say_left_out(n_left_out: int, what: str, output: Output) -> None:
    if n_left_out > 0:
        output.text(f"{what}: {n_left_out} juror{'s' * (n_left_out != 1)}; --json and --report show them.")
