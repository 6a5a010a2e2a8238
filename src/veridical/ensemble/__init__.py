"""Classifiers that are fitted, combined and calibrated together: the scikit-learn side of veridical."""

from veridical.ensemble.calibrated_ensemble import CalibratedEnsemble

__all__ = ["CalibratedEnsemble"]
