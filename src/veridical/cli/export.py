"""``veridical export``."""

from __future__ import annotations

import click

from veridical.cli.output import Output, output_options


@click.command()
@click.argument("calibrator", type=click.Path())
@click.argument("model", type=click.Path())
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float32",
    show_default=True,
    help="Of the model's input and outputs.",
)
@output_options
def command(calibrator: str, model: str, dtype: str, output: Output) -> None:
    """Write CALIBRATOR, a .json file from 'veridical calibrate', as an ONNX model to MODEL, an .onnx file.

    The model takes predictions in the shape and of the kind that CALIBRATOR takes, and returns probs, confidence and
    label. A sample that CALIBRATOR would refuse has the label -1.

    \b
    Example:
      veridical export cal.json cal.onnx
    """
    from veridical._outputs import check_outputs
    from veridical.calibrate import load_calibrator
    from veridical.calibrate.saving import files_of
    from veridical.export import check_onnx_target

    check_onnx_target(model)
    check_outputs({"MODEL": model}, files_of(calibrator))
    loaded = load_calibrator(calibrator)
    loaded.to_onnx(model, dtype=dtype)
    chosen = loaded.fitted_calibrator
    output.text(f"Wrote {model}: {chosen.name} on {chosen.combine}, {chosen.n_sources_} sources, {dtype}")
    output.json(
        {
            "schema": 1,
            "type": "exported",
            "out": model,
            "method": chosen.name,
            "combine": chosen.combine,
            "n_sources": chosen.n_sources_,
            "n_classes": chosen.n_classes_,
            "dtype": dtype,
        }
    )
