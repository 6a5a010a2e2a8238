"""The verdict: the result in plain words."""

from __future__ import annotations

from veridical._names import printable
from veridical.evaluation import Evaluation, Inspection, MethodScores
from veridical.evaluation.advice import Advice
from veridical.evaluation.source_value import INFINITE, LEAST_PROBABILITY
from veridical.report.data import Tone

#: A source with less than this part of an equal share of trust stands apart from the others.
_STANDS_APART = 0.75
#: Where the mean gap makes up less than this part of the ECE, being too sure here and too doubtful there cancels out.
_ONE_SIDED = 0.5
#: An ECE up to so many times what perfect calibration shows at most is a slight miscalibration.
_SLIGHTLY = 1.5
#: Better calibration that costs more accuracy than this is not an improvement.
_ACCURACY_LOST = 0.005


def percent(value: float) -> str:
    """A fraction in percent, with the one decimal that samples of usual size support."""
    return f"{100 * value:.1f}%"


def verdict_of(
    evaluation: Evaluation | None,
    inspection: Inspection,
    method: str | None,
    title: str = "",
    advice: Advice | None = None,
) -> tuple[str, Tone]:
    """Sentences, and whether they are good news; ``title`` is the method's name in them."""
    if evaluation is None or method is None:
        words = [*_without_labels(inspection), *_outlier(inspection)]
        return " ".join(words), "unknown"
    words = [*evaluation.notes, calibration_sentence(evaluation, method, title)]
    words.append(_labels(evaluation["mean"], evaluation[method]))
    advised = () if advice is None else advice.sentences
    words += [*advised, *_on_sources(inspection)]
    return " ".join(filter(None, words)), _tone(evaluation, method)


def _tone(evaluation: Evaluation, method: str) -> Tone:
    before, after = evaluation["mean"].summary, evaluation[method].summary
    if before["accuracy"].value - after["accuracy"].value > _ACCURACY_LOST:
        return "bad"
    if evaluation.is_at_floor(method):
        return "good"
    return "better" if after["ece"].value < before["ece"].value else "bad"


def _subject(n_sources: int) -> str:
    return "Your one source" if n_sources == 1 else f"The mean of your {n_sources} sources"


def calibration_sentence(evaluation: Evaluation, method: str, title: str) -> str:
    """The calibration of the mean, and the effect of the method; ``title`` is the method's name."""
    subject, alone = _subject(evaluation.data.n_sources), method == "mean"
    before, after = evaluation["mean"], evaluation[method]
    row, new = before.summary["ece"], after.summary["ece"]
    was, now = percent(row.value), percent(new.value)
    floor = percent(new.floor or 0.0)
    if evaluation.is_at_floor("mean"):
        state = (
            f"{subject} cannot be told from calibrated with {before.summary.n_samples:,} samples: "
            f"ECE is {was}, where perfect calibration would show {percent(row.floor or 0.0)}"
        )
        if alone:
            return f"{state}."
        if evaluation.is_at_floor(method):
            return f"{state}. {title} has nothing to repair: ECE {_goes(was, now)}, within the noise."
        if len(evaluation.halves(method)) > 1:
            return f"{state}. With {title} ECE is {_on_two_halves(evaluation, method)}."
        if new.value <= row.value:  # a sharper method has a lower floor
            return f"{state}. With {title} ECE {_goes(was, now)}, which is above its own noise floor of {floor}."
        return f"{state}. {title} makes it worse: ECE rises to {now}, above its noise floor of {floor}."
    state = f"{subject} {_how_it_errs(before)}"
    if alone:
        return f"{state}; ECE is {was}, where perfect calibration would show {floor}."
    if new.value >= row.value:
        return f"{state}; {title} does not help: ECE {_goes(was, now)}, and the noise floor is {floor}."
    if len(evaluation.halves(method)) > 1:
        return f"{state}; {title} brings ECE from {was} to {_on_two_halves(evaluation, method)}."
    where = "at" if evaluation.is_at_floor(method) else "still above"
    return f"{state}; {title} brings ECE from {was} to {now}, {where} the noise floor of {floor}."


