"""HTML pages from templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import jinja2


def html_template(folder: Traversable, name: str) -> jinja2.Template:
    """The template ``name``, which may import others of its folder: values are escaped, unknown names are errors."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda other: folder.joinpath(other).read_text(encoding="utf-8")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name)
