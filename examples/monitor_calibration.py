"""Monitor the calibration of a deployed classifier: one state per hour, merged by day and week, with alerts.

    python examples/monitor_calibration.py [--out FOLDER] [--hours N] [--drift-from HOUR]

The stream is simulated: a classifier with ten classes answers a few thousand requests per hour for a week.  It is
calibrated at first; from some hour on the inputs change slowly, and it becomes over-confident.  Every hour the service
keeps a ``CalibrationState``, a JSON file of fixed size, and forgets the predictions.

The monitor reads nothing but these files.  An hour is suspicious if its KS error exceeds the 99 % quantile of its own
noise floor: what the error would be, with as many requests of the same confidences, under perfect calibration.  A fixed
threshold would ring at night, when there are few requests and any error is large.  Two suspicious hours in a row are
an alert: under perfect calibration this happens in a week with a probability of less than 2 %.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from veridical.metrics import CalibrationState

LEVEL = 0.99


def softmax(logits: np.ndarray) -> np.ndarray:
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def requests(hour: int, drift_from: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels, which arrive later in practice, and predictions of one hour."""
    per_hour = int(2500 + 2000 * np.sin(2 * np.pi * (hour - 9) / 24))  # fewer at night
    logits = 2.5 * rng.standard_normal((per_hour, 10))
    drift = 0.004 * max(hour - drift_from, 0)  # the evidence in the inputs fades; the classifier does not notice
    true = softmax((1 - drift) * logits)
    labels = (true.cumsum(axis=1) < rng.random((per_hour, 1))).sum(axis=1)
    return np.minimum(labels, 9), softmax(logits)


def serve(folder: Path, hours: int, drift_from: int, seed: int) -> None:
    """The service: predict, update the state of the hour, save it."""
    rng = np.random.default_rng(seed)
    for hour in range(hours):
        state = CalibrationState()
        labels, probs = requests(hour, drift_from, rng)
        for batch in np.array_split(np.arange(len(labels)), 4):  # states take batches as they come
            state.update(labels[batch], probs[batch])
        state.save(folder / f"hour-{hour:03d}.json")


def load_states(folder: Path) -> list[CalibrationState]:
    """All hours, in order."""
    return [CalibrationState.load(path) for path in sorted(folder.glob("hour-*.json"))]


def is_suspicious(state: CalibrationState) -> bool:
    """Whether the KS error exceeds what chance explains."""
    floor = state.noise_floors(["ks_error"], n_draws=200, quantiles=[LEVEL])["ks_error"]
    return state.compute()["ks_error"] > floor.quantiles[LEVEL]


def alerts(states: list[CalibrationState]) -> Iterator[int]:
    """Hours at which the hour itself and the hour before are suspicious."""
    before = False
    for hour, state in enumerate(states):
        now = is_suspicious(state)
        if now and before:
            yield hour
        before = now


def print_days(states: list[CalibrationState]) -> None:
    """One line per day and one for all days, from merged states."""
    days = [states[start].merge(*states[start + 1 : start + 24]) for start in range(0, len(states), 24)]
    named = [(f"day {number}", day) for number, day in enumerate(days, start=1)]
    named.append(("all", days[0].merge(*days[1:])))
    print("        requests  accuracy  confidence   ECE (± bound)      KS   floor of KS")
    for name, state in named:
        summary = state.compute()
        floor = state.noise_floors(["ks_error"], quantiles=[LEVEL])["ks_error"].quantiles[LEVEL]
        confidence = summary.curve.counts @ summary.curve.confidence / summary.n_samples
        print(
            f"{name:<6}  {summary.n_samples:>8,}  {100 * summary['accuracy']:>7.2f}%  {100 * confidence:>9.2f}%  "
            f"{100 * summary['ece']:>5.2f} ± {100 * summary.bounds['ece']:.3f}%  {100 * summary['ks_error']:>5.2f}%  "
            f"{100 * floor:>11.2f}%"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="keep the states in this folder")
    parser.add_argument("--hours", type=int, default=7 * 24)
    parser.add_argument("--drift-from", type=int, default=96, metavar="HOUR")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        serve(folder, options.hours, options.drift_from, options.seed)
        states = load_states(folder)
        print_days(states)
        size = sum(path.stat().st_size for path in folder.glob("hour-*.json"))
        print(f"{len(states)} states, {size / 1e6:.1f} MB in all")
        hours = list(alerts(states))
        print(f"first alert at hour {hours[0]}, {len(hours)} in all" if hours else "no alert")


if __name__ == "__main__":
    main()
