"""Figures of paper 2: regret and bits of runs to a horizon.

All take groups as `results.groups.group_by_algorithm` finds them, and show
means over the runs that have finished.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib import figure as figure_lib
import numpy as np
import pandas as pd

from baselines.figures import bits
from baselines.figures import style
from baselines.figures import tables
from baselines.results import captions
from baselines.results import groups as groups_lib
from baselines.results import runs as runs_lib

Group = groups_lib.Group
_CURVES = ('time_used', 'cumulative_regret', 'cumulative_uplink_bits')
_EPOCHS = ('epoch', 'stepped', 'num_queries', 'cumulative_regret')
_REGRET = 'cumulative_regret_mean'
_REGRET_SD = 'cumulative_regret_sd'
_UPLINK = 'cumulative_uplink_bits_mean'
_DENSE_POINTS = 500
_GROWTH_SIZE = (9.6, 4.6)
_EPOCHS_SIZE = (9.6, 4.4)
_CEAL = 'ceal'


# ---- Regret against time and against bits (Fig. 1).


def against_time(
    runs: pd.DataFrame, options: argparse.Namespace
) -> tables.Drawn:
  """Cumulative regret against time, in bands of one deviation."""
  return _draw_curves(runs, draw_against_time, caption_against_time, options)


def against_bits(
    runs: pd.DataFrame, options: argparse.Namespace
) -> tables.Drawn:
  """Mean regret against the mean of the bits that a client sent."""
  return _draw_curves(runs, draw_against_bits, caption_against_bits, options)


def _draw_curves(
    runs: pd.DataFrame,
    draw: Callable[..., figure_lib.Figure],
    caption: Callable[[Sequence[Group]], str],
    options: argparse.Namespace,
) -> tables.Drawn:
  groups = groups_lib.group_by_algorithm(runs, _CURVES)
  groups_lib.check_one_task(groups)
  curves = curve_table(groups)
  figure = draw(curves, caption(groups), log_scale=options.log_scale)
  return tables.Drawn(curves, figure)


def draw_against_time(
    curves: pd.DataFrame, caption: str, *, log_scale: bool
) -> figure_lib.Figure:
  """Draws what `curve_table` returns against time."""
  figure, axes = style.new_axes()
  for name, curve, look in style.lines(curves, 'algorithm'):
    shown = _dense(curve) if log_scale else curve
    mean, spread = shown[_REGRET], shown[_REGRET_SD]
    axes.plot(
        shown.time_used, mean, label=name,
        markevery=style.mark_every(len(shown)), **look,
    )
    style.draw_band(
        axes, shown.time_used, mean - spread, mean + spread, look['color']
    )
  axes.set_xlabel(r'time $t$ (queries of each client)')
  _set_regret_axis(axes, log_scale)
  return style.finish(figure, axes, caption)


def draw_against_bits(
    curves: pd.DataFrame, caption: str, *, log_scale: bool
) -> figure_lib.Figure:
  """Draws what `curve_table` returns against the bits sent so far.

  A line is a staircase: the regret grows during an exchange, the bits at its
  end. Its last point, the regret and the bits at the horizon, is marked. Raises
  ValueError if no run has sent anything.
  """
  sent = curves[curves[_UPLINK] > 0]
  if sent.empty:
    raise ValueError('runs must have sent bits, found none that has.')
  figure, axes = style.new_axes()
  for name, curve, look in style.lines(sent, 'algorithm'):
    axes.plot(
        curve[_UPLINK], curve[_REGRET], drawstyle='steps-pre', label=name,
        markevery=[-1], **{'marker': 'o', **look},
    )
  axes.set_xlabel('uplink bits of a client so far')
  axes.set_xscale('log')
  _set_regret_axis(axes, log_scale)
  return style.finish(figure, axes, caption)


def caption_against_time(groups: Sequence[Group]) -> str:
  """Says what is drawn against time."""
  spread = any(len(group.runs) > 1 for group in groups)
  return '; '.join([
      *captions.describe_algorithms(groups),
      *(['band: one standard deviation'] if spread else []),
      'linear between exchanges',
  ])


def caption_against_bits(groups: Sequence[Group]) -> str:
  """Says what is drawn against bits."""
  codes = [g.settings['code'] for g in groups if 'code' in g.settings]
  texts = [
      f'{name} {group.settings["code"]}'
      for group, name in zip(groups, captions.name_algorithms(groups, ['code']))
      if 'code' in group.settings
  ]
  text = f'codes: {", ".join(texts)}'
  if len(codes) > style.MAX_UNMARKED and len(set(codes)) == 1:
    text = f'code: {codes[0]}'
  return '; '.join([
      *captions.describe_algorithms(groups),
      'at each time, mean regret against mean bits; dot: at T',
      *([text] if codes else []),
  ])


def curve_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns `mean_curve` of each group that has one, named by `algorithm`."""
  curves = []
  for group, name in zip(groups, captions.name_algorithms(groups)):
    if group.runs:
      curve = mean_curve(group.runs)
      curve.insert(0, 'algorithm', name)
      curves.append(curve)
  return pd.concat(curves, ignore_index=True)


