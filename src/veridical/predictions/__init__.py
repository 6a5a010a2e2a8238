"""The :class:`Predictions` container, the validation of input, and prediction files."""

from veridical.predictions.container import Predictions, as_predictions

__all__ = ["Predictions", "as_predictions"]
