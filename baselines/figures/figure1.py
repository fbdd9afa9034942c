"""Figure 1 of paper 1: iterates for several gamma and K, and their limits.

LocalUpdate with Theta_{1:K} and M = 1 on the population of section 4 of
Charles and Konecny (2020): z of density 8 z/15 on [1/2, 2],
f(x; z) = z x^2/2 - x.
"""

import argparse
from collections.abc import Mapping, Sequence
import dataclasses
import fractions
import math
from typing import Any, NamedTuple

from matplotlib import figure as figure_lib
import numpy as np
import pandas as pd

from baselines.figures import style
from baselines.figures import tables
from baselines.results import symbols
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import reciprocal

POPULATION = reciprocal.LINEAR_DENSITY
_SIZE = (10.5, 5.0)
# Inches that a legend may take beside its panel, and above it before the figure
# becomes higher.
_LEGEND_WIDTH = 5.2
_LEGEND_HEIGHT = 1.0
_LEGEND_COLUMNS = 4


def figure1(options: argparse.Namespace) -> tables.Drawn:
  """How gamma and K move the limit of LocalUpdate (Figure 1)."""
  run = RunSettings(
      server_learning_rate=options.server_learning_rate,
      start=options.start,
      num_rounds=options.rounds,
      seed=options.seed,
  )
  panels = {
      'gamma': [
          run_curve(run, gamma, options.num_steps)
          for gamma in options.client_learning_rates
      ],
      'K': [
          run_curve(run, options.client_learning_rate, steps)
          for steps in options.num_steps_list
      ],
  }
  table = curve_table(panels)
  return tables.Drawn(
      table, draw(panels['gamma'], panels['K'], run),
      printed=f'{tables.table_text(table)}\n',
  )


@dataclasses.dataclass(frozen=True)
class RunSettings:
  """What the curves of a figure have in common.

  Attributes:
    server_learning_rate: eta.
    start: x_1.
    num_rounds: T, at least 2.
    seed: Of the clients; the same ones for each curve.
  """

  server_learning_rate: fractions.Fraction
  start: float
  num_rounds: int
  seed: int

  @property
  def num_averaged(self) -> int:
    """n: the last half of the iterates is averaged."""
    return self.num_rounds // 2


class Curve(NamedTuple):
  """One run of the process.

  Attributes:
    client_learning_rate: gamma.
    num_steps: K.
    law: The exact moments of an update.
    iterates: x_1, ..., x_{T+1}, as simulated.
    expected: E x_1, ..., E x_{T+1}, exact.
    tail_mean: The mean of the last n iterates.
    tail_error: Its standard error, exact.
    deviation: The standard deviation of an iterate once it has settled, exact.
  """

  client_learning_rate: fractions.Fraction
  num_steps: int
  law: reciprocal.UpdateLaw
  iterates: np.ndarray
  expected: np.ndarray
  tail_mean: float
  tail_error: float
  deviation: float

  @property
  def minimizer(self) -> float:
    """x*(gamma, Theta_{1:K})."""
    return float(self.law.minimizer)

  @property
  def z_score(self) -> float:
    """How many standard errors the tail mean is above the minimizer."""
    return (self.tail_mean - self.minimizer) / self.tail_error

  @property
  def start_effect(self) -> float:
    """The part of `z_score` that is due to x_1: near 0 if T is large enough."""
    num_averaged = (len(self.expected) - 1) // 2
    tail_mean = float(np.mean(self.expected[-num_averaged:]))
    return (tail_mean - self.minimizer) / self.tail_error


def run_curve(
    run: RunSettings, client_learning_rate: fractions.Fraction, num_steps: int
) -> Curve:
  """Runs the process once and computes the moments to compare it with.

  Raises ValueError if the surrogate loss has no minimizer, or the variance of
  the iterates does not settle.
  """
  theta = theta_lib.Theta.ones(num_steps)
  law = reciprocal.update_law(POPULATION, theta, client_learning_rate)
  variance = reciprocal.stationary_variance(
      law, run.server_learning_rate
  )
  iterates = reciprocal.simulate(
      POPULATION,
      theta,
      client_learning_rate=float(client_learning_rate),
      server_learning_rate=float(run.server_learning_rate),
      start=run.start,
      num_rounds=run.num_rounds,
      seed=run.seed,
  )
  return Curve(
      client_learning_rate=client_learning_rate,
      num_steps=num_steps,
      law=law,
      iterates=iterates,
      expected=reciprocal.expected_iterates(
          law, float(run.server_learning_rate), run.start, run.num_rounds
      ),
      tail_mean=float(np.mean(iterates[-run.num_averaged :])),
      tail_error=tail_error(law, run),
      deviation=math.sqrt(variance),
  )