def mean_curve(runs: Sequence[runs_lib.Run]) -> pd.DataFrame:
  """Returns the mean over runs at all times at which one has an exchange.

  The runs are finished and of the same settings. Time is the queries of each
  client so far. Within an exchange the regret is interpolated linearly, which
  is exact where clients stay at one point (CEAL, Minibatch-SGD); bits count
  from the end of the exchange that sent them.

  Returns:
    A row per time, from 0 to the horizon, with the columns `time_used`, `runs`,
    `cumulative_regret_mean`, `cumulative_regret_sd` (of a sample: n - 1; NaN
    for one run) and `cumulative_uplink_bits_mean`.
  """
  # Row 0 is the model before training, and has no number of queries.
  tracks = [
      tuple(run.metrics[name].fillna(0.0).to_numpy() for name in _CURVES)
      for run in runs
  ]
  times = np.unique(np.concatenate([track[0] for track in tracks]))
  regrets = np.array([np.interp(times, t, regret) for t, regret, _ in tracks])
  sent_bits = np.array([
      sent[np.searchsorted(t, times, side='right') - 1] for t, _, sent in tracks
  ])
  unknown = np.full(len(times), np.nan)
  return pd.DataFrame({
      'time_used': times.astype(int),
      'runs': len(runs),
      _REGRET: regrets.mean(axis=0),
      _REGRET_SD: regrets.std(axis=0, ddof=1) if len(runs) > 1 else unknown,
      _UPLINK: sent_bits.mean(axis=0),
  })


def _dense(curve: pd.DataFrame) -> pd.DataFrame:
  """Interpolates so densely that lines bend on a logarithmic axis."""
  grid = np.linspace(0.0, curve.time_used.max(), _DENSE_POINTS + 1)[1:]
  times = np.union1d(grid, curve.time_used[1:])
  return pd.DataFrame({
      'time_used': times,
      **{
          name: np.interp(times, curve.time_used, curve[name])
          for name in (_REGRET, _REGRET_SD)
      },
  })


def _set_regret_axis(axes: Any, log_scale: bool) -> None:
  axes.set_ylabel(r'cumulative regret $R(t)$')
  axes.set_yscale('log' if log_scale else 'linear')


# ---- Regret and bits against the horizon.


