"""Regret and bits against the horizon T, a line per algorithm (paper 2).

The theory has both grow as log T for CEAL: straight lines on this axis.
"""

from collections.abc import Sequence
import pathlib

import pandas as pd

from baselines.figures import horizon_runs
from baselines.figures import outcomes
from baselines.figures import style

COLUMNS = outcomes.COLUMNS
_SIZE = (9.6, 4.6)


def growth_table(groups: Sequence[horizon_runs.RunGroup]) -> pd.DataFrame:
  """Returns one row per algorithm and horizon, in the order of horizons.

  Args:
    groups: The groups, of one task; those without a finished run are left out.

  Returns:
    The columns `algorithm` (with what else tells groups apart, but for the
    horizon), `horizon`, `runs`, and of the regret, the uplink and the downlink
    bits at the horizon `_mean` and `_sd` (n - 1) over the runs.

  Raises:
    ValueError: If all runs have one horizon.
  """
  names = horizon_runs.name_groups(groups, ignored=['horizon'])
  table = outcomes.outcome_table(groups)
  table.insert(0, 'algorithm', names)
  table.insert(1, 'horizon', [g.settings['horizon'] for g in groups])
  table = table[table.runs > 0]
  horizons = table.horizon.unique()
  if len(horizons) < 2:
    raise ValueError(
        f'runs must differ in horizon, found horizon {horizons[0]} only.'
    )
  numbers = [
      f'{name}_{part}'
      for name in ('regret', 'uplink', 'downlink')
      for part in ('mean', 'sd')
  ]
  # Names stay in the order in which the algorithms are listed.
  place = {name: i for i, name in reversed(list(enumerate(names)))}
  table = table.assign(place=table.algorithm.map(place))
  table = table.sort_values(['place', 'horizon'], ignore_index=True)
  return table[['algorithm', 'horizon', 'runs', *numbers]]


def draw(
    table: pd.DataFrame, caption: str, output: pathlib.Path, *, log_scale: bool
) -> None:
  """Draws the regret (left) and the uplink bits (right, log) against T (log).

  Args:
    table: What `growth_table` returns.
    caption: What is drawn.
    output: Where to; the ending says the format.
    log_scale: Whether the axis of the regret is logarithmic.
  """
  names = table.algorithm.unique()
  horizons = sorted(table.horizon.unique())
  with style.context():
    figure = style.new_figure()
    figure.set_size_inches(_SIZE)
    left, right = figure.subplots(1, 2, sharex=True)
    for name, look in zip(names, style.looks(len(names))):
      rows = table[table.algorithm == name]
      for axes, column in ((left, 'regret'), (right, 'uplink')):
        mean, spread = rows[f'{column}_mean'], rows[f'{column}_sd']
        axes.plot(rows.horizon, mean, label=name, **{'marker': 'o', **look})
        style.draw_band(
            axes, rows.horizon, mean - spread, mean + spread, look['color']
        )
    left.set_ylabel('cumulative regret $R(T)$')
    left.set_yscale('log' if log_scale else 'linear')
    right.set_ylabel('uplink bits of a client')
    right.set_yscale('log')
    for axes in (left, right):
      axes.set_xscale('log')
      axes.set_xticks(horizons, [str(horizon) for horizon in horizons])
      axes.set_xticks([], minor=True)
      axes.set_xlabel('horizon $T$')
    style.add_legend(figure, left)
    style.add_caption(figure, caption)
    style.save(figure, output)


def caption(groups: Sequence[horizon_runs.RunGroup]) -> str:
  """Says what is drawn."""
  parts = horizon_runs.describe(groups)
  if any(len(group.runs) > 1 for group in groups):
    parts.append('band: one standard deviation')
  return '; '.join(parts)
