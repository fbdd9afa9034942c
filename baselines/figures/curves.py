"""A quantity against rounds, a line per gamma (paper 1, Figures 2 and 4 to 9).
"""

from collections.abc import Sequence
import pathlib
from typing import Optional

import pandas as pd

from baselines.figures import load
from baselines.figures import rate_captions
from baselines.figures import rate_runs
from baselines.figures import style
from baselines.figures import symbols


def curve_table(
    groups: Sequence[rate_runs.RateGroup],
    quantity: str,
    smoothing: int = 1,
    *,
    shows_eta: bool = False,
) -> pd.DataFrame:
  """Returns the curves of the groups, one below the other.

  Args:
    groups: What is to be drawn; those with a diverged run are left out, as in
      the paper.
    quantity: A column of metrics.csv.
    smoothing: Each value is the mean of so many that follow each other, the
      last of them at its round.
    shows_eta: Whether lines are named by eta even if it is the same in all.

  Returns:
    A row for each line and round at which there is a value: `line`, both rates
    (at the start), `decays`, `round`, `runs`, and over these `mean`, `smallest`
    and `largest`.

  Raises:
    ValueError: If there is no value, or none but fewer than `smoothing`.
  """
  drawn = [group for group in groups if not group.num_diverged]
  tables = []
  names = rate_captions.name_lines(drawn, shows_eta=shows_eta)
  for group, name in zip(drawn, names):
    curves = [_curve(run, quantity, smoothing) for run in group.all_runs]
    table = _spread(pd.concat(curves, axis=1))
    table.insert(0, 'line', name)
    table.insert(1, 'client_learning_rate', group.client_learning_rate)
    table.insert(2, 'server_learning_rate', group.server_learning_rate)
    table.insert(3, 'decays', group.decays)
    tables.append(table)
  found = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
  # All runs may have diverged; a figure of none is a result then.
  if found.empty and drawn:
    raise ValueError(
        f'quantity must have at least {smoothing} values, as smoothing asks, '
        f'in one of the runs; found fewer of {quantity!r}.'
    )
  return found


def draw(
    table: pd.DataFrame,
    caption: str,
    output: pathlib.Path,
    *,
    quantity: str,
    log_scale: bool = False,
    largest: Optional[float] = None,
) -> None:
  """Draws the lines; repetitions are their mean, in a band of all of them.

  Args:
    table: What `curve_table` returns.
    caption: What is drawn.
    output: Where to; the ending says the format.
    quantity: What the table was made of.
    log_scale: Whether the vertical axis is logarithmic.
    largest: Where the vertical axis ends, at most.

  Raises:
    ValueError: If all values are above `largest`.
  """
  if largest is not None and not table.empty:
    smallest = table['mean'].min()
    if smallest >= largest:
      raise ValueError(
          f'largest must be above a value that is drawn, found {largest:g}, '
          f'where the smallest is {smallest:g}.'
      )
  names = [] if table.empty else list(table.line.unique())
  with style.context():
    figure = style.new_figure()
    axes = figure.add_subplot()
    for name, look in zip(names, style.looks(len(names))):
      rows = table[table.line == name]
      point = {'marker': 'o'} if len(rows) == 1 else {}
      axes.plot(
          rows['round'], rows['mean'], label=name,
          markevery=style.mark_every(len(rows)), **{**point, **look},
      )
      if rows['runs'].max() > 1:
        style.draw_band(
            axes, rows['round'], rows.smallest, rows.largest, look['color']
        )
    axes.set_xlabel(r'round $t$')
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel(symbols.QUANTITIES[quantity])
    axes.set_yscale('log' if log_scale else 'linear')
    if largest is not None and axes.get_ylim()[1] > largest:
      axes.set_ylim(top=largest)
    if names:
      style.add_legend(figure, axes)
    style.add_caption(figure, caption)
    style.save(figure, output)


def caption(
    candidates: Sequence[rate_runs.RateGroup],
    shown: Sequence[rate_runs.RateGroup],
    smoothing: int = 1,
    rule: Optional[rate_runs.Rule] = None,
) -> str:
  """Says what is drawn.

  Args:
    candidates: All groups that were looked at.
    shown: Those that are to be drawn.
    smoothing: As for `curve_table`.
    rule: How they were selected, if by eta.
  """
  parts = rate_captions.describe(candidates)
  if rule is not None:
    parts.append(rate_captions.describe_rule(candidates, rule))
  drawn = [group for group in shown if not group.num_diverged]
  parts += rate_captions.describe_lost(candidates, drawn)
  parts += rate_captions.describe_decay(candidates)
  if smoothing > 1:
    parts.append(f'means of {smoothing} values that follow each other')
  if any(len(group.all_runs) > 1 for group in drawn):
    parts.append('band: all runs')
  return '; '.join(parts)


def _curve(run: load.Run, quantity: str, smoothing: int) -> pd.Series:
  values = run.metrics.set_index('round')[quantity].dropna()
  return values.rolling(smoothing).mean().dropna()


def _spread(curves: pd.DataFrame) -> pd.DataFrame:
  """Returns what repetitions, a column each, have in common."""
  return pd.DataFrame({
      'round': curves.index,
      'runs': curves.notna().sum(axis=1).to_numpy(),
      'mean': curves.mean(axis=1).to_numpy(),
      'smallest': curves.min(axis=1).to_numpy(),
      'largest': curves.max(axis=1).to_numpy(),
  })