def growth(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """Regret and bits against the horizon T, a line per algorithm.

  The theory has both grow as log T for CEAL: straight lines on this axis.
  """
  groups = groups_lib.group_by_algorithm(runs, bits.COLUMNS)
  groups_lib.check_one_task(groups)
  table = growth_table(groups)
  figure = draw_growth(
      table, growth_caption(groups), log_scale=options.log_scale
  )
  return tables.Drawn(table, figure)


def growth_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per algorithm and horizon, in the order of horizons.

  The groups are of one task; those without a finished run are left out. The
  columns are `algorithm` (with what else tells groups apart, but for the
  horizon), `horizon`, `runs`, and of the regret, the uplink and the downlink
  bits at the horizon `_mean` and `_sd` (n - 1) over the runs. Raises ValueError
  if all runs have one horizon.
  """
  names = captions.name_algorithms(groups, ignored=['horizon'])
  table = bits.outcome_table(groups)
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


def draw_growth(
    table: pd.DataFrame, caption: str, *, log_scale: bool
) -> figure_lib.Figure:
  """Draws the regret (left) and the uplink bits (right, log) against T (log).
  """
  horizons = sorted(table.horizon.unique())
  figure = style.new_figure(_GROWTH_SIZE)
  left, right = figure.subplots(1, 2, sharex=True)
  for name, rows, look in style.lines(table, 'algorithm'):
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
  return style.finish(figure, left, caption)


def growth_caption(groups: Sequence[Group]) -> str:
  """Says what is drawn."""
  parts = captions.describe_algorithms(groups)
  if any(len(group.runs) > 1 for group in groups):
    parts.append('band: one standard deviation')
  return '; '.join(parts)


# ---- Epochs of CEAL.


def epochs(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """Length and regret of the epochs of CEAL.

  In epoch k all clients query x^(k), t_k times each; it ends with the step to
  x^(k+1). The theory has t_k grow and the regret of an epoch stay bounded. The
  epoch that the horizon cuts short has neither a whole length nor a whole
  regret and is left out.
  """
  del options  # It has none of its own.
  groups = groups_lib.group_by_algorithm(runs, _EPOCHS, [_CEAL])
  groups_lib.check_one_task(groups)
  table = epoch_table(groups)
  return tables.Drawn(table, draw_epochs(table, epoch_caption(groups, table)))


def epoch_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per group and epoch k.

  The columns are `algorithm` (the name of the group), `epoch`, `all_runs`
  (those that have finished), `runs` (those of them that completed epoch k,
  which all else is of), and `_mean`, `_sd` (n - 1), `_min` and `_max` of
  `queries`, which is t_k, and of `regret`, that of epoch k of all clients
  together. Raises ValueError if no run has completed an epoch.
  """
  rows = []
  for group, name in zip(groups, captions.name_algorithms(groups)):
    found = [run_epochs(run) for run in group.runs]
    for number in sorted({k for completed in found for k in completed.index}):
      completed = [e.loc[number] for e in found if number in e.index]
      row = {
          'algorithm': name, 'epoch': number, 'all_runs': len(found),
          'runs': len(completed),
      }
      for column in ('queries', 'regret'):
        values = [epoch[column] for epoch in completed]
        mean, spread = bits.mean_and_deviation(values)
        row |= {
            f'{column}_mean': mean, f'{column}_sd': spread,
            f'{column}_min': min(values), f'{column}_max': max(values),
        }
      rows.append(row)
  if not rows:
    raise ValueError('runs must have completed an epoch, found none that has.')
  return pd.DataFrame(rows)


def run_epochs(run: runs_lib.Run) -> pd.DataFrame:
  """Returns `queries` and `regret` of the completed epochs of a run, by k."""
  metrics = run.metrics.assign(
      regret=run.metrics['cumulative_regret'].diff(),
  )
  # Row 0 is the model before training.
  by_epoch = metrics[metrics['round'] > 0].groupby('epoch')
  found = pd.DataFrame({
      'queries': by_epoch['num_queries'].sum(),
      'regret': by_epoch['regret'].sum(),
  })[by_epoch['stepped'].last() == 1]
  return found.set_index(found.index.astype(int))


def draw_epochs(table: pd.DataFrame, caption: str) -> figure_lib.Figure:
  """Draws t_k (left) and the regret of epoch k (right) against k.

  Lines are means, in bands from the least to the greatest value; the marks of
  epochs that some of the runs did not complete are hollow.
  """
  figure = style.new_figure(_EPOCHS_SIZE)
  left, right = figure.subplots(1, 2, sharex=True)
  for name, rows, look in style.lines(table, 'algorithm'):
    for axes, column in ((left, 'queries'), (right, 'regret')):
      mean = rows[f'{column}_mean']
      marked = {'marker': 'o', **look}
      axes.plot(rows.epoch, mean, label=name, **marked)
      fewer = rows.runs < rows.all_runs
      axes.plot(
          rows.epoch[fewer], mean[fewer], markerfacecolor='white',
          **{**marked, 'linestyle': 'none'},
      )
      style.draw_band(
          axes, rows.epoch, rows[f'{column}_min'], rows[f'{column}_max'],
          look['color'],
      )
  left.set_yscale('log')
  left.set_ylabel(r'length $t_k$ (queries of each client)')
  right.set_ylim(bottom=0.0)
  right.set_ylabel('regret of the epoch')
  for axes in (left, right):
    axes.set_xlabel('epoch $k$')
    axes.xaxis.get_major_locator().set_params(integer=True)
  if table.algorithm.nunique() > 1:
    return style.finish(figure, left, caption)
  style.add_caption(figure, caption)
  return figure


def epoch_caption(groups: Sequence[Group], table: pd.DataFrame) -> str:
  """Says what is drawn."""
  parts = captions.describe_algorithms(groups)
  if table.runs.max() > 1:
    parts.append('band: from the least to the greatest of the runs')
  if (table.runs < table.all_runs).any():
    parts.append('hollow: only of the runs that completed epoch k before T')
  return '; '.join([*parts, 'the epoch that T cuts short is left out'])
