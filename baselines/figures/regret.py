"""Figures and tables of paper 2: regret and bits of runs to a horizon.

All take groups as `results.groups.group_by_algorithm` finds them, and show
means over the runs that have finished.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Optional

from matplotlib import figure as figure_lib
import numpy as np
import pandas as pd

from baselines.figures import style
from baselines.figures import tables
from baselines.results import captions
from baselines.results import groups as groups_lib
from baselines.results import runs as runs_lib
from baselines.results import symbols

Group = groups_lib.Group
_BITS = ('cumulative_uplink_bits', 'cumulative_downlink_bits')
_CURVES = ('time_used', 'cumulative_regret', 'cumulative_uplink_bits')
_OUTCOME = ('cumulative_regret', *_BITS, 'sent')
_EPOCHS = ('epoch', 'stepped', 'num_queries', 'cumulative_regret')
_REGRET = 'cumulative_regret_mean'
_REGRET_SD = 'cumulative_regret_sd'
_UPLINK = 'cumulative_uplink_bits_mean'
_DENSE_POINTS = 500
_GROWTH_SIZE = (9.6, 4.6)
_EPOCHS_SIZE = (9.6, 4.4)
_CEAL = 'ceal'
_BASE = 'base'
# Algorithms that others are compared to, and the links that are compared.
_RATIOS = (
    ('uplink', 'fed_paq'), ('uplink', 'fed_avg'), ('downlink', 'fed_avg'),
)
# The code of messages that are not compressed: the numbers as they are.
NO_CODE = 'floats'
# FedPAQ's own code, which is meant where there are several.
_REFERENCE_CODE = 'fixed_width'
# The order of the columns of `codes_table`.
_CODES = (NO_CODE, 'fixed_width', 'signed_unary', 'elias_gamma', 'run_length')

NOTES = (
    'Means over runs, in parentheses the standard deviation (n - 1). Uplink: '
    'bits that a client sent, mean over the clients; downlink: bits broadcast, '
    'each broadcast counted once; both until the horizon, under the code that '
    'is named. Rounds: those in which anything was sent.',
    'Ratios are of means, to the runs of FedPAQ and FedAvg that agree in the '
    'task, the settings of the run and the horizon; where FedPAQ has several '
    'codes, to the one with fixed_width. A dash: no such runs have finished, '
    'or those of several settings.',
)


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
  end. Its last point, the regret and the bits at the horizon, is marked.

  Raises:
    ValueError: If no run has sent anything.
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
  """Returns the mean curves of the groups, one below the other.

  Args:
    groups: The groups; those without a finished run have no curve.

  Returns:
    The columns of `mean_curve`, behind `algorithm`, the name of the group.
  """
  curves = []
  for group, name in zip(groups, captions.name_algorithms(groups)):
    if group.runs:
      curve = mean_curve(group.runs)
      curve.insert(0, 'algorithm', name)
      curves.append(curve)
  return pd.concat(curves, ignore_index=True)


def mean_curve(runs: Sequence[runs_lib.Run]) -> pd.DataFrame:
  """Returns the mean over runs at all times at which one has an exchange.

  Time is the queries of each client so far. Within an exchange the regret is
  interpolated linearly, which is exact where clients stay at one point (CEAL,
  Minibatch-SGD); bits count from the end of the exchange that sent them.

  Args:
    runs: Finished runs of the same settings, at least one.

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
  bits = np.array([
      sent[np.searchsorted(t, times, side='right') - 1] for t, _, sent in tracks
  ])
  unknown = np.full(len(times), np.nan)
  return pd.DataFrame({
      'time_used': times.astype(int),
      'runs': len(runs),
      _REGRET: regrets.mean(axis=0),
      _REGRET_SD: regrets.std(axis=0, ddof=1) if len(runs) > 1 else unknown,
      _UPLINK: bits.mean(axis=0),
  })


def _dense(curve: pd.DataFrame) -> pd.DataFrame:
  """Returns times after 0 so near to each other that what is linear bends.

  Between points a logarithmic axis would have other straight lines.
  """
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


