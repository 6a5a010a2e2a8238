"""A calibrated ensemble against scikit-learn's own ways, on data that ships with scikit-learn.

    python examples/calibrated_ensemble.py [--seeds 10] [--data digits "breast cancer" wine iris]

The same four members (logistic regression, naive Bayes, neighbours, a forest) are

- averaged (``VotingClassifier``, soft),
- averaged and calibrated (``CalibratedClassifierCV`` around it, with each of its methods),
- stacked (``StackingClassifier``),
- combined and calibrated by ``veridical.CalibratedEnsemble``.

Half of the samples are for fitting, half for the scores, once per seed; all methods see the same halves.  The last two
columns are the difference in log loss to the calibrated ensemble, its standard error over the seeds, and in how many
seeds the calibrated ensemble was better.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import veridical as vd
from veridical import metrics

DATA = {"digits": load_digits, "breast cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris}
OURS = "CalibratedEnsemble"


def members(seed: int) -> list[tuple[str, object]]:
    return [
        ("logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))),
        ("bayes", make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-3))),
        ("neighbours", make_pipeline(StandardScaler(), KNeighborsClassifier(10))),
        ("forest", RandomForestClassifier(50, random_state=seed)),
    ]


def classifiers(seed: int) -> dict[str, object]:
    voting = VotingClassifier(members(seed), voting="soft")
    return {
        OURS: vd.CalibratedEnsemble(members(seed), random_state=seed),
        "voting": voting,
        **{
            f"voting, {method}": CalibratedClassifierCV(voting, method=method, cv=5)
            for method in ("sigmoid", "isotonic", "temperature")
        },
        "stacking": StackingClassifier(members(seed), LogisticRegression(max_iter=1000), cv=5),
    }


def scores(name: str, seed: int) -> dict[str, list[float]]:
    """Log loss, Brier score, ECE and accuracy of every classifier."""
    x, y = DATA[name](return_X_y=True)
    x, x_test, y, y_test = train_test_split(x, y, test_size=0.5, random_state=seed, stratify=y)
    result = {}
    for title, classifier in classifiers(seed).items():
        probs = classifier.fit(x, y).predict_proba(x_test)
        result[title] = [
            log_loss(y_test, probs),
            metrics.brier(y_test, probs),
            100 * metrics.ece(y_test, probs),
            100 * metrics.accuracy(y_test, probs),
        ]
    return result


def print_table(table: dict[str, np.ndarray]) -> None:
    """``table``: title -> (seeds, 4)."""
    ours = table[OURS][:, 0]
    for title, rows in table.items():
        loss, brier, ece, accuracy = rows.mean(axis=0)
        line = f"  {title:<20} {loss:8.4f} {brier:8.4f} {ece:6.2f}% {accuracy:6.2f}%"
        if title != OURS:
            behind = rows[:, 0] - ours
            error = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 else float("nan")
            line += f"   {behind.mean():+.4f} ± {error:.4f}   {np.mean(behind > 0):4.0%}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    whole: list[dict[str, np.ndarray]] = []
    for name in options.data:
        rows = [scores(name, seed) for seed in range(options.seeds)]
        whole.append({title: np.array([row[title] for row in rows]) for title in rows[0]})
        print(f"{name:<22} log loss    Brier    ECE     acc.   behind in log loss  ours is better")
        print_table(whole[-1])
    if len(whole) > 1:
        print(f"{'mean of all':<22} log loss    Brier    ECE     acc.   behind in log loss  ours is better")
        print_table({title: np.mean([table[title] for table in whole], axis=0) for title in whole[0]})


if __name__ == "__main__":
    main()
