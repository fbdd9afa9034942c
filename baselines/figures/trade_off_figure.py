"""The trade-off between distance and speed, against gamma and against K."""

from collections.abc import Mapping, Sequence
import pathlib
from typing import Any

import numpy as np

from baselines.figures import style
from baselines.figures import symbols
from baselines.figures import trade_off_table
from tff_localupdate.theory import convergence
from tff_localupdate.theory import trade_off

_SIZE = (10.5, 8.0)
_NUM_RATES = 81
_DISTANCE_LABELS = {
    'theorem_16': 'Theorem 16',
    'theorem_17': 'Theorem 17',
    'theorem_21': 'Theorem 21, from 0',
    'corollary_19': 'Corollary 19',
}


def draw(
    question: trade_off.Question,
    best_of_each: Sequence[trade_off.ErrorBound],
    output: pathlib.Path,
) -> None:
  """Draws four panels.

  Against gamma: the bounds on ||x*_gamma - x*||; the condition number of the
  surrogate loss; the bound on the error after T rounds, its two parts and the
  best gamma. Against K, each with its best gamma: the bound on the error, and
  the fewest steps that do.

  Args:
    question: The constants.
    best_of_each: The best constant rates for each K.
    output: Where to; the ending says the format.
  """
  grid = trade_off.client_rate_grid(
      question.constants.smoothness, question.num_steps, _NUM_RATES
  )
  with style.context():
    figure = style.new_figure()
    figure.set_size_inches(_SIZE)
    axes = figure.subplots(2, 2)
    _draw_distances(axes[0, 0], question, grid)
    _draw_condition_number(axes[0, 1], question, grid)
    _draw_error(axes[1, 0], question, grid)
    _draw_steps(axes[1, 1], question, best_of_each)
    for panel in axes.flat:
      panel.legend()
    style.add_caption(figure, caption(question))
    style.save(figure, output)


def caption(question: trade_off.Question) -> str:
  """Says which numbers the bounds were given."""
  constants = question.constants
  values = (
      (r'\mu', constants.strong_convexity),
      ('L', constants.smoothness),
      (r'\sigma_A', constants.hessian_deviation),
      (r'\sigma_c', constants.center_deviation),
      ('V', question.update_variance),
      ('K', question.num_steps),
      ('T', question.horizon),
      (r'\|x_1-x^*\|', question.distance),
  )
  numbers = ', '.join(f'${symbol}$ = {value:g}' for symbol, value in values)
  growth = {'linear': 'K', 'square': '$K^2$'}[question.noise_growth]
  return (
      f'{numbers}. Constant rates, the best $\\eta$ for T. Against K, V grows '
      f'like {growth}. Bounds, not measurements; their constants were derived '
      'anew.'
  )


def _draw_distances(axes, question, grid) -> None:
  rows = [
      trade_off_table.distance_bounds(
          question.constants, question.num_steps, gamma
      )
      for gamma in grid.tolist()
  ]
  _draw_lines(axes, grid, {
      label: [row[name] for row in rows]
      for name, label in _DISTANCE_LABELS.items()
  })
  axes.set_ylabel(r'bounds on $\|x^*_\gamma-x^*\|$')


def _draw_condition_number(axes, question, grid) -> None:
  pairs = [
    convergence.surrogate_constants(
      question.constants, question.num_steps, gamma
    )
    for gamma in grid.tolist()
  ]
  _draw_lines(axes, grid, {
      'Corollary 13': [smoothness / mu for mu, smoothness in pairs]
  })
  axes.axhline(
      question.constants.condition_number, color='black', linestyle='dashed',
      label=r'$L/\mu$, at $\gamma = 0$',
  )
  axes.set_ylabel('bound on the condition number')


def _draw_error(axes, question, grid) -> None:
  steps = question.num_steps
  found = [
      trade_off.constant_rates(question, steps, gamma)
      for gamma in grid.tolist()
  ]
  _draw_lines(axes, grid, {
      r'$\|x^*_\gamma-x^*\|$': [bound.surrogate_distance for bound in found],
      'optimisation': [bound.optimisation for bound in found],
      'sum': [bound.error for bound in found],
  })
  axes.axhline(
      trade_off.constant_rates(question, steps, 0.0).error, color='black',
      linestyle='dashed', label=r'sum at $\gamma = 0$',
  )
  best = trade_off.best_client_rate(
      trade_off.constant_rates, question, steps
  )
  # gamma = 0 has no place on a logarithmic axis: its mark is at the left end.
  axes.plot(
      [best.client_learning_rate or grid[0]], [best.error], 'o', color='red',
      label=rf'best: $\gamma$ = {_rate_text(best.client_learning_rate)}, '
      rf'$\eta$ = {_rate_text(best.server_learning_rate)}',
  )
  if best.error > 0.0:  # The distances go down to nothing.
    axes.set_ylim(bottom=best.error / 30.0)
  axes.set_ylabel('bounds on the error after T rounds')


def _draw_steps(axes, question, best_of_each) -> None:
  steps = [bound.num_steps for bound in best_of_each]
  _draw_lines(axes, steps, {
      r'best $\gamma$': [bound.error for bound in best_of_each],
      r'$\gamma = 0$': [
          trade_off.constant_rates(question, num_steps, 0.0).error
          for num_steps in steps
      ],
  })
  best = trade_off.fewest_steps(best_of_each)
  axes.plot(
      [best.num_steps], [best.error], 'o', color='red',
      label=f'enough: K = {best.num_steps}, '
      rf'$\gamma$ = {_rate_text(best.client_learning_rate)}',
  )
  axes.set_xlabel(r'local steps $K$')
  axes.set_ylabel('bound on the error after T rounds')


def _draw_lines(
    axes, positions: Sequence[float], lines: Mapping[str, Sequence[Any]]
) -> None:
  """Draws lines on logarithmic axes, without what is 0 or infinite."""
  positive = False
  for (label, values), colour in zip(lines.items(), style.colours(len(lines))):
    values = np.array(values)
    values[~np.isfinite(values) | (values <= 0.0)] = np.nan
    positive = positive or not np.all(np.isnan(values))
    axes.plot(positions, values, color=colour, label=label)
  axes.set_xscale('log')
  axes.set_yscale('log' if positive else 'linear')
  axes.set_xlabel(r'client rate $\gamma$')


def _rate_text(value: float) -> str:
  return symbols.number_text(value, 3)
