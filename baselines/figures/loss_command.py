"""`localupdate-figures loss`: options, and how they reach `loss`."""

import argparse

from baselines.figures import outputs
from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  run_options.add_runs_option(parser)
  outputs.add_figure_option(parser)
  run_options.add_quantity_option(parser)
  run_options.add_log_scale_option(parser)


def draw_from(options: argparse.Namespace) -> None:
  """Draws the figure; it has no other numbers than the runs.

  Raises:
    ValueError: If the runs cannot be read or lack the quantity.
  """
  from baselines.figures import load
  from baselines.figures import loss

  num_lines = loss.draw(
      load.load_all(options.runs),
      options.output,
      quantity=options.quantity,
      log_scale=options.log_scale,
  )
  if not num_lines:
    outputs.say_nothing_drawn(options.output)
