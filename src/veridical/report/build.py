"""The report as an object: its numbers, its page, its figures."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veridical._atomic import storage_errors, write_atomically
from veridical._dispatch import also_out_of_memory
from veridical._outputs import check_report_target
from veridical._progress import Progress
from veridical.evaluation import Calibration
from veridical.evaluation.engine import Engine
from veridical.evaluation.facts import labelled
from veridical.evaluation.fitting import fit_with_engine, resolve_calibrator
from veridical.plots.style import FIGURE_FORMATS
from veridical.predictions.validation import InputKind, check_choice
from veridical.report.data import ReportData
from veridical.report.figures import all_figures
from veridical.report.html_page import render_html
from veridical.report.prepare import N_STAGES, Stages, choose_methods, prepare_report, report_on
from veridical.report.svg import image_bytes


@dataclass(frozen=True)
class Report:
    """The result of :func:`build_report`.

    Attributes
    ----------
    data : ReportData
        Every number in the report.
    html : str
        One self-contained page.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> report = vd.build_report(predictions, method="temperature", intervals=False)
    >>> report.data.method_title
    'TS'
    """

    data: ReportData
    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; it appears whole or not at all, and never in place of a file that is not HTML."""
        target = check_report_target(path)
        write_atomically(target, self.html.encode())
        return target

    def figures(self, directory: str | os.PathLike[str], format: str = "svg") -> list[Path]:
        """Write every figure as a file of its own, for papers.

        Parameters
        ----------
        directory : path
            Made where it does not exist.
        format : {"svg", "png", "pdf"}

        Returns
        -------
        list of Path
        """
        check_choice(format, FIGURE_FORMATS, "format")
        target = Path(directory)
        with storage_errors(target):
            target.mkdir(parents=True, exist_ok=True)
        paths = []
        for drawing in all_figures(self.data, legends=True):
            path = target / f"{drawing.name}.{format}"
            write_atomically(path, image_bytes(drawing, format))
            paths.append(path)
        return paths

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that neither its style nor its script meets the notebook's."""
        return (
            f'<iframe title="{html.escape(self.data.title)}" sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:44rem;border:0" srcdoc="{html.escape(self.html)}"></iframe>'
        )


@also_out_of_memory()
def build_report(
    predictions: Any,
    labels: Any = None,
    *,
    method: str = "ptde",
    methods: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    title: str | None = None,
    random_state: int = 0,
    intervals: bool = True,
    progress: Progress | None = None,
) -> Report:
    """One self-contained HTML page about an ensemble: the verdict in plain words, then the evidence.

    Calibrators are fitted on one random half of the samples, and everything before and after is scored on the other,
    as in :func:`veridical.evaluate`, whose numbers these are.  What needs no fitting (sources, disagreement, number of
    sources) is about all samples.

    Parameters
    ----------
    predictions : Predictions, or array of shape (S, N, L)
    labels : array of N integers, optional
        Where ``predictions`` have none.  Without labels the report is about sources and disagreement alone.
    method : str
        The method that the verdict is about: a calibrator, "tde", "atde", or "mean" for the plain ensemble.
    methods : sequence of str, optional
        Methods to show beside it; default "mean", "tde", "atde" and "temperature".
    parameters : dict, optional
        For the calibrator that ``method`` names, as :func:`veridical.fit_calibrator` takes them.
    out : path, optional
        Write the page there (.html), whole or not at all, and never in place of a file that is not HTML.
    kind, sources_axis
        As in :func:`veridical.discover`.
    title : str, optional
    random_state : int
        Decides the halves, floors and intervals.
    intervals : bool
        Put bootstrap intervals beside all metrics; they take most of the time.
    progress : callable, optional
        Called as ``progress(done, total, what)``.

    Returns
    -------
    Report

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.7, 0.3], [0.2, 0.8]]])
    >>> report = vd.build_report(probs)
    >>> report.data.verdict
    '2 sources, 2 samples, no labels: how well calibrated they are cannot be measured. On average a source names the \
same label as the mean for 75.0% of the samples.'
    >>> report.html.startswith("<!doctype html>")
    True
    """
    if out is not None:
        check_report_target(out)
    data = prepare_report(
        predictions,
        labels,
        method=method,
        parameters=parameters,
        methods=methods,
        kind=kind,
        sources_axis=sources_axis,
        title=title,
        random_state=random_state,
        intervals=intervals,
        progress=progress,
    )
    return finish_report(data, out, progress)


def finish_report(data: ReportData, out: str | os.PathLike[str] | None, progress: Progress | None) -> Report:
    """The page of a report, written to ``out`` unless that is None."""
    report = Report(data, render_html(data))
    if out is not None:
        report.save(out)
    if progress is not None:
        progress(1, 1, "done")
    return report


def calibrate_with_report(
    predictions: Any,
    labels: Any = None,
    *,
    method: str = "auto",
    out: str | os.PathLike[str] | None = None,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    title: str | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> tuple[Calibration, Report]:
    """Fit a calibrator as :func:`veridical.fit_calibrator` does, with a report on it; each fit is made once.

    Parameters
    ----------
    out : path, optional
        Write the report there, whole or not at all.
    predictions, labels, method, kind, sources_axis, title, random_state, n_threads, progress, **parameters
        As in :func:`veridical.fit_calibrator` and :func:`veridical.build_report`.

    Returns
    -------
    Calibration, Report

    Examples
    --------
    >>> import veridical as vd
    >>> from veridical.report import calibrate_with_report
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(300))
    >>> calibration, report = calibrate_with_report(predictions, method="temperature")
    >>> calibration.method, report.data.method
    ('temperature', 'temperature')
    """
    labelled_predictions = labelled(predictions, labels, kind, sources_axis)
    chosen = resolve_calibrator(method, parameters)
    engine = Engine(labelled_predictions, n_threads=n_threads)
    shown = choose_methods(method, None, labelled_predictions.n_sources, parameters)[1]
    stages = Stages(progress, len(shown) + 1 + N_STAGES)
    calibration, run = fit_with_engine(
        engine, chosen, random_state, stages.within(len(shown) + 1), shown=shown, options={"intervals": True}
    )
    data = report_on(
        engine,
        run,
        run.outcomes[calibration.judged].method,
        run.evaluation.data,
        title,
        random_state,
        stages.within(N_STAGES),
        calibration.advice,
    )
    report = Report(data, render_html(data))
    if out is not None:
        report.save(out)
    return calibration, report
