"""Iterates against rounds for several gamma and several K (paper 1, Fig. 1)."""

from collections.abc import Sequence
import pathlib

from baselines.figures import reciprocal_curves
from baselines.figures import style
from baselines.figures import symbols

_SIZE = (10.5, 5.0)
# Inches that a legend may take beside its panel, and above it before the figure
# becomes higher.
_LEGEND_WIDTH = 5.2
_LEGEND_HEIGHT = 1.0
_LEGEND_COLUMNS = 4


def draw(
    rate_curves: Sequence[reciprocal_curves.Curve],
    step_curves: Sequence[reciprocal_curves.Curve],
    run: reciprocal_curves.RunSettings,
    output: pathlib.Path,
) -> None:
  """Draws the figure: gamma varies in the left panel, K in the right one.

  Each curve is a simulated run, the line on top of it its exact mean, the short
  line at the right its own limit x*(gamma, Theta_{1:K}). Both panels show x*
  and c, the mean of the clients' minimizers.

  Args:
    rate_curves: Curves of one K.
    step_curves: Curves of one gamma.
    run: What all curves have in common, for the caption.
    output: Where to; the ending says the format.
  """
  gamma = _rate_text(step_curves[0])
  with style.context():
    figure = style.new_figure()
    figure.set_size_inches(_SIZE)
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
    style.save(figure, output)


def caption(run: reciprocal_curves.RunSettings) -> str:
  """Says what is drawn, with the settings that the panels do not show."""
  # No spaces inside the mathematics: captions are broken at spaces.
  return (
      r'LocalUpdate with $\Theta_{1:K}$ and M = 1; clients z of density 8z/15 '
      r'in [1/2, 2] with the loss $zx^2/2-x$; '
      rf'$\eta$ = {float(run.server_learning_rate):g}, '
      rf'$x_1$ = {run.start:g}, seed {run.seed}. Thin: simulated; thick: exact '
      r'mean; dashes at the right: $x^*(\gamma,\Theta_{1:K})$.'
  )


def _rate_text(curve: reciprocal_curves.Curve) -> str:
  rate = float(curve.client_learning_rate)
  return symbols.in_formula(symbols.number_text(rate))


def _add_legend(axes, title: str) -> float:
  """Adds the legend above a panel; returns how many inches high it is.

  There it hides no line. It has as many columns as find room.
  """
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
    axes, curves: Sequence[reciprocal_curves.Curve], labels: Sequence[str]
) -> None:
  population = reciprocal_curves.POPULATION
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
