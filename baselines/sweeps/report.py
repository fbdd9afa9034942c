"""What a sweep leaves behind: its table and its figure."""

import pathlib
from typing import Optional, Sequence

from baselines import command
from baselines.figures import load
from baselines.figures import loss
from baselines.run import folder as folder_lib
from baselines.run import summary
from baselines.settings import record
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

  What is saved has all runs of the folder, what is printed those given.

  Args:
    outcomes: One for each point.
    folder: Where the table goes.
    figure: Where the figure goes, or None.
    is_whole: Whether these are all points. A part of them is printed only.
  """
  if not outcomes:  # There are more parts than points.
    print('no runs')
    return
  others = _other_outcomes(outcomes, folder) if is_whole else []
  everything = [*outcomes, *others]
  table = results.results_table(everything)
  if is_whole:  # First: it must not depend on whether prints are seen.
    results.save_results(table, folder)
  print(results.table_text(results.rows_of(table, outcomes)))
  for outcome in outcomes:
    if outcome.reason:
      print(f'{outcome.path}: {summary.status_text(outcome)}')
  if not is_whole:
    return
  also = f', with {len(others)} more runs of the folder' if others else ''
  print(f'table{also}: {folder / "results.csv"}, {folder / "results.md"}')
  if best_rates.save_best_rates(everything, folder):
    print(f'best rates: {folder / "best.csv"}, {folder / "best.md"}')
  if figure:
    _draw(outcomes, command.user_path('figure', figure))


def _other_outcomes(
    outcomes: Sequence[summary.RunSummary], folder: pathlib.Path
) -> list[summary.RunSummary]:
  """Returns what other commands have run in the folder, by name.

  Without them a part of a grid would replace the table of all of it.
  """
  own, found = {pathlib.Path(outcome.path).name for outcome in outcomes}, []
  known = {record.run_id(outcome.config) for outcome in outcomes}
  for path in sorted(folder.glob('*/config.json')):
    if path.parent.name not in own:
      run = folder_lib.RunFolder(path.parent)
      try:
        outcome = summary.summarize(run.read_config(), run)
      except command.InputError as error:
        print(f'not in the table: {command.one_line(error)}')
        continue
      run_id = record.run_id(outcome.config)
      if run_id in known:  # It would count twice in means.
        print(f'not in the table: {run.path} is a second folder of {run_id}')
      else:
        found.append(outcome)
        known.add(run_id)
  return found


def _draw(
    outcomes: Sequence[summary.RunSummary], figure: pathlib.Path
) -> None:
  """Draws the runs that can be read; says what the others lack."""
  runs = []
  for outcome in outcomes:
    if outcome.round:
      try:
        runs.append(load.load_run(pathlib.Path(outcome.path)))
      except ValueError as error:
        print(f'not in the figure: {command.one_line(error)}')
  if runs:
    loss.draw(runs, figure)
    print(f'figure: {figure}')
