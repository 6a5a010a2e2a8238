"""Reliability of sources from all samples together, without labels: the consensus."""
