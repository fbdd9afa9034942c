"""`localupdate-figures figure1`: options, and how they reach `figure1`.

The paper's eta, rates, steps, rounds and start are lost; the defaults are a
house choice with gamma = 0 and one gamma > 1, K = 1 and a large even K.
"""

import argparse
from typing import Any

from baselines.figures import outputs
from baselines.figures import values

# Exact moments of Q(z)^2 take K^2 products of long fractions.
_MAX_STEPS = 100
_MAX_ROUNDS = 1_000_000


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  outputs.add_figure_option(parser)
  outputs.add_table_option(parser)
  rounds, steps = values.whole(2, _MAX_ROUNDS), values.whole(1, _MAX_STEPS)
  for name, read, default, text in (
      ('rounds', rounds, '4000', 'T; the second half of them is averaged'),
      ('seed', values.whole(0, 2**32 - 1), '1', 'of the clients drawn'),
      ('server_learning_rate', values.rational, '0.02', 'eta, in both panels'),
      ('start', values.finite, '0', 'x_1'),
      (
          'client_learning_rates',
          values.list_of(values.rational),
          '0,1/4,1/2,1,1.1',
          'gammas of the left panel',
      ),
      ('num_steps', steps, '10', 'K of the left panel'),
      (
          'num_steps_list',
          values.list_of(steps),
          '1,2,5,10,40',
          'Ks of the right panel',
      ),
      (
          'client_learning_rate',
          values.rational,
          '1/4',
          'gamma of the right panel',
      ),
  ):
    # A default that is a text is read as if it had been given.
    parser.add_argument(
        f'--{name}', type=read, default=default,
        help=f'{text} (default: %(default)s)',
    )


def draw_from(options: argparse.Namespace) -> Any:
  """Draws the figure and prints its table; returns the table.

  Raises:
    ValueError: If a rate is so large that the iterates do not settle.
  """
  from baselines.figures import figure1
  from baselines.figures import reciprocal_curves
  from baselines.figures import tables

  run = reciprocal_curves.RunSettings(
      server_learning_rate=options.server_learning_rate,
      start=options.start,
      num_rounds=options.rounds,
      seed=options.seed,
  )
  panels = {
      'gamma': [
          reciprocal_curves.run_curve(run, gamma, options.num_steps)
          for gamma in options.client_learning_rates
      ],
      'K': [
          reciprocal_curves.run_curve(run, options.client_learning_rate, steps)
          for steps in options.num_steps_list
      ],
  }
  table = reciprocal_curves.curve_table(panels)
  print(tables.table_text(table))
  figure1.draw(panels['gamma'], panels['K'], run, options.output)
  return table
