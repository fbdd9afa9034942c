"""`localupdate-figures update_norms`: options, and how they reach the figure.
"""

import argparse
from typing import Any

from baselines.figures import outputs
from baselines.figures import rate_options
from baselines.figures import run_options
from baselines.figures import values

_MAX_ROUNDS = 10**9


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  run_options.add_figure_options(parser)
  rate_options.add_server_rate_option(parser)
  rate_options.add_decay_option(parser)
  parser.add_argument(
      '--block',
      type=values.whole(1, _MAX_ROUNDS),
      default=1000,
      help='the rounds of a block (default: %(default)s, as in the paper)',
  )
  run_options.add_log_scale_option(parser)


def draw_from(options: argparse.Namespace) -> Any:
  """Draws the figure; returns the numbers behind it.

  Raises:
    ValueError: If the runs cannot be read, are of several tasks, lack what is
      asked for, or have fewer rounds than a block.
  """
  from baselines.figures import horizon_runs
  from baselines.figures import rate_runs
  from baselines.figures import update_norms

  groups = rate_runs.with_rates(
      rate_options.shown_groups(options, [update_norms.COLUMN]),
      server_learning_rate=options.server_learning_rate,
  )
  horizon_runs.check_one_task(groups)
  table = update_norms.norm_table(groups, options.block)
  update_norms.draw(
      table,
      update_norms.caption(groups, options.block),
      options.output,
      log_scale=options.log_scale,
  )
  if table.empty:
    outputs.say_nothing_drawn(options.output)
  return rate_options.with_plain_names(table)
