"""Juries: sources that vote on items, with few known answers or none."""

from veridical.jury.dawid_skene import DawidSkene, fit_dawid_skene
from veridical.jury.findings import JurorFinding
from veridical.jury.judge import judge
from veridical.jury.jurors import Juror
from veridical.jury.pairs import ErrorCorrelation
from veridical.jury.predictions import load_votes
from veridical.jury.result import JuryResult

__all__ = [
    "DawidSkene",
    "ErrorCorrelation",
    "Juror",
    "JurorFinding",
    "JuryResult",
    "fit_dawid_skene",
    "judge",
    "load_votes",
]
