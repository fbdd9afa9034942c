"""`localupdate-figures regret`: options, and how they reach `regret`."""

import argparse
from typing import Any

from baselines.figures import run_options


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  run_options.add_figure_options(parser)
  run_options.add_log_scale_option(parser)


def draw_from(options: argparse.Namespace) -> Any:
  """Draws the figure; returns the numbers behind it.

  Raises:
    ValueError: If the runs cannot be read, count no regret, or are of several
      tasks.
  """
  return draw_against(options, 'time')


def draw_against(
    options: argparse.Namespace, quantity: str
) -> Any:
  """Draws the regret against `time` or `bits`; see `draw_from`."""
  from baselines.figures import horizon_runs
  from baselines.figures import regret
  from baselines.figures import regret_curves

  draw, caption = {
      'time': (regret.draw_against_time, regret.caption_against_time),
      'bits': (regret.draw_against_bits, regret.caption_against_bits),
  }[quantity]
  groups = horizon_runs.load_groups(options.runs, regret_curves.COLUMNS)
  horizon_runs.check_one_task(groups)
  curves = regret_curves.curve_table(groups)
  draw(curves, caption(groups), options.output, log_scale=options.log_scale)
  return curves
