"""``python -m veridical``."""

from veridical.cli import main

main(prog_name="veridical")
