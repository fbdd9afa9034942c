"""`localupdate-figures curves`: options, and how they reach `curves`."""

import argparse
from typing import Any

from baselines.figures import outputs
from baselines.figures import rate_options
from baselines.figures import run_options
from baselines.figures import values

_ALL, _EQUAL, _BEST = 'all', 'equal', 'best'
_MAX_ROUNDS = 10**9


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  run_options.add_figure_options(parser)
  _add_selection_options(parser)
  rate_options.add_rule_options(parser)
  _add_drawing_options(parser)


def draw_from(options: argparse.Namespace) -> Any:
  """Draws the figure; returns the numbers behind it.

  Raises:
    ValueError: If the runs cannot be read, are of several tasks, lack what is
      asked for, or none has finished among which the best are asked for.
  """
  from baselines.figures import curves

  candidates = _candidates(options)
  shown, rule = candidates, None
  if options.select == _BEST:
    rule = rate_options.rule_of(options)
    shown = _best(candidates, rule)
  table = curves.curve_table(
      shown, options.quantity, options.smoothing, shows_eta=rule is not None
  )
  curves.draw(
      table,
      curves.caption(candidates, shown, options.smoothing, rule),
      options.output,
      quantity=options.quantity,
      log_scale=options.log_scale,
      largest=options.largest,
  )
  if table.empty:
    outputs.say_nothing_drawn(options.output)
  return rate_options.with_plain_names(table)


def _add_selection_options(parser: argparse.ArgumentParser) -> None:
  parser.add_argument(
      '--select',
      choices=(_ALL, _EQUAL, _BEST),
      default=_ALL,
      help='all runs; those with eta equal to gamma; or the best eta of each '
      'gamma (default: %(default)s)',
  )
  rate_options.add_server_rate_option(parser)
  parser.add_argument(
      '--client_learning_rates',
      type=values.list_of(values.not_negative),
      metavar='GAMMA,...',
      help='use the runs with these gammas only',
  )
  rate_options.add_decay_option(parser)


def _add_drawing_options(parser: argparse.ArgumentParser) -> None:
  run_options.add_quantity_option(parser)
  parser.add_argument(
      '--smoothing',
      type=values.whole(1, _MAX_ROUNDS),
      default=1,
      help='draw the means of so many values that follow each other (default: '
      '%(default)s)',
  )
  run_options.add_log_scale_option(parser)
  parser.add_argument(
      '--largest',
      type=values.positive,
      help='where the vertical axis ends, at most',
  )


def _candidates(options):
  """Returns the groups of runs that the options leave."""
  from baselines.figures import horizon_runs
  from baselines.figures import rate_runs

  columns = [options.quantity]
  if options.select == _BEST:
    columns.append(rate_options.rule_of(options).quantity)
  else:
    rate_options.refuse_rule(options, f"select is '{options.select}'")
  groups = rate_options.shown_groups(options, columns)
  horizon_runs.check_one_task(groups)
  if options.select == _EQUAL:
    # First, so that a gamma which has no equal eta counts as one without a run.
    groups = rate_runs.with_equal_rates(groups)
  return rate_runs.with_rates(
      groups, options.client_learning_rates, options.server_learning_rate
  )


def _best(candidates, rule):
  """Returns the groups with the best eta of each gamma."""
  from baselines.figures import rate_runs

  best = rate_runs.best_of_each(candidates, rule)
  if not best:
    raise ValueError(
        'runs must hold a run that has finished to select the best, found none '
        f'among {len(candidates)} settings.'
    )
  return best