def tail_error(law: reciprocal.UpdateLaw, run: RunSettings) -> float:
  """Returns the standard error of the mean of the last n iterates.

  With v_t = Var x_t from the exact recursion of the second moment, also before
  it has settled, and rho = 1 - eta E a, iterates s rounds apart have the
  covariance rho^s v_t, so

      Var mean = (1/n^2) sum_t v_t (1 + 2 sum_{s=1}^{T+1-t} rho^s)

  over the n last t.
  """
  eta = float(run.server_learning_rate)
  arguments = (law, eta, run.start, run.num_rounds)
  means = reciprocal.expected_iterates(*arguments)
  squares = reciprocal.squared_distances(*arguments)
  variances = squares - (means - float(law.minimizer)) ** 2
  variances = np.maximum(variances[-run.num_averaged :], 0.0)
  rho = 1.0 - eta * float(law.slope)
  shared = np.cumsum(rho ** np.arange(1, run.num_averaged))
  factors = 1.0 + 2.0 * np.append(shared[::-1], 0.0)
  return math.sqrt(np.dot(variances, factors)) / run.num_averaged


def curve_table(panels: Mapping[str, Sequence[Curve]]) -> pd.DataFrame:
  """Returns one row per curve; the panels are by what varies in them.

  The columns are: varied; client_learning_rate; num_steps; minimizer, x*(gamma,
  Theta); expected_gap, E x_{T+1} - x*(gamma, Theta); tail_mean; standard_error;
  z_score; start_effect; deviation.
  """
  return pd.DataFrame([
      {
          'varied': varied,
          'client_learning_rate': float(curve.client_learning_rate),
          'num_steps': curve.num_steps,
          'minimizer': curve.minimizer,
          'expected_gap': curve.expected[-1] - curve.minimizer,
          'tail_mean': curve.tail_mean,
          'standard_error': curve.tail_error,
          'z_score': curve.z_score,
          'start_effect': curve.start_effect,
          'deviation': curve.deviation,
      }
      for varied, curves in panels.items()
      for curve in curves
  ])


def draw(
    rate_curves: Sequence[Curve],
    step_curves: Sequence[Curve],
    run: RunSettings,
) -> figure_lib.Figure:
  """Draws the figure: gamma varies in the left panel, K in the right one.

  Each curve is a simulated run, the line on top of it its exact mean, the short
  line at the right its own limit x*(gamma, Theta_{1:K}). Both panels show x*
  and c, the mean of the clients' minimizers.
  """
  gamma = _rate_text(step_curves[0])
  figure = style.new_figure(_SIZE)
  left, right = figure.subplots(1, 2, sharex=True)
  labels = [rf'$\gamma = {_rate_text(c)}$' for c in rate_curves]
  _draw_panel(left, rate_curves, labels)
  left.set_ylabel(r'iterate $x_t$')
  heights = [_add_legend(left, f'$K = {rate_curves[0].num_steps}$')]
  labels = [f'$K = {c.num_steps}$' for c in step_curves]
  _draw_panel(right, step_curves, labels)
  heights.append(_add_legend(right, rf'$\gamma = {gamma}$'))
  more = max(*heights, _LEGEND_HEIGHT) - _LEGEND_HEIGHT
  figure.set_size_inches(_SIZE[0], _SIZE[1] + more)
  style.add_caption(figure, caption(run))
  return figure


def caption(run: RunSettings) -> str:
  """Says what is drawn, with the settings that the panels do not show."""
  # No spaces inside the mathematics: captions are broken at spaces.
  return (
      r'LocalUpdate with $\Theta_{1:K}$ and M = 1; clients z of density 8z/15 '
      r'in [1/2, 2] with the loss $zx^2/2-x$; '
      rf'$\eta$ = {float(run.server_learning_rate):g}, '
      rf'$x_1$ = {run.start:g}, seed {run.seed}. Thin: simulated; thick: exact '
      r'mean; dashes at the right: $x^*(\gamma,\Theta_{1:K})$.'
  )


def _rate_text(curve: Curve) -> str:
  rate = float(curve.client_learning_rate)
  return symbols.in_formula(symbols.number_text(rate))


def _add_legend(axes: Any, title: str) -> float:
  """Adds the legend above a panel; returns its height in inches."""
  dpi = axes.figure.dpi
  for columns in range(_LEGEND_COLUMNS, 0, -1):
    legend = axes.legend(
        loc='lower center', bbox_to_anchor=(0.5, 1.0), ncols=columns,
        title=title,
    )
    extent = legend.get_window_extent()
    if extent.width <= _LEGEND_WIDTH * dpi:
      break
  return extent.height / dpi


def _draw_panel(
    axes: Any, curves: Sequence[Curve], labels: Sequence[str]
) -> None:
  population = POPULATION
  for value, label, dots in (
      (population.minimizer, r'$x^*$', 'dashed'),
      (population.mean_center, r'$c$', 'dotted'),
  ):
    axes.axhline(
        float(value), color='black', linewidth=1.0, linestyle=dots, zorder=3,
        label=f'{label} $= {value}$',
    )
  colours = style.colours(len(curves))
  for curve, label, colour in zip(curves, labels, colours):
    rounds = range(1, len(curve.iterates) + 1)
    axes.plot(
        rounds, curve.iterates, color=colour, alpha=0.5, linewidth=0.7,
        zorder=1,
    )
    axes.plot(rounds, curve.expected, color=colour, label=label, zorder=2)
    axes.plot(
        [rounds[-1], 2 * rounds[-1]], [curve.minimizer] * 2, color=colour,
        linestyle=(0, (2, 1)), zorder=2,
    )
  axes.set_xscale('log')
  axes.set_xlim(1, 2 * len(curves[0].iterates))
  axes.set_xlabel(r'round $t$')
