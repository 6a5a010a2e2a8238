"""``veridical compile``."""

from __future__ import annotations

import click

from veridical.cli.output import Output, output_options


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also what fitting and evaluating need (takes longer).")
@output_options
def command(everything: bool, output: Output) -> None:
    """Compile the kernels ahead of time, as for a container image.

    Later processes load them from disk: from NUMBA_CACHE_DIR where that is set, else from beside the package.
    Inputs of at most 64 samples need no kernels, unless load_kernels was called.

    \b
    Example (Dockerfile):
      COPY veridical /src/veridical
      RUN pip install /src/veridical && veridical compile
    """
    from veridical.evaluation.compilation import compile_kernels

    with output.progress() as progress:
        compiled = compile_kernels(everything=everything, progress=progress)
    output.text(
        f"Compiled {compiled.n_compiled} kernels and found {compiled.n_found} on disk; they are in {compiled.directory}"
    )
    output.json(compiled)
