"""`localupdate-figures theory`: what the bounds say for numbers of one's own.

Which gamma, eta and K, and how far the surrogate minimizer is: see `trade_off`
and `trade_off_search`.
"""

import argparse
from typing import Any

from baselines.figures import outputs
from baselines.figures import values

# The bounds sum over up to ten times as many steps, at many rates.
_MAX_STEPS = 10_000
_MAX_ROUNDS = 10**9


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of this figure."""
  for name, read, text in (
      ('mu', values.positive, 'the least eigenvalue of a Hessian'),
      ('smoothness', values.positive, 'L, the largest one'),
      ('sigma_a', values.not_negative, 'how much the Hessians differ'),
      ('sigma_c', values.not_negative, 'how much the minimizers differ'),
      ('noise_variance', values.not_negative, 'V, of the mean update q'),
      ('num_steps', values.whole(1, _MAX_STEPS), 'K, local steps'),
      ('horizon', values.whole(1, _MAX_ROUNDS), 'T, rounds'),
      ('distance', values.positive, '||x_1 - x*||, at the start'),
  ):
    parser.add_argument(f'--{name}', type=read, required=True, help=text)
  parser.add_argument(
      '--client_learning_rate',
      type=values.not_negative,
      help='a gamma, below 1/L, to be listed beside those recommended',
  )
  parser.add_argument(
      '--noise_growth',
      choices=('linear', 'square'),
      default='linear',
      help='how V grows with K: linear as in the paper, or square, as the part '
      'of it that comes from clients that differ (default: %(default)s)',
  )
  outputs.add_figure_option(parser)
  outputs.add_table_option(parser)


def draw_from(options: argparse.Namespace) -> Any:
  """Draws the figure and prints its tables; returns their numbers.

  Raises:
    ValueError: If L is below mu, or gamma not below 1/L.
  """
  if options.smoothness < options.mu:
    raise ValueError(
        f'smoothness must be at least mu, {options.mu:g}, found '
        f'{options.smoothness:g}.'
    )
  from baselines.figures import tables
  from baselines.figures import trade_off_figure
  from baselines.figures import trade_off_table
  from tff_localupdate.theory import quadratics
  from tff_localupdate.theory import trade_off

  question = trade_off.Question(
      constants=quadratics.PopulationConstants(
          options.mu, options.smoothness, options.sigma_a, options.sigma_c
      ),
      num_steps=options.num_steps,
      update_variance=options.noise_variance,
      horizon=options.horizon,
      distance=options.distance,
      noise_growth=options.noise_growth,
  )
  if options.client_learning_rate is not None:
    quadratics.check_below_inverse(
        options.client_learning_rate, options.smoothness
    )
  best_of_each = trade_off.best_of_each_num_steps(question)
  table = trade_off_table.advice_table(
      question, best_of_each, options.client_learning_rate
  )
  for columns in (trade_off_table.ADVICE, trade_off_table.DISTANCES):
    print(tables.table_text(table[list(columns)]), end='\n\n')
  print('\n'.join(trade_off_table.NOTES), end='\n\n')
  trade_off_figure.draw(question, best_of_each, options.output)
  return table
