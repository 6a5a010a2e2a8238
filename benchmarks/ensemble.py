"""What a calibrated ensemble should serve, and how "auto" should choose: log loss on data that ships with scikit-learn.

    python benchmarks/ensemble.py [--seeds 10] [--methods identity temperature log-pool simplest auto]

Half of each data set is for training, half for the score, ten times.  Members are fitted out of fold once; then every
method is fitted on the same out-of-fold predictions and served in three ways:

refit     members fitted again on all training samples
folds     the folds' copies: each copy's predictions calibrated, then averaged
averaged  the folds' copies: their predictions averaged, then calibrated (what the calibrator was not fitted for)

Every number is a mean over seeds of the log loss; "behind" is the paired difference to refit and its standard error.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import veridical as vd
from veridical.ensemble.members import fit_member
from veridical.ensemble.out_of_fold import fit_out_of_fold, route_by_hand
from veridical.ensemble.sources import all_scores
from veridical.evaluation.choice import LOG_POOL_AND_OTHERS, fit_log_pool_or_better
from veridical.evaluation.methods import resolve_method
from veridical.predictions import Predictions

DATA = {"digits": load_digits, "breast cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris}
WAYS = ("refit", "folds", "averaged")


def members(seed: int) -> list[tuple[str, object]]:
    return [
        ("logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))),
        ("bayes", make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-3))),
        ("neighbours", make_pipeline(StandardScaler(), KNeighborsClassifier(10))),
        ("forest", RandomForestClassifier(50, random_state=seed)),
    ]


def calibrators(names: list[str], seed: int) -> dict[str, vd.calibrate.Calibrator | None]:
    """ "auto" is the ensemble's own choice; "simplest" is that of veridical.Auto among the same candidates."""
    made: dict[str, vd.calibrate.Calibrator | None] = {}
    options = {"objective": "distribution", "keep_labels": False, "random_state": seed}
    for name in names:
        if name == "auto":
            made[name] = None
        elif name == "simplest":
            made[name] = vd.Auto(candidates=LOG_POOL_AND_OTHERS, **options)
        elif name == "simplest of all":
            made[name] = vd.Auto(**options)
        else:
            made[name] = resolve_method(name).make(seed)
    return made


def losses(name: str, seed: int, names: list[str], seconds: dict[str, float]) -> dict[tuple[str, str], float]:
    """Log loss by (method, what is served)."""
    x, y = DATA[name](return_X_y=True)
    x, x_test, y, y_test = train_test_split(x, y, test_size=0.5, random_state=seed, stratify=y)
    classes = np.unique(y)
    parts = members(seed)
    routed = route_by_hand(parts, None, {})
    copies, calibration = fit_out_of_fold(
        parts, x, y, classes, cv=5, routed=routed, sample_weight=None, expand=False, refit=False, n_jobs=None
    )
    whole = [fit_member(n, m, x, y, classes, None, None, False, {})[0][0] for n, m in parts]
    served = [all_scores(copy, x_test, len(classes)) for copy in copies]
    refitted = all_scores(whole, x_test, len(classes))
    predictions = calibration.predictions(calibration.margin_scales(), classes)
    result = {}
    for method, calibrator in calibrators(names, seed).items():
        start = time.process_time()
        if calibrator is None:
            calibrator = fit_log_pool_or_better(predictions, seed).calibrator
        else:
            calibrator.fit(predictions)
        seconds[method] = seconds.get(method, 0.0) + time.process_time() - start

        def answer(scores: np.ndarray, calibrator: vd.calibrate.Calibrator = calibrator) -> np.ndarray:
            return calibrator.predict_proba(Predictions(scores, source_names=predictions.source_names))

        answers = {
            "refit": answer(refitted),
            "folds": np.mean([answer(scores) for scores in served], axis=0),
            "averaged": answer(np.mean(served, axis=0)),
        }
        for way, probs in answers.items():
            result[method, way] = log_loss(y_test, probs, labels=classes)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    names = ["identity", "temperature", "log-pool", "log-pool+temperature", "simplest", "auto"]
    parser.add_argument("--methods", nargs="+", default=names)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'data':<14} {'method':<22} {'refit':>8} {'folds':>8} {'averaged':>8}   folds behind refit")
    for name in options.data:
        seconds: dict[str, float] = {}
        table = [losses(name, seed, options.methods, seconds) for seed in range(options.seeds)]
        for method in options.methods:
            columns = np.array([[row[method, way] for way in WAYS] for row in table])
            apart = columns[:, 1] - columns[:, 0]
            error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else float("nan")
            means = " ".join(f"{mean:8.4f}" for mean in columns.mean(axis=0))
            print(
                f"{name:<14} {method:<22} {means}   {apart.mean():+.4f} ± {error:.4f}"
                f"   {seconds[method] / options.seeds:.2f} s to fit",
                flush=True,
            )


if __name__ == "__main__":
    main()
