"""Compiled loops: arrays in, arrays out.

Nothing here validates, reads files or knows about scikit-learn; callers hand over arrays that
:mod:`veridical.predictions` has checked.  Every public kernel has a plain-loop twin in
``tests/naive.py``.
"""
