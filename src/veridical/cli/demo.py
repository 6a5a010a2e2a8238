"""``veridical demo``."""

from __future__ import annotations

import click

from veridical.cli import with_options
from veridical.cli.output import Output, output_options


@click.command()
@click.option(
    "--out", "-o", type=click.Path(dir_okay=False), default="report.html", show_default=True, help="An HTML file."
)
@click.option("--jury", is_flag=True, help="The shipped jury instead: 29 language models that answer questions.")
@output_options
def command(out: str, jury: bool, output: Output) -> None:
    """Run the main job on the ensemble that ships with the package.

    Twenty small residual networks on CIFAR-10: their mean (DE), truth discovery (TDE, aTDE) and calibration by pTDE,
    scored on the half of the samples that was not used to fit.  Prints a table and writes an HTML report.

    With --jury: the answers of 29 language models to 11,990 questions with ten choices (MMLU-Pro, Apache-2.0), weighed
    without knowing the right ones, and calibrated on 100 known answers.
    """
    from veridical.data import load_demo
    from veridical.report import build_report

    if jury:
        _run_jury(out, output)
        return
    predictions = load_demo()
    with output.progress() as progress:
        report = build_report(predictions, title="The shipped ensemble", out=out, progress=progress)
    evaluation = report.data.evaluation
    assert evaluation is not None  # the shipped ensemble has labels
    output.text(f"{predictions}")
    output.table(evaluation.as_table(f"Scored on {evaluation.protocol}; errors and accuracy in %"))
    output.text(with_options(report.data.verdict))
    output.wrote(out)
    output.json(evaluation, verdict=report.data.verdict, out=out)


def _run_jury(out: str, output: Output) -> None:
    import numpy as np

    from veridical._outputs import check_report_target
    from veridical.cli.jury import print_jury
    from veridical.data import load_demo_jury
    from veridical.jury import judge
    from veridical.report.jury_page import write_jury_report

    check_report_target(out)
    votes = load_demo_jury()
    assert votes.labels is not None  # the shipped jury has answers
    known = np.full(votes.n_samples, -1)
    some = np.random.default_rng(0).permutation(votes.n_samples)[:100]
    known[some] = votes.labels[some]
    with output.progress() as progress:
        result = judge(votes, known, progress=progress)
    write_jury_report(result, out, title="The shipped jury")
    print_jury(result, output)
    rest = known < 0
    right = float((result.label[rest] == votes.labels[rest]).mean())
    majority = float((np.nansum(votes.values, axis=0).argmax(axis=1)[rest] == votes.labels[rest]).mean())
    confidence = float(result.confidence[rest].mean())
    output.text(
        f"On the {int(rest.sum()):,} other questions {100 * right:.1f}% of the answers are right (by majority "
        f"{100 * majority:.1f}%), and the mean confidence is {100 * confidence:.1f}%."
    )
    output.wrote(out)
    output.json(result, accuracy=right, majority_accuracy=majority, out=out)
