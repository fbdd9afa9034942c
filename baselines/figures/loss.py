"""A quantity against rounds, one line per setting (paper 1, Figures 2, 4-7)."""

import pathlib
from typing import Any, Sequence

import pandas as pd

from baselines.figures import load
from baselines.figures import style
from baselines.figures import symbols

# What lines are told apart by, in the order of the legend; by other settings
# only where these do not suffice.
_LABELLED = (
    'task',
    'model',
    'data_source',
    'algorithm',
    'server_optimizer',
    'theta',
    'client_learning_rate',
    'server_learning_rate',
    'step_size',
)
# A longer legend stands beside the axes, where it hides no line; a still longer
# one, or one of long labels, makes the figure larger.
_MAX_LABELS_INSIDE = 5
_MAX_LABELS_BESIDE = 16
_LONG_LABEL = 45


def draw(
    runs: Sequence[load.Run],
    output: pathlib.Path,
    *,
    quantity: str = 'population_loss',
    log_scale: bool = False,
) -> int:
  """Draws the figure.

  Runs that differ in seeds only are one line, their mean, in a band from the
  smallest to the largest. Settings with a diverged run are left out, as in the
  paper, and counted in the caption.

  Args:
    runs: The runs.
    output: Where to; the ending says the format.
    quantity: A column of metrics.csv.
    log_scale: Whether the vertical axis is logarithmic.

  Returns:
    The number of lines; there may be none where runs have diverged.

  Raises:
    ValueError: If no run has a value of the quantity, two have equal settings
      and seeds, or the format is unknown.
  """
  load.check_distinct(runs)
  lines = _lines(runs, quantity)
  if not lines and not any(run.diverged for run in runs):
    raise ValueError(
        f'quantity must be in at least one of the runs, found {quantity!r} in '
        f'none of {len(runs)}.'
    )
  with style.context():
    figure = style.new_figure()
    axes = figure.add_subplot()
    for (label, curves), look in zip(lines, _looks(len(lines))):
      _draw_line(axes, label, curves, look)
    axes.set_xlabel(r'round $t$')
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel(symbols.QUANTITIES[quantity])
    axes.set_yscale('log' if log_scale else 'linear')
    _add_legend(figure, axes, [label for label, _ in lines])
    style.add_caption(figure, caption(runs))
    style.save(figure, output)
  return len(lines)


def caption(runs: Sequence[load.Run]) -> str:
  """Says what is drawn: task, fixed settings, runs, seeds, diverged ones."""
  varied = load.varying(runs, _LABELLED)
  fixed = [n for n in _LABELLED if n in runs[0].settings and n not in varied]
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
      lines.append((group[0], curves))
  lines.sort(key=lambda line: [_rank(line[0], name) for name in names])
  labels = _labels([run for run, _ in lines], names)
  return [(label, curves) for label, (_, curves) in zip(labels, lines)]


def _rank(run: load.Run, name: str) -> tuple[bool, float, str]:
  """Orders the values of a setting: none, numbers, texts."""
  value = run.settings.get(name)
  is_number = isinstance(value, (int, float))
  return value is not None, value if is_number else 0.0, str(value)


def _labels(runs: Sequence[load.Run], names: Sequence[str]) -> list[str]:
  """Returns the labels of lines by their first runs: the settings `names`.

  Where two would be alike, all settings that vary are named.
  """
  labels = [
      ', '.join(
          _setting_text(name, run.settings[name])
          for name in names
          if name in run.settings
      )
      for run in runs
  ]
  others = {name for run in runs for name, _ in run.identity} - set(names)
  varied = load.varying(runs, sorted(others))
  if varied and len(set(labels)) < len(labels):
    return _labels(runs, [*names, *varied])
  return labels


def _looks(count: int) -> Sequence[dict[str, Any]]:
  """Returns how lines look, dark to light; few have colours only."""
  if count > style.MAX_UNMARKED:
    return style.looks(count)[::-1]
  return [{'color': colour} for colour in style.colours(count)]


def _draw_line(
    axes, label: str, curves: pd.DataFrame, look: dict[str, Any]
) -> None:
  point = {'marker': 'o'} if len(curves) == 1 else {}
  axes.plot(
      curves.index, curves.mean(axis=1), label=label,
      markevery=style.mark_every(len(curves)), **{**point, **look},
  )
  if curves.shape[1] > 1:
    style.draw_band(
        axes, curves.index, curves.min(axis=1), curves.max(axis=1),
        look['color'],
    )


def _add_legend(figure, axes, labels: Sequence[str]) -> None:
  longest = max(map(len, labels), default=0)
  if not longest:
    return
  if len(labels) > _MAX_LABELS_BESIDE or longest > _LONG_LABEL:
    style.add_legend_beside(figure, axes)
  elif len(labels) > _MAX_LABELS_INSIDE:
    axes.legend(loc='center left', bbox_to_anchor=(1.0, 0.5))
  else:
    axes.legend()


def _setting_text(name: str, value: Any) -> str:
  symbol = symbols.SYMBOLS.get(name, name)
  is_number = isinstance(value, float)
  text = symbols.number_text(value) if is_number else str(value)
  return f'{symbol} = {text}' if symbol.startswith('$') else f'{name} {text}'
