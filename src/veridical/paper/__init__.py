"""The paper's protocol: its tables and figures from any ensemble's predictions, beside its own numbers."""
