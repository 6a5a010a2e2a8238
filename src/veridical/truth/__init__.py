"""Truth discovery on the probability simplex: TDE, aTDE and HV."""

from veridical.truth.discovery import Truth, discover
from veridical.truth.projection import keep_labels

__all__ = ["Truth", "discover", "keep_labels"]
