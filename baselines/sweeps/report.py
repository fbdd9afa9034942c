"""What a sweep leaves behind: its table and its figure."""

import pathlib
from typing import Optional, Sequence

from baselines.experiment import summary
from baselines.figures import load
from baselines.figures import loss
from baselines.sweeps import best_rates
from baselines.sweeps import results


def report_results(
    outcomes: Sequence[summary.RunSummary],
    folder: pathlib.Path,
    figure: Optional[str],
    *,
    is_whole: bool = True,
) -> None:
  """Prints and saves the tables, and draws the figure if one is wanted.

  Args:
    outcomes: One for each point.
    folder: Where the table goes.
    figure: Where the figure goes, or None.
    is_whole: Whether these are all points. A part of them is printed only.
  """
  if not outcomes:  # There are more parts than points.
    print('no runs')
    return
  table = results.results_table(outcomes)
  print(results.table_text(table))
  for outcome in outcomes:
    if outcome.reason:
      print(f'{outcome.path}: {summary.status_text(outcome)}')
  if not is_whole:
    return
  results.save_results(table, folder)
  print(f'table: {folder / "results.csv"}, {folder / "results.md"}')
  others = _count_others(outcomes, folder)
  if others:
    print(
        f'{others} other runs in {folder} are not in the table: it lists those '
        'of this command.'
    )
  if best_rates.save_best_rates(outcomes, folder):
    print(f'best rates: {folder / "best.csv"}, {folder / "best.md"}')
  if figure and any(outcome.round for outcome in outcomes):
    _draw(outcomes, pathlib.Path(figure).expanduser())


def _count_others(
    outcomes: Sequence[summary.RunSummary], folder: pathlib.Path
) -> int:
  """Returns how many run folders there are besides those of the outcomes."""
  own = {pathlib.Path(outcome.path).name for outcome in outcomes}
  found = {path.parent.name for path in folder.glob('*/config.json')}
  return len(found - own)


def _draw(
    outcomes: Sequence[summary.RunSummary], figure: pathlib.Path
) -> None:
  runs = [load.load_run(pathlib.Path(o.path)) for o in outcomes if o.round]
  loss.draw(runs, figure)
  print(f'figure: {figure}')
