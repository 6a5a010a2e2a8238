"""Highlighting of ``output`` blocks: what the Python block above them prints."""

from pygments.lexers.special import TextLexer


class OutputLexer(TextLexer):
    """Plain text."""

    name = "Output"
    aliases = ("output",)


def setup(app):
    """Register the lexer."""
    app.add_lexer("output", OutputLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
