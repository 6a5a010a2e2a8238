"""The directive ``command-line``: help, options and arguments of every command, from the program itself."""

import inspect

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList


class CommandLine(Directive):
    """One section per command, sub-commands included."""

    has_content = False

    def run(self):
        """Sections made from click's own objects."""
        from veridical.cli.commands import program

        context = click.Context(program, info_name="veridical")
        return [self._section(path, command) for path, command in _commands(program, context, "veridical")]

    def _section(self, path, command):
        section = nodes.section(ids=[nodes.make_id(path)], names=[path])
        section += nodes.title(path, path)
        lines = StringList(_description(path, command), source=f"--help of {path}")
        self.state.nested_parse(lines, self.content_offset, section)
        return section


def _commands(command, context, path):
    """(path, command) of every command below ``command``, in the program's own order."""
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        here = f"{path} {name}"
        yield here, child
        if isinstance(child, click.Group):
            yield from _commands(child, click.Context(child, info_name=name, parent=context), here)


def _description(path, command):
    """reStructuredText of one command."""
    context = click.Context(command, info_name=path)
    lines = ["::", "", "    $ " + " ".join([path, *command.collect_usage_pieces(context)]), ""]
    for paragraph in inspect.cleandoc(command.help or "").replace("\f", "").split("\n\n"):
        if paragraph.startswith("\b"):
            heading, *rest = paragraph.lstrip("\b\n").splitlines()
            indented = [line for line in [heading, *rest] if line.startswith(" ")]
            lines += [] if heading.startswith(" ") else [heading, ""]
            lines += [
                "::",
                "",
                *("    " + inspect.cleandoc("\n".join(indented)).replace("\n", "\n    ")).split("\n"),
                "",
            ]
        else:
            lines += [_escape(" ".join(paragraph.split())), ""]
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and record[1]:  # arguments are explained in the text above
            lines += [f"``{record[0]}``", "    " + _escape(" ".join(record[1].split())), ""]
    return lines


def _escape(text):
    """Text without markup."""
    return "".join("\\" + char if char in "*`|_\\" else char for char in text)


def setup(app):
    """Register the directive."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
