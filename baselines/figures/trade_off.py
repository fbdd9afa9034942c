"""Which gamma, eta and K the bounds of paper 1 recommend: figure and table.

The mathematics is that of `tff_localupdate.theory.trade_off`.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from matplotlib import figure as figure_lib
import numpy as np
import pandas as pd

from baselines.figures import style
from baselines.figures import tables
from baselines.results import symbols
from tff_localupdate.theory import convergence
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import trade_off

_SIZE = (10.5, 8.0)
_NUM_RATES = 81
_DISTANCE_LABELS = {
    'theorem_16': 'Theorem 16',
    'theorem_17': 'Theorem 17',
    'theorem_21': 'Theorem 21, from 0',
    'corollary_19': 'Corollary 19',
}

NOTES = (
    'error bounds sqrt(E||x_{T+1} - x*||^2); surrogate_distance bounds '
    '||x*_gamma - x*||, the part of it that more rounds do not mend.',
    'With an offset xi the rates of round t are (1 + xi)/(t + xi) times those '
    'listed: eta alone under Theorem 27, both under Theorem 29.',
    'V is taken for every gamma. K: the least of those tried, up to ten times '
    'the K given or 100, within 5 percent of the best.',
    'max_server_learning_rate is mu_gamma/L_gamma^2 (22); condition_number is '
    'the bound of Corollary 13.',
    'derived: worked out anew along the surviving proofs, the printed '
    'constants may differ. house: constants chosen here, only the rate in t '
    'is the paper\'s.',
)

# The columns that answer which rates and steps, and those that say how far the
# surrogate minimizer is.
ADVICE = (
    'choice', 'num_steps', 'client_learning_rate', 'server_learning_rate',
    'offset', 'error', 'optimisation', 'surrogate_distance', 'bounds', 'form',
)
DISTANCES = (
    'choice', 'num_steps', 'client_learning_rate', 'condition_number',
    'max_server_learning_rate', 'theorem_16', 'theorem_17', 'theorem_21',
    'corollary_19',
)


def advice(options: argparse.Namespace) -> tables.Drawn:
  """Which gamma, eta and K the bounds recommend for numbers of one's own.

  Raises:
    ValueError: If L is below mu, or gamma not below 1/L.
  """
  if options.smoothness < options.mu:
    raise ValueError(
        f'smoothness must be at least mu, {options.mu:g}, found '
        f'{options.smoothness:g}.'
    )
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
  table = advice_table(question, best_of_each, options.client_learning_rate)
  texts = [
      tables.table_text(table[list(columns)]) for columns in (ADVICE, DISTANCES)
  ]
  figure = draw(question, best_of_each)
  printed = ''.join(f'{text}\n\n' for text in (*texts, '\n'.join(NOTES)))
  return tables.Drawn(table, figure, printed=printed)


def advice_table(
    question: trade_off.Question,
    best_of_each: Sequence[trade_off.ErrorBound],
    client_learning_rate: Optional[float] = None,
) -> pd.DataFrame:
  """Returns a row for each of `trade_off.recommendations`.

  The arguments are the same; the columns those of `ADVICE` and `DISTANCES`.
  """
  return pd.DataFrame([
      {'choice': choice, **_row(question, found)}
      for choice, found in trade_off.recommendations(
          question, best_of_each, client_learning_rate
      ).items()
  ])


def _row(
    question: trade_off.Question, found: trade_off.ErrorBound
) -> dict[str, Any]:
  where = (question.constants, found.num_steps, found.client_learning_rate)
  mu, smoothness = convergence.surrogate_constants(*where)
  distances = trade_off.distance_bounds(*where)
  return {
      **found._asdict(),
      **_origin(found, distances),
      'condition_number': smoothness / mu,
      'max_server_learning_rate': mu / smoothness**2,
      **distances,
  }


def _origin(
    found: trade_off.ErrorBound, distances: dict[str, float]
) -> dict[str, str]:
  """Names the theorems behind a bound on the error."""
  if found.surrogate_distance is None:
    return {'bounds': 'Theorem 29', 'form': 'house'}
  theorems = ['26' if found.offset is None else '27']
  if found.surrogate_distance > 0.0:
    is_17 = found.surrogate_distance == distances['theorem_17']
    theorems.append('17' if is_17 else '21')
  return {
      'bounds': f'Theorem {" and ".join(theorems)}',
      'form': 'derived' if found.offset is None else 'house',
  }


def draw(
    question: trade_off.Question,
    best_of_each: Sequence[trade_off.ErrorBound],
) -> figure_lib.Figure:
  """Draws four panels.

  Against gamma: the bounds on ||x*_gamma - x*||; the condition number of the
  surrogate loss; the bound on the error after T rounds, its two parts and the
  best gamma. Against K, each with its best gamma: the bound on the error, and
  the fewest steps that do.
  """
  grid = trade_off.client_rate_grid(
      question.constants.smoothness, question.num_steps, _NUM_RATES
  )
  figure = style.new_figure(_SIZE)
  axes = figure.subplots(2, 2)
  _draw_distances(axes[0, 0], question, grid)
  _draw_condition_number(axes[0, 1], question, grid)
  _draw_error(axes[1, 0], question, grid)
  _draw_steps(axes[1, 1], question, best_of_each)
  for panel in axes.flat:
    panel.legend()
  style.add_caption(figure, caption(question))
  return figure


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
      trade_off.distance_bounds(
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
