"""The norm of the update over blocks of rounds, by gamma (paper 1, Figure 3).
"""

from collections.abc import Sequence
import pathlib

import pandas as pd

from baselines.figures import rate_captions
from baselines.figures import rate_runs
from baselines.figures import style
from baselines.figures import symbols

COLUMN = 'update_norm'
# Bars of different lines stand beside each other, not on each other, and those
# of a block in its middle part, both as shares of a block.
_SHIFT = 0.04
_SPREAD = 0.8


def norm_table(
    groups: Sequence[rate_runs.RateGroup], block: int
) -> pd.DataFrame:
  """Returns mean and standard deviation of |q_t| over blocks of rounds.

  Args:
    groups: The groups; those with a diverged run are left out. Repetitions
      are taken together.
    block: The rounds of a block. The first one starts at round 1; rounds at
      the end that fill no block are left out.

  Returns:
    A row for each group and block: `line`, both rates (at the start),
    `decays`, `first_round`,
    `last_round`, `mean` and `sd` (n - 1; NaN for one value).

  Raises:
    ValueError: If a block is longer than all runs.
  """
  drawn = [group for group in groups if not group.num_diverged]
  rows, rounds = [], 0
  for group, name in zip(drawn, rate_captions.name_lines(drawn)):
    metrics = pd.concat([run.metrics for run in group.all_runs])
    rounds = max(rounds, metrics['round'].max())
    for last in range(block, metrics['round'].max() + 1, block):
      first = last - block + 1
      norms = metrics.loc[metrics['round'].between(first, last), COLUMN]
      rows.append({
          'line': name,
          'client_learning_rate': group.client_learning_rate,
          'server_learning_rate': group.server_learning_rate,
          'decays': group.decays,
          'first_round': first,
          'last_round': last,
          'mean': norms.mean(),
          'sd': norms.std(),
      })
  if drawn and not rows:
    raise ValueError(
        f'block must be at most the rounds of the runs, {rounds}, found '
        f'{block}.'
    )
  return pd.DataFrame(rows)


def draw(
    table: pd.DataFrame,
    caption: str,
    output: pathlib.Path,
    *,
    log_scale: bool = False,
) -> None:
  """Draws a line per gamma, at the middle of each block, with bars of one sd.

  Args:
    table: What `norm_table` returns.
    caption: What is drawn.
    output: Where to; the ending says the format.
    log_scale: Whether the vertical axis is logarithmic.
  """
  names = [] if table.empty else list(table.line.unique())
  step = min(_SHIFT, _SPREAD / max(len(names), 1))
  with style.context():
    figure = style.new_figure()
    axes = figure.add_subplot()
    for i, (name, look) in enumerate(zip(names, style.looks(len(names)))):
      rows = table[table.line == name]
      block = rows.last_round - rows.first_round + 1
      shift = (i - (len(names) - 1) / 2) * step * block
      middle = (rows.first_round + rows.last_round) / 2 + shift
      axes.errorbar(
          middle, rows['mean'], yerr=rows.sd.fillna(0.0), label=name,
          capsize=3, **{'marker': 'o', 'markersize': 4, **look},
      )
    axes.set_xlabel(r'round $t$, blocks at their middle')
    axes.set_ylabel(symbols.QUANTITIES[COLUMN])
    axes.set_yscale('log' if log_scale else 'linear')
    if names:
      style.add_legend(figure, axes)
    style.add_caption(figure, caption)
    style.save(figure, output)


def caption(groups: Sequence[rate_runs.RateGroup], block: int) -> str:
  """Says what is drawn."""
  parts = rate_captions.describe(groups)
  drawn = [group for group in groups if not group.num_diverged]
  parts += rate_captions.describe_lost(groups, drawn)
  parts += rate_captions.describe_decay(groups)
  parts.append(f'mean and standard deviation over blocks of {block} rounds')
  return '; '.join(parts)
