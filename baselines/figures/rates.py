"""Figures of paper 1: a line for each gamma and eta.

`loss` draws any runs; the others take those with both rates, grouped by
`results.groups.group_by_rates`. Groups with a diverged run are not drawn, as in
the paper, and counted in the caption.
"""

import argparse
from collections.abc import Sequence
from typing import Any, Optional

from matplotlib import figure as figure_lib
import pandas as pd

from baselines.figures import best_rates
from baselines.figures import style
from baselines.figures import tables
from baselines.results import captions
from baselines.results import groups as groups_lib
from baselines.results import ranking
from baselines.results import runs as runs_lib
from baselines.results import symbols

Group = groups_lib.Group
_NORM = 'update_norm'
# A longer legend of `loss` stands beside the axes, where it hides no line; a
# still longer one, or one of long labels, makes the figure larger.
_MAX_LABELS_INSIDE = 5
_MAX_LABELS_BESIDE = 16
_LONG_LABEL = 45
# Bars of different lines stand beside each other, not on each other, and those
# of a block in its middle part, both as shares of a block.
_SHIFT = 0.04
_SPREAD = 0.8



def loss(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """A quantity against rounds, one line per setting (Figures 2, 4 to 7)."""
  return draw_loss(runs, options.quantity, log_scale=options.log_scale)


def draw_loss(
    table: pd.DataFrame, quantity: str, *, log_scale: bool = False
) -> tables.Drawn:
  """Draws runs of any kind; repetitions are their mean, in a band of all.

  Raises ValueError if no run has a value of the quantity, or two have equal
  settings and seeds.
  """
  runs = runs_lib.runs_of(table)
  groups = captions.order_any(groups_lib.group_distinct(runs), runs)
  found = {group: _curves(group, quantity) for group in groups}
  lines = [g for g in groups if not g.num_diverged and not found[g].empty]
  if not lines and not any(run.diverged for run in runs):
    raise ValueError(
        f'quantity must be in at least one of the runs, found {quantity!r} in '
        f'none of {len(runs)}.'
    )
  figure, axes = style.new_axes()
  looks = style.looks(len(lines))[::-1]
  if len(lines) <= style.MAX_UNMARKED:
    looks = [{'color': colour} for colour in style.colours(len(lines))]
  names = captions.name_any(lines, runs)
  for group, label, look in zip(lines, names, looks):
    _draw_line(axes, _spread(found[group]), label, look)
  style.set_round_axes(axes, symbols.QUANTITIES[quantity], log_scale)
  longest = max(map(len, names), default=0)
  if len(names) > _MAX_LABELS_BESIDE or longest > _LONG_LABEL:
    style.add_legend_beside(figure, axes)
  elif longest and len(names) > _MAX_LABELS_INSIDE:
    axes.legend(loc='center left', bbox_to_anchor=(1.0, 0.5))
  elif longest:
    axes.legend()
  style.add_caption(figure, '; '.join(captions.describe_any(runs)))
  return tables.Drawn(figure=figure, has_lines=bool(lines))


def curves(runs: pd.DataFrame, options: argparse.Namespace) -> tables.Drawn:
  """A quantity against rounds, a line per gamma (Figures 2 and 4 to 9)."""
  rule = best_rates.rule_of(options) if options.select == 'best' else None
  columns = [options.quantity, *([rule.quantity] if rule else [])]
  candidates = _shown_groups(runs, options, columns)
  groups_lib.check_one_task(candidates)
  if options.select == 'equal':
    # First, so that a gamma which has no equal eta counts as one without a run.
    candidates = groups_lib.with_equal_rates(candidates)
  candidates = groups_lib.with_rates(
      candidates, options.client_learning_rates, options.server_learning_rate
  )
  shown = candidates
  if rule:
    shown = ranking.best_groups(candidates, rule)
    if not shown:
      raise ValueError(
          'runs must hold a run that has finished to select the best, found '
          f'none among {len(candidates)} settings.'
      )
  table = curve_table(
      shown, options.quantity, options.smoothing, shows_eta=rule is not None
  )
  figure = draw_curves(
      table,
      curve_caption(candidates, shown, options.smoothing, rule),
      quantity=options.quantity,
      log_scale=options.log_scale,
      largest=options.largest,
  )
  return tables.Drawn(
      _with_plain_names(table), figure, has_lines=not table.empty
  )


def curve_table(
    groups: Sequence[Group],
    quantity: str,
    smoothing: int = 1,
    *,
    shows_eta: bool = False,
) -> pd.DataFrame:
  """Returns the curves of the groups, one below the other.

  Each value is the mean of `smoothing` consecutive ones, the last of them at
  its round. With `shows_eta`, lines are named by eta even if it is the same in
  all.

  Returns:
    A row for each line and round at which there is a value: `line`, both rates
    (at the start), `decays`, `round`, `runs`, and over these `mean`, `smallest`
    and `largest`.

  Raises:
    ValueError: If there is no value, or none but fewer than `smoothing`.
  """
  drawn = [group for group in groups if not group.num_diverged]
  found = []
  names = captions.name_rates(drawn, shows_eta=shows_eta)
  for group, name in zip(drawn, names):
    table = _spread(_curves(group, quantity, smoothing))
    for place, (column, value) in enumerate(_line_columns(group, name).items()):
      table.insert(place, column, value)
    found.append(table)
  table = pd.concat(found, ignore_index=True) if found else pd.DataFrame()
  # All runs may have diverged; a figure of none is a result then.
  if table.empty and drawn:
    raise ValueError(
        f'quantity must have at least {smoothing} values, as smoothing asks, '
        f'in one of the runs; found fewer of {quantity!r}.'
    )
  return table


def draw_curves(
    table: pd.DataFrame,
    caption: str,
    *,
    quantity: str,
    log_scale: bool = False,
    largest: Optional[float] = None,
) -> figure_lib.Figure:
  """Draws the lines; repetitions are their mean, in a band of all of them.

  The vertical axis ends at `largest`, at most. Raises ValueError if all values
  are above that.
  """
  if largest is not None and not table.empty:
    smallest = table['mean'].min()
    if smallest >= largest:
      raise ValueError(
          f'largest must be above a value that is drawn, found {largest:g}, '
          f'where the smallest is {smallest:g}.'
      )
  figure, axes = style.new_axes()
  for name, rows, look in style.lines(table, 'line'):
    _draw_line(axes, rows, name, look)
  style.set_round_axes(axes, symbols.QUANTITIES[quantity], log_scale)
  if largest is not None and axes.get_ylim()[1] > largest:
    axes.set_ylim(top=largest)
  return style.finish(figure, axes, caption)


def curve_caption(
    candidates: Sequence[Group],
    shown: Sequence[Group],
    smoothing: int = 1,
    rule: Optional[ranking.Rule] = None,
) -> str:
  """Says what is drawn: the groups shown, of the candidates.

  The rule is that by which they were selected, if by eta.
  """
  parts = captions.describe_rates(candidates)
  if rule is not None:
    parts.append(captions.describe_rule(candidates, rule))
  drawn = [group for group in shown if not group.num_diverged]
  parts += captions.describe_lost(candidates, drawn)
  parts += captions.describe_decay(candidates)
  if smoothing > 1:
    parts.append(f'means of {smoothing} values that follow each other')
  if any(len(group.all_runs) > 1 for group in drawn):
    parts.append('band: all runs')
  return '; '.join(parts)


def update_norms(
    runs: pd.DataFrame, options: argparse.Namespace
) -> tables.Drawn:
  """The norm of the update over blocks of rounds, by gamma (Figure 3)."""
  groups = groups_lib.with_rates(
      _shown_groups(runs, options, [_NORM]),
      server_learning_rate=options.server_learning_rate,
  )
  groups_lib.check_one_task(groups)
  table = norm_table(groups, options.block)
  figure = draw_norms(
      table, norm_caption(groups, options.block), log_scale=options.log_scale
  )
  return tables.Drawn(
      _with_plain_names(table), figure, has_lines=not table.empty
  )


def norm_table(groups: Sequence[Group], block: int) -> pd.DataFrame:
  """Returns mean and standard deviation of |q_t| over blocks of rounds.

  The first block starts at round 1; rounds at the end that fill no block are
  left out. Repetitions are taken together.

  Returns:
    A row for each group and block: `line`, both rates (at the start), `decays`,
    `first_round`, `last_round`, `mean` and `sd` (n - 1; NaN for one value).

  Raises:
    ValueError: If a block is longer than all runs.
  """
  drawn = [group for group in groups if not group.num_diverged]
  rows, rounds = [], 0
  for group, name in zip(drawn, captions.name_rates(drawn)):
    metrics = pd.concat([run.metrics for run in group.all_runs])
    rounds = max(rounds, metrics['round'].max())
    for last in range(block, metrics['round'].max() + 1, block):
      first = last - block + 1
      norms = metrics.loc[metrics['round'].between(first, last), _NORM]
      rows.append({
          **_line_columns(group, name), 'first_round': first,
          'last_round': last, 'mean': norms.mean(), 'sd': norms.std(),
      })
  if drawn and not rows:
    raise ValueError(
        f'block must be at most the rounds of the runs, {rounds}, found '
        f'{block}.'
    )
  return pd.DataFrame(rows)


def draw_norms(
    table: pd.DataFrame, caption: str, *, log_scale: bool = False
) -> figure_lib.Figure:
  """Draws a line per gamma, at the middle of each block, with bars of one sd.
  """
  figure, axes = style.new_axes()
  lines = list(style.lines(table, 'line'))
  step = min(_SHIFT, _SPREAD / max(len(lines), 1))
  for i, (name, rows, look) in enumerate(lines):
    block = rows.last_round - rows.first_round + 1
    shift = (i - (len(lines) - 1) / 2) * step * block
    axes.errorbar(
        (rows.first_round + rows.last_round) / 2 + shift, rows['mean'],
        yerr=rows.sd.fillna(0.0), label=name, capsize=3,
        **{'marker': 'o', 'markersize': 4, **look},
    )
  axes.set_xlabel(r'round $t$, blocks at their middle')
  axes.set_ylabel(symbols.QUANTITIES[_NORM])
  axes.set_yscale('log' if log_scale else 'linear')
  return style.finish(figure, axes, caption)


def norm_caption(groups: Sequence[Group], block: int) -> str:
  """Says what is drawn."""
  drawn = [group for group in groups if not group.num_diverged]
  return '; '.join([
      *captions.describe_rates(groups),
      *captions.describe_lost(groups, drawn),
      *captions.describe_decay(groups),
      f'mean and standard deviation over blocks of {block} rounds',
  ])


def _shown_groups(
    runs: pd.DataFrame, options: argparse.Namespace, columns: Sequence[str]
) -> list[Group]:
  """Returns the groups of a figure: with `decay` also those that decay."""
  groups = groups_lib.group_by_rates(runs, columns)
  if not options.decay:
    return groups_lib.without_decay(groups, 'give --decay to draw them')
  if not any(group.decays for group in groups):
    raise ValueError(
        'runs must hold a run of LocalUpdateDecay with decay, found none among '
        f'{len(groups)} settings.'
    )
  return groups


def _line_columns(group: Group, name: str) -> dict[str, Any]:
  return {
      'line': name,
      'client_learning_rate': group.client_learning_rate,
      'server_learning_rate': group.server_learning_rate,
      'decays': group.decays,
  }


def _with_plain_names(table: pd.DataFrame) -> pd.DataFrame:
  """Returns the table of lines, their names as plain text."""
  if table.empty:
    return table
  return table.assign(line=[captions.plain_text(name) for name in table.line])


def _curves(group: Group, quantity: str, smoothing: int = 1) -> pd.DataFrame:
  """Returns a quantity by round, a column for each run of the group."""
  columns = []
  for run in group.all_runs:
    values = run.metrics.set_index('round').reindex(columns=[quantity])
    values = values[quantity].dropna()
    columns.append(values.rolling(smoothing).mean().dropna())
  return pd.concat(columns, axis=1).sort_index()


def _spread(columns: pd.DataFrame) -> pd.DataFrame:
  """Returns what repetitions, a column each, have in common."""
  return pd.DataFrame({
      'round': columns.index,
      'runs': columns.notna().sum(axis=1).to_numpy(),
      'mean': columns.mean(axis=1).to_numpy(),
      'smallest': columns.min(axis=1).to_numpy(),
      'largest': columns.max(axis=1).to_numpy(),
  })


def _draw_line(
    axes: Any, rows: pd.DataFrame, label: str, look: dict[str, Any]
) -> None:
  """Draws what `_spread` returns: a line, in a band where it is of several."""
  point = {'marker': 'o'} if len(rows) == 1 else {}
  axes.plot(
      rows['round'], rows['mean'], label=label,
      markevery=style.mark_every(len(rows)), **{**point, **look},
  )
  if rows['runs'].max() > 1:
    style.draw_band(
        axes, rows['round'], rows.smallest, rows.largest, look['color']
    )
