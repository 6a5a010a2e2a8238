"""What comes in: the :class:`Predictions` container and the checks everything passes through."""

from veridical.predictions.container import Predictions, as_predictions

__all__ = ["Predictions", "as_predictions"]
