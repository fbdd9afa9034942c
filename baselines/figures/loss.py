"""A quantity against rounds, one line per setting (paper 1, Figures 2, 4-7)."""

import pathlib
from typing import Any, Sequence

import pandas as pd

from baselines.figures import load
from baselines.figures import style
from baselines.figures import symbols

# What lines may be told apart by, in the order of the legend.
_LABELLED = (
    'task',
    'model',
    'server_optimizer',
    'theta',
    'client_learning_rate',
    'server_learning_rate',
)
# A longer legend stands beside the axes, where it hides no line.
_MAX_LABELS_INSIDE = 5


def draw(
    runs: Sequence[load.Run],
    output: pathlib.Path,
    *,
    quantity: str = 'population_loss',
    log_scale: bool = False,
) -> None:
  """Draws the figure.

  Runs that differ in seeds only are one line, their mean, in a band from the
  smallest to the largest. Settings with a diverged run are left out, as in the
  paper, and counted in the caption.

  Args:
    runs: The runs.
    output: Where to; the ending says the format.
    quantity: A column of metrics.csv.
    log_scale: Whether the vertical axis is logarithmic.

  Raises:
    ValueError: If no run has a value of the quantity, or the format is unknown.
  """
  lines = _lines(runs, quantity)
  if not lines and not any(run.diverged for run in runs):
    raise ValueError(
        f'quantity must be in at least one of the runs, found {quantity!r} in '
        f'none of {len(runs)}.'
    )
  with style.context():
    figure = style.new_figure()
    axes = figure.add_subplot()
    for (label, curves), colour in zip(lines, style.colours(len(lines))):
      _draw_line(axes, label, curves, colour)
    axes.set_xlabel(r'round $t$')
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel(symbols.QUANTITIES[quantity])
    axes.set_yscale('log' if log_scale else 'linear')
    if len(lines) > _MAX_LABELS_INSIDE:
      axes.legend(loc='center left', bbox_to_anchor=(1.0, 0.5))
    elif any(label for label, _ in lines):
      axes.legend()
    style.add_caption(figure, caption(runs))
    style.save(figure, output)


def caption(runs: Sequence[load.Run]) -> str:
  """Says what is drawn: task, fixed settings, runs, seeds, diverged ones."""
  fixed = [n for n in _LABELLED if n not in load.varying(runs, _LABELLED)]
  parts = [_setting_text(name, runs[0].settings[name]) for name in fixed]
  seeds = sorted({run.settings['sampling_seed'] for run in runs})
  diverged = sum(run.diverged for run in runs)
  parts += [
      f'{len(runs)} runs',
      f'sampling seeds {", ".join(str(s) for s in seeds)}',
      f'{diverged} diverged, not drawn',
  ]
  unfinished = sum(
      run.status not in ('finished', 'diverged') for run in runs
  )
  if unfinished:
    parts.append(f'{unfinished} not finished')
  return '; '.join(parts)


def _lines(
    runs: Sequence[load.Run], quantity: str
) -> list[tuple[str, pd.DataFrame]]:
  """Returns label and curves (one column per run) of each line, in order."""
  groups: dict[Any, list[load.Run]] = {}
  for run in runs:
    groups.setdefault(run.identity, []).append(run)
  names = load.varying(runs, _LABELLED)
  lines = []
  for group in groups.values():
    curves = pd.concat(
        [
            run.metrics.set_index('round').reindex(columns=[quantity])
            for run in group
        ],
        axis=1,
    ).dropna(how='all')
    if not any(run.diverged for run in group) and not curves.empty:
      values = [group[0].settings[name] for name in names]
      label = ', '.join(map(_setting_text, names, values))
      lines.append((values, label, curves))
  lines.sort(key=lambda line: line[0])
  return [(label, curves) for _, label, curves in lines]


def _draw_line(axes, label: str, curves: pd.DataFrame, colour) -> None:
  marker = 'o' if len(curves) == 1 else None
  axes.plot(
      curves.index, curves.mean(axis=1), label=label, color=colour,
      marker=marker,
  )
  if curves.shape[1] > 1:
    axes.fill_between(
        curves.index, curves.min(axis=1), curves.max(axis=1), color=colour,
        alpha=0.2, linewidth=0,
    )


def _setting_text(name: str, value: Any) -> str:
  symbol = symbols.SYMBOLS.get(name, name)
  text = f'{value:g}' if isinstance(value, float) else str(value)
  return f'{symbol} = {text}' if symbol.startswith('$') else f'{name} {text}'
