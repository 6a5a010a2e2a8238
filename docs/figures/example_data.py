"""The data of the figures: what ships with veridical and with scikit-learn."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import softmax

import veridical as vd


@cache
def demo() -> vd.Predictions:
    """The shipped ensemble as probabilities in float64: 20 networks, 10,000 images."""
    shipped = vd.load_demo()
    return vd.Predictions(softmax(shipped.values.astype(np.float64), axis=-1), shipped.labels)


@cache
def demo_halves() -> tuple[vd.Predictions, vd.Predictions]:
    """Its halves for fitting and for scoring."""
    return demo().split(random_state=0)


@cache
def six_classifiers() -> vd.Predictions:
    """Six unlike classifiers, fitted on 500 of scikit-learn's digits, on the other 1,297 with their labels."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    images, labels = load_digits(return_X_y=True)
    fit, test, fit_labels, test_labels = train_test_split(
        images / 16, labels, train_size=500, random_state=0, stratify=labels
    )
    classifiers = {
        "logistic": LogisticRegression(C=0.1, max_iter=1000),
        "forest": RandomForestClassifier(50, max_depth=6, random_state=0),
        "neighbours": KNeighborsClassifier(10),
        "bayes": GaussianNB(var_smoothing=1e-2),
        "tree": DecisionTreeClassifier(max_depth=6, min_samples_leaf=5, random_state=0),
        "stump": DecisionTreeClassifier(max_depth=2, random_state=0),
    }
    probs = {name: c.fit(fit, fit_labels).predict_proba(test) for name, c in classifiers.items()}
    return vd.Predictions(probs, test_labels)


def percent(fraction: float, digits: int = 1) -> str:
    """A fraction as a page prints it, without the sign."""
    return f"{100 * fraction:.{digits}f}"


def rounded(values: object, digits: int = 4) -> list[float] | list[list[float]]:
    """Numbers of a figure, short enough to read in the file; the figure is drawn from these."""
    return np.round(np.asarray(values, dtype=float), digits).tolist()
