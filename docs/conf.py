"""Sphinx configuration of the site; ``docs/build`` builds it with warnings as errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent / "src"))

from veridical import __version__  # noqa: E402

project = "veridical"
author = "The veridical authors"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "cli_pages", "math_markup", "output_blocks"]
exclude_patterns = ["_build", "figures/*.py", "numbers"]
nitpicky = True
# Types and names of other projects, which an offline build cannot look up, and words of numpydoc's type lines.
nitpick_ignore_regex = [(r"py:.*", r"(?!veridical).*"), (r"py:.*", r"veridical\..*\._.*")]

myst_enable_extensions = ["dollarmath", "substitution", "colon_fence", "deflist"]
myst_heading_anchors = 3
#: Numbers that scripts wrote: ``{{ demo.ece_mean }}`` is the entry ``ece_mean`` of ``numbers/demo.json``.
myst_substitutions = {path.stem.replace("-", "_"): json.loads(path.read_text()) for path in HERE.glob("numbers/*.json")}

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

smartquotes = False  # two hyphens begin an option
html_theme = "furo"
html_math_renderer = "mathml"
html_title = "veridical"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