def _on_two_halves(evaluation: Evaluation, method: str) -> str:
    """The ECE on both halves, each after a fit on the other one, and whether calibration can be claimed."""
    halves = evaluation.halves(method)
    first, second = (scores.summary["ece"] for scores in halves)
    above = [scores.summary["ece"] for scores in evaluation.above_floor(method)]
    if not above:
        swapped = f"({percent(second.value)} with the halves swapped)"
        return f"{percent(first.value)} {swapped}, at the noise floor of {percent(first.floor or 0.0)}"
    worst = max(above, key=lambda row: row.value)
    # An error just above what chance allows is shown with the digit that tells.
    most = worst.most_by_chance(len(halves))
    digits = 2 if percent(worst.value) == percent(most) else 1
    shown, swapped, floor, limit = (
        f"{100 * x:.{digits}f}%" for x in (first.value, second.value, worst.floor or 0.0, most)
    )
    slightly = all(row.value <= _SLIGHTLY * row.most_by_chance(len(halves)) for row in above)
    return (
        f"{shown} ({swapped} with the halves swapped), above the noise floor of {floor} (by chance at most {limit}) "
        f"{'on both' if len(above) > 1 else 'on one'}: {'slightly' if slightly else 'still'} miscalibrated"
    )


def _goes(was: str, now: str) -> str:
    return f"stays at {now}" if was == now else f"goes from {was} to {now}"


def _how_it_errs(scores: MethodScores) -> str:
    points = f"{100 * abs(scores.gap):.1f} points"
    if abs(scores.gap) < _ONE_SIDED * scores.summary["ece"].value:
        direction = "above" if scores.gap > 0 else "below"
        return (
            "is too sure of some samples and not sure enough of others, which cancels out to "
            f"{points} {direction} its accuracy"
        )
    return f"is {'over' if scores.gap > 0 else 'under'}-confident by {points}"


def _labels(before: MethodScores, after: MethodScores) -> str:
    if after.method == before.method:
        return ""
    if not after.labels_changed:
        return "No label changes."
    was, now = before.summary["accuracy"].value, after.summary["accuracy"].value
    s = "" if after.labels_changed == 1 else "s"
    return (
        f"{after.labels_changed:,} of {after.summary.n_samples:,} labels change{'s' * (s == '')}, "
        f"and accuracy goes from {percent(was)} to {percent(now)}."
    )


def _without_labels(inspection: Inspection) -> list[str]:
    data = inspection.data
    samples = f"{data.n_samples:,} sample{'s' * (data.n_samples != 1)}"
    if data.n_sources == 1:
        return [f"One source, {samples}, no labels: how well calibrated it is cannot be measured."]
    agreement = percent(inspection.mean_agreement)
    return [
        f"{data.n_sources} sources, {samples}, no labels: how well calibrated they are cannot be measured.",
        f"On average a source names the same label as the mean for {agreement} of the samples.",
    ]


def stands_apart(inspection: Inspection) -> bool:
    """Whether, without labels, the least trusted source is trusted clearly less than an equal share."""
    reliability = inspection.sources[inspection.outlier].mean_reliability
    return inspection.least_trusted != "" and reliability < _STANDS_APART * inspection.equal_share


def _outlier(inspection: Inspection) -> list[str]:
    """A source that truth discovery trusts clearly less than the others; for predictions without labels."""
    if not stands_apart(inspection):
        return []
    source = inspection.sources[inspection.outlier]
    return [
        f"{printable(source.name)} stands apart from the others: truth discovery trusts it "
        f"{percent(source.mean_reliability)}, where {percent(inspection.equal_share)} would be an equal share."
    ]


def _on_sources(inspection: Inspection) -> list[str]:
    """Where the mean is not better than its best source, and which sources harm it; labels decide."""
    value = inspection.value
    if value is None:
        return []
    on_best = value.best_sentence.replace(INFINITE, f", where probability 0 counts as {LEAST_PROBABILITY:g},")
    return [printable(on_best), printable(value.harm_sentence)]
