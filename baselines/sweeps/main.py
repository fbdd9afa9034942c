"""localupdate-sweep and `baselines.sweep`: a grid of runs in one process."""

from collections.abc import Mapping, Sequence
import contextlib
import pathlib
import sys
from typing import Any, Optional, TYPE_CHECKING

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import runs as runs_lib
from baselines.settings import commands
from baselines.settings import experiment
from baselines.settings import flags
from baselines.sweeps import grid as grid_lib
from baselines.sweeps import runner
from baselines.sweeps import status
from baselines.training import main as run_main
from baselines.training import stopping

if TYPE_CHECKING:
  import pandas as pd

_NAME = 'localupdate-sweep'
_STATUS = 'status'
_DESCRIPTION = (
    f'{_NAME}: runs every combination of the listed settings in one process, '
    'each in its own folder under output_dir. Runs that are done are skipped, '
    f'partial ones go on. {_NAME} status, with the same flags, prints what is '
    'left and the time to go. Exit codes: 0 all finished or diverged, 1 some '
    'failed, 2 bad input, 75 interrupted and saved.'
)


def sweep(
    grid: Optional[Mapping[str, Sequence[Any]]] = None,
    /,  # CEAL has a setting of this name.
    *,
    output_dir: Any = None,
    progress: bool = True,
    **settings: Any,
) -> 'pd.DataFrame':
  """Runs every combination of the values in a grid.

  The runs share data and compiled programs, so one that differs from another in
  rates or seeds alone compiles nothing. Settings are checked for all of them
  before TensorFlow is loaded. A run that diverges or fails is a row like any
  other. With the same `output_dir`, runs that are done are not run again, and
  partial ones go on.

      baselines.sweep(
          {'client_learning_rate': [0, 0.05, 0.5], 'theta': ['1:5', '1:10']},
          rounds=200, output_dir='runs/thetas',
      )

  Args:
    grid: Lists of values by the name of a setting, any of those that are flags
      of `localupdate-train --help`; or by `seeds`, whose values all seeds of a
      run take. Not needed with a preset that holds lists.
    output_dir: The folder for the run folders; by default, and unless a preset
      names one, a temporary one that goes when the program ends.
    progress: Whether to show how far it is.
    **settings: What does not vary, as in `baselines.run`; also `shard`.

  Returns:
    One row per run, as `baselines.load` gives them, in the order of the runs.

  Raises:
    baselines.InputError: If a setting is unknown, would be ignored or has a
      value that is refused, or data, devices or the folder cannot be used.
    baselines.Interrupted: If it was interrupted; all runs are saved.
  """
  if output_dir is not None:
    settings['output_dir'] = output_dir
  arguments = flags.arguments_of(
      settings, grid_lib.GridConfig, commands.SweepOutputConfig,
      refused=('dry_run', 'figure'),
  )
  lists = None if grid is None else grid_lib.typed_lists(grid)
  if not any(flags.Flag(text).name == 'output_dir'
             for text in flags.expanded(arguments)):
    arguments.append(f'--output_dir={run_main.temporary_folder()}')
  configs, output = grid_lib.plan_points(
      arguments, _DESCRIPTION, commands.SweepOutputConfig, lists
  )
  configs = commands.shard_of(configs, output.shard)
  folder = command.user_path('output_dir', output.output_dir)
  runner.check_folder(folder, None)
  with contextlib.nullcontext() if progress else command.silence():
    outcomes = _run_points(configs, folder, output, may_exit=False)
  done = (*folder_lib.ENDED, folder_lib.FAILED)
  if any(outcome.status not in done for outcome in outcomes):
    raise run_main.Interrupted(
        f'The sweep was interrupted; its runs are saved in {folder}.'
    )
  return runs_lib.table_of(outcomes)


def load(folders: Any) -> 'pd.DataFrame':
  """Reads runs from a run folder, a folder of such, or a list of these.

  Returns one row per run; see `baselines.results.runs` for its columns. Raises
  `baselines.InputError` if there is no run, or one cannot be read.
  """
  given = folders if isinstance(folders, (list, tuple)) else [folders]
  try:
    return runs_lib.load_runs(
        [command.user_path('folder', str(folder)) for folder in given]
    )
  except ValueError as error:
    raise command.InputError(command.one_line(error)) from error


def main(arguments: list[str]) -> int:
  """Runs the command; returns its exit code."""
  is_status = arguments[:1] == [_STATUS]
  configs, output = grid_lib.plan_points(
      arguments[is_status:], _DESCRIPTION, commands.SweepOutputConfig
  )
  configs = commands.shard_of(configs, output.shard)
  folder = command.user_path('output_dir', output.output_dir)
  if is_status:
    points = [status.point_status(config, folder) for config in configs]
    print(status.status_text(points))
    return command.FINISHED
  runner.check_folder(folder, output.figure)
  if output.dry_run:
    print(status.plan_text(configs, folder))
    return command.FINISHED
  outcomes = _run_points(configs, folder, output)
  # Pandas and Matplotlib take seconds: a wrong flag should not wait for them.
  from baselines.sweeps import report

  report.report_results(
      outcomes, folder, output.figure, is_whole=output.shard is None
  )
  return _exit_code(outcomes)


def _run_points(
    configs: Sequence[experiment.ExperimentConfig],
    folder: pathlib.Path,
    output: commands.SweepOutputConfig,
    *,
    may_exit: bool = True,
) -> list[runs_lib.Run]:
  with stopping.Interruption(may_exit=may_exit) as interruption:
    return runner.run_points(
        configs, folder, interruption, tensorboard=output.tensorboard,
        workbench_fn=run_main.shared_workbench,
    )


def _exit_code(outcomes: Sequence[runs_lib.Run]) -> int:
  if any(outcome.status == folder_lib.FAILED for outcome in outcomes):
    return command.FAILED
  if any(outcome.status not in folder_lib.ENDED for outcome in outcomes):
    return command.INTERRUPTED
  return command.FINISHED


def run() -> None:
  """The console script."""
  sys.exit(command.run_command(_NAME, main))


if __name__ == '__main__':
  run()
