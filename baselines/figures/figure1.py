"""Iterates against rounds for several gamma and several K (paper 1, Fig. 1)."""

from collections.abc import Sequence
import pathlib

from baselines.figures import reciprocal_curves
from baselines.figures import style

_SIZE = (10.5, 5.0)


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
  gamma = float(step_curves[0].client_learning_rate)
  with style.context():
    figure = style.new_figure()
    figure.set_size_inches(_SIZE)
    left, right = figure.subplots(1, 2, sharex=True)
    labels = [
        rf'$\gamma = {float(c.client_learning_rate):g}$' for c in rate_curves
    ]
    _draw_panel(left, rate_curves, labels)
    # Above the axes, where the legend hides no line.
    place = {'loc': 'lower center', 'bbox_to_anchor': (0.5, 1.0), 'ncols': 4}
    left.legend(title=f'$K = {rate_curves[0].num_steps}$', **place)
    left.set_ylabel(r'iterate $x_t$')
    labels = [f'$K = {c.num_steps}$' for c in step_curves]
    _draw_panel(right, step_curves, labels)
    right.legend(title=rf'$\gamma = {gamma:g}$', **place)
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
