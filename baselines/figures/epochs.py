"""Length and regret of the epochs of CEAL (paper 2).

In epoch k all clients query x^(k), t_k times each; it ends with the step to
x^(k+1). The theory has t_k grow and the regret of an epoch stay bounded. The
epoch that the horizon cuts short has neither a whole length nor a whole regret
and is left out.
"""

from collections.abc import Sequence
import pathlib

import pandas as pd

from baselines.figures import horizon_runs
from baselines.figures import load
from baselines.figures import outcomes
from baselines.figures import style

COLUMNS = ('epoch', 'stepped', 'num_queries', 'cumulative_regret')
_SIZE = (9.6, 4.4)


def epoch_table(groups: Sequence[horizon_runs.RunGroup]) -> pd.DataFrame:
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
  for group, name in zip(groups, horizon_runs.name_groups(groups)):
    epochs = [run_epochs(run) for run in group.runs]
    for number in sorted({k for found in epochs for k in found.index}):
      completed = [e.loc[number] for e in epochs if number in e.index]
      rows.append({
          'algorithm': name, 'epoch': number, 'all_runs': len(epochs),
          'runs': len(completed),
          **_summary('queries', [epoch['queries'] for epoch in completed]),
          **_summary('regret', [epoch['regret'] for epoch in completed]),
      })
  if not rows:
    raise ValueError('runs must have completed an epoch, found none that has.')
  return pd.DataFrame(rows)


def run_epochs(run: load.Run) -> pd.DataFrame:
  """Returns `queries` and `regret` of the completed epochs of a run, by k."""
  metrics = run.metrics.assign(
      regret=run.metrics['cumulative_regret'].diff(),
  )
  # Row 0 is the model before training.
  epochs = metrics[metrics['round'] > 0].groupby('epoch')
  found = pd.DataFrame({
      'queries': epochs['num_queries'].sum(),
      'regret': epochs['regret'].sum(),
  })[epochs['stepped'].last() == 1]
  return found.set_index(found.index.astype(int))


def draw(table: pd.DataFrame, caption: str, output: pathlib.Path) -> None:
  """Draws t_k (left) and the regret of epoch k (right) against k.

  Lines are means, in bands from the least to the greatest value; the marks of
  epochs that some of the runs did not complete are hollow.

  Args:
    table: What `epoch_table` returns.
    caption: What is drawn.
    output: Where to; the ending says the format.
  """
  names = table.algorithm.unique()
  with style.context():
    figure = style.new_figure()
    figure.set_size_inches(_SIZE)
    left, right = figure.subplots(1, 2, sharex=True)
    for name, look in zip(names, style.looks(len(names))):
      rows = table[table.algorithm == name]
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
    if len(names) > 1:
      style.add_legend(figure, left)
    style.add_caption(figure, caption)
    style.save(figure, output)


def caption(
    groups: Sequence[horizon_runs.RunGroup], table: pd.DataFrame
) -> str:
  """Says what is drawn."""
  parts = horizon_runs.describe(groups)
  if table.runs.max() > 1:
    parts.append('band: from the least to the greatest of the runs')
  if (table.runs < table.all_runs).any():
    parts.append('hollow: only of the runs that completed epoch k before T')
  return '; '.join([*parts, 'the epoch that T cuts short is left out'])


def _summary(name: str, values: Sequence[float]) -> dict[str, float]:
  mean, spread = outcomes.mean_and_deviation(values)
  return {
      f'{name}_mean': mean, f'{name}_sd': spread,
      f'{name}_min': min(values), f'{name}_max': max(values),
  }