# ---- Regret, bits and their ratios (Table I).


def bits(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """Regret and bits of each task and algorithm (Table I)."""
  del options  # It has none of its own.
  groups = groups_lib.group_by_algorithm(runs, _OUTCOME)
  table = bits_table(groups)
  texts = outcome_texts(table, ('task', 'algorithm', 'code'))
  return tables.Drawn(table, texts=texts, notes=bits_notes(groups))


def bits_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per group: `task`, `algorithm` and its outcome.

  Args:
    groups: The groups, of any tasks.

  Returns:
    `task`, `algorithm` (with what else tells groups apart, but for the code)
    and the columns of `outcome_table`.
  """
  table = outcome_table(groups)
  names = captions.name_algorithms(groups, ignored=['code'])
  table.insert(0, 'task', [group.task for group in groups])
  table.insert(1, 'algorithm', names)
  return table


def bits_notes(groups: Sequence[Group]) -> list[str]:
  """Says what the table shows, and of which runs."""
  return [*captions.describe_tasks(groups), *NOTES]


def outcome_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per group, in their order.

  Args:
    groups: The groups; numbers of one without a finished run are NaN.

  Returns:
    The columns `code`, `runs` (those that have finished), `diverged`,
    `unfinished`, `regret_mean`, `regret_sd`, the same for `uplink`, `downlink`
    and `rounds`, and `uplink_percent_of_fed_paq`, `uplink_percent_of_fed_avg`,
    `downlink_percent_of_fed_avg`, as `NOTES` says.
  """
  rows = [_outcome(group) for group in groups]
  for row, group in zip(rows, groups):
    for link, algorithm in _RATIOS:
      other = _reference(groups, group, algorithm)
      base = np.nan if other is None else rows[other][f'{link}_mean']
      share = row[f'{link}_mean'] / base if base else np.nan
      row[f'{link}_percent_of_{algorithm}'] = 100 * share
  return pd.DataFrame(rows)


def outcome_texts(
    table: pd.DataFrame, first: Sequence[str] = ()
) -> pd.DataFrame:
  """Returns columns of `outcome_table` as texts, behind some others."""
  shown = table[list(first)].copy()
  shown['runs'] = table.runs.astype(str)
  for word in ('diverged', 'unfinished'):
    if table[word].any():
      shown[word] = table[word].astype(str)
  for name in ('regret', 'uplink', 'downlink'):
    shown[name] = list(
        map(tables.mean_text, table[f'{name}_mean'], table[f'{name}_sd'])
    )
  shown['rounds'] = [tables.number_text(r, 100.0) for r in table.rounds_mean]
  for link, algorithm in _RATIOS:
    name = symbols.algorithm_text(algorithm)
    column = table[f'{link}_percent_of_{algorithm}']
    shown[f'{link} / {name}'] = list(map(tables.percent_text, column))
  return shown


def code_of(group: Group) -> str:
  """Returns the code that bits are counted under."""
  return group.settings.get('code', NO_CODE)


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
  """Returns the mean and the standard deviation of a sample (n - 1).

  Nothing has no mean, and one value no deviation: those are NaN.
  """
  mean = float(np.mean(values)) if len(values) else np.nan
  spread = float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
  return mean, spread


def _outcome(group: Group) -> dict[str, Any]:
  row: dict[str, Any] = {
      'code': code_of(group),
      'runs': len(group.runs),
      'diverged': group.num_diverged,
      'unfinished': group.num_unfinished,
  }
  found = {
      name: [_last_value(run, column) for run in group.runs]
      for name, column in zip(('regret', 'uplink', 'downlink'), _OUTCOME)
  }
  found['rounds'] = [float(run.metrics['sent'].sum()) for run in group.runs]
  for name, values in found.items():
    row[f'{name}_mean'], row[f'{name}_sd'] = mean_and_deviation(values)
  return row


def _last_value(run: runs_lib.Run, column: str) -> float:
  """Returns a number at the end of a run; before any round it is 0."""
  return float(run.metrics[column].fillna(0.0).iloc[-1])


def _reference(
    groups: Sequence[Group], group: Group, algorithm: str
) -> Optional[int]:
  """Returns which group a group is compared to; None unless it is just one."""
  found = [
      i
      for i, other in enumerate(groups)
      if other.algorithm == algorithm
      and other.experiment == group.experiment
      and other.runs
  ]
  if len(found) > 1:
    found = [i for i in found if code_of(groups[i]) == _REFERENCE_CODE]
  return found[0] if len(found) == 1 else None


# ---- Bits under each code.


def codes(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """Bits under each code: a row per algorithm and link, a column per code."""
  del options  # It has none of its own.
  groups = groups_lib.group_by_algorithm(runs, _BITS)
  table = codes_table(groups)
  return tables.Drawn(
      table, texts=codes_texts(table), notes=codes_notes(groups)
  )


def codes_notes(groups: Sequence[Group]) -> list[str]:
  """Says what the table shows, and of which runs."""
  return [
      *captions.describe_tasks(groups),
      'Bits until the horizon: means over runs, in parentheses the standard '
      'deviation (n - 1). Uplink: bits that a client sent, mean over the '
      'clients; downlink: bits broadcast, each broadcast counted once; '
      'all but CEAL broadcast the numbers as they are, whatever the code. '
      f'{NO_CODE}: the numbers as they are, without a code. A dash: '
      'no such run has finished.',
  ]


def codes_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per algorithm, link and code.

  Args:
    groups: The groups, of any tasks; best from a sweep over `code`.

  Returns:
    The columns `task`, `algorithm` (with what else tells groups apart, but for
    the code), `link` (uplink or downlink), `code`, `runs`, `bits_mean` and
    `bits_sd` (n - 1): the bits until the horizon of a client, mean over the
    clients, or of the broadcasts, mean over the runs.
  """
  names = captions.name_algorithms(groups, ignored=['code'])
  rows: list[dict[str, Any]] = []
  for task in dict.fromkeys(group.task for group in groups):
    for link, column in zip(('uplink', 'downlink'), _BITS):
      for group, name in zip(groups, names):
        if group.task == task:
          found = [_last_value(run, column) for run in group.runs]
          mean, spread = mean_and_deviation(found)
          rows.append({
              'task': task, 'algorithm': name, 'link': link,
              'code': code_of(group), 'runs': len(group.runs),
              'bits_mean': mean, 'bits_sd': spread,
          })
  return pd.DataFrame(rows)


def codes_texts(table: pd.DataFrame) -> pd.DataFrame:
  """Returns what `codes_table` returns as texts, with a column per code."""
  keys = ['task', 'algorithm', 'link']
  lines: dict[tuple[str, ...], dict[str, str]] = {}
  for row in table.itertuples():
    line = lines.setdefault((row.task, row.algorithm, row.link), {})
    line[row.code] = tables.mean_text(row.bits_mean, row.bits_sd)
  found = table['code'].unique()
  # Codes that are not known come last, in the order of the table.
  shown = [code for code in _CODES if code in found]
  shown += [code for code in found if code not in shown]
  return pd.DataFrame(
      [
          [*key, *(line.get(code, '-') for code in shown)]
          for key, line in lines.items()
      ],
      columns=[*keys, *shown],
  )


# ---- Regret and bits against the horizon.


def growth(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """Regret and bits against the horizon T, a line per algorithm.

  The theory has both grow as log T for CEAL: straight lines on this axis.
  """
  groups = groups_lib.group_by_algorithm(runs, _OUTCOME)
  groups_lib.check_one_task(groups)
  table = growth_table(groups)
  figure = draw_growth(
      table, growth_caption(groups), log_scale=options.log_scale
  )
  return tables.Drawn(table, figure)


def growth_table(groups: Sequence[Group]) -> pd.DataFrame:
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
  names = captions.name_algorithms(groups, ignored=['horizon'])
  table = outcome_table(groups)
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

  Args:
    table: What `growth_table` returns.
    caption: What is drawn.
    log_scale: Whether the axis of the regret is logarithmic.
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

  Args:
    groups: Groups of CEAL.

  Returns:
    The columns `algorithm` (the name of the group), `epoch`, `all_runs` (those
    that have finished), `runs` (those of them that completed epoch k, which all
    else is of), and `_mean`, `_sd` (n - 1), `_min` and `_max` of `queries`,
    which is t_k, and of `regret`, that of epoch k of all clients together.

  Raises:
    ValueError: If no run has completed an epoch.
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
        mean, spread = mean_and_deviation(values)
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

  Args:
    table: What `epoch_table` returns.
    caption: What is drawn.
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


# ---- How settings of CEAL change its regret and bits.


def sensitivity(
    runs: pd.DataFrame, options: argparse.Namespace
) -> tables.Drawn:
  """Regret and bits of CEAL, a row per changed setting.

  The rows are compared with a base, the configuration that the others of its
  task differ from in the fewest settings, all together. In a sweep that changes
  one setting at a time that is the one that all changes start from.
  """
  del options  # It has none of its own.
  groups = groups_lib.group_by_algorithm(runs, _OUTCOME)
  table = sensitivity_table(groups)
  texts = outcome_texts(table, ('task', 'variant', 'code'))
  return tables.Drawn(table, texts=texts, notes=sensitivity_notes(groups))


def sensitivity_table(groups: Sequence[Group]) -> pd.DataFrame:
  """Returns one row per group of CEAL.

  Args:
    groups: The groups, of any tasks; those of FedPAQ and FedAvg are what CEAL
      is compared with.

  Returns:
    `task`, `variant` (the settings in which the group differs from the base of
    its task, with the group's values; `base` where there are none) and the
    columns of `outcome_table`; the base of each task first, then by the names
    of the settings.

  Raises:
    ValueError: If there is no group of CEAL.
  """
  bases = find_bases(groups)
  changes = [
      captions.varied_settings([bases[group.task], group])
      if group.algorithm == _CEAL else []
      for group in groups
  ]
  texts = [
      ', '.join(
          captions.setting_text(name, group.settings[name])
          if name in group.settings else f'{name} by default'
          for name in names
      )
      for group, names in zip(groups, changes)
  ]
  table = outcome_table(groups)
  table.insert(0, 'task', [group.task for group in groups])
  table.insert(1, 'variant', [text or _BASE for text in texts])
  order = sorted(
      (i for i, group in enumerate(groups) if group.algorithm == _CEAL),
      key=lambda i: (groups[i].task, len(changes[i]), changes[i], i),
  )
  return table.iloc[order].reset_index(drop=True)


def find_bases(groups: Sequence[Group]) -> dict[str, Group]:
  """Returns the base of each task that CEAL was run on.

  Of configurations that are as near to the others, the one of more runs is
  taken, then the first one.

  Raises:
    ValueError: If there is no group of CEAL.
  """
  found: dict[str, list[Group]] = {}
  for group in groups:
    if group.algorithm == _CEAL:
      found.setdefault(group.task, []).append(group)
  if not found:
    raise ValueError('runs must hold a run of ceal, found none.')

  def find_base(same):
    def distance(group):
      changes = [captions.varied_settings([group, other]) for other in same]
      return sum(map(len, changes)), -len(group.all_runs)

    return min(same, key=distance)

  return {task: find_base(same) for task, same in found.items()}


def sensitivity_notes(groups: Sequence[Group]) -> list[str]:
  """Says what the table shows, of which runs, and what the bases are."""
  shown = [group for group in groups if group.algorithm == _CEAL]
  texts = captions.describe_tasks(shown)
  for task, base in find_bases(groups).items():
    values = ', '.join(
        captions.setting_text(name, value)
        for name, value in base.components['algorithm'].items()
        if name != 'algorithm'
    )
    texts.append(f'The base of {task}: {values}.')
  return [*texts, *NOTES]
