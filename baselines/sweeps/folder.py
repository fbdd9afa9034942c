"""Whether a sweep may write where it was told to, asked before the work."""

import pathlib
from typing import Optional

from baselines.experiment import command
from baselines.experiment import run_folder


def check_folder(folder: pathlib.Path, figure: Optional[str]) -> None:
  """Raises `command.InputError` if results could not go where they should.

  A folder is a sweep's if its entries are run folders and a sweep's results.
  """
  run_folder.check_writable(folder)
  if (folder / 'config.json').exists():
    raise command.InputError(
        f'output_dir must be the folder of a sweep, found a run: {folder}.'
    )
  has_runs = any(folder.glob('*/config.json'))
  # Both tables without a run are those of a sweep that was stopped at once.
  is_sweep = has_runs or (folder / 'results.md').exists()
  if (folder / 'results.csv').exists() and not is_sweep:
    raise command.InputError(
        'output_dir must be new or the folder of a sweep; '
        f'{folder} has a results.csv but no run.'
    )
  if figure:
    path = command.user_path('figure', figure)
    run_folder.check_writable(path.parent, 'the folder of figure')
    if path.is_dir():
      raise command.InputError(f'figure must be a file, found {path}.')
