"""Formulas as MathML, which browsers draw without a script."""

from latex2mathml.converter import convert


def _inline(translator, node):
    translator.body.append(convert(node.astext()))
    _skip()


def _block(translator, node):
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>\n')
    _skip()


def _skip():
    from docutils.nodes import SkipNode

    raise SkipNode


def setup(app):
    """Register the renderer; conf.py selects it."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
