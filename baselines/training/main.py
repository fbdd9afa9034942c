"""localupdate-train, and `baselines.run`, which is `train`: one experiment."""

import atexit
import contextlib
import dataclasses
import functools
import itertools
import os
import pathlib
import shutil
import sys
import tempfile
import traceback
from typing import Any, Optional, TYPE_CHECKING, Union

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.results import runs as runs_lib
from baselines.settings import commands
from baselines.settings import experiment
from baselines.settings import flags
from baselines.settings import record
from baselines.training import plan as plan_lib
from baselines.training import stopping

if TYPE_CHECKING:
  import numpy as np
  import pandas as pd

_NAME = 'localupdate-train'
_DESCRIPTION = (
    f'{_NAME}: trains one model by one federated algorithm and records it in a '
    'run folder. The same command again goes on where it stopped. Exit codes: '
    '0 finished, 1 failed, 2 bad input, 3 diverged, 75 interrupted and saved.'
)
_EXIT_CODES = {
    folder_lib.FINISHED: command.FINISHED,
    folder_lib.DIVERGED: command.DIVERGED,
}


class Interrupted(KeyboardInterrupt):
  """An interruption that came while something ran; the run is saved.

  The same call with the same `output_dir` goes on from there. `run` is the
  `Run` as far as it is; None for a sweep.
  """

  def __init__(self, message: str, run: 'Optional[Run]' = None):
    super().__init__(message)
    self.run = run


@dataclasses.dataclass(frozen=True)
class Run:
  """A run and what it came to, read from its folder when it is asked for.

  Attributes:
    config: All settings, with all defaults filled in.
    status: `finished`, `diverged`, or `interrupted`.
    reason: What diverged, else empty.
  """

  config: experiment.ExperimentConfig = dataclasses.field(repr=False)
  folder: pathlib.Path
  status: str
  reason: str = ''

  @functools.cached_property
  def metrics(self) -> 'pd.DataFrame':
    """metrics.csv: a row per round, from 0, the columns as numbers.

    NaN stands where a round has no such number, such as an evaluation. See
    `baselines.results.records` for the columns.
    """
    import pandas as pd

    columns = records.columns_of(self.config)
    rows = records.read_rows(self._folder.metrics_path, columns)
    numbers = {
        name: [float(row[name] or 'nan') for row in rows] for name in columns
    }
    return pd.DataFrame(numbers).astype({'round': int})

  @functools.cached_property
  def weights(self) -> 'dict[str, np.ndarray]':
    """The weights after the last round that was saved, as NumPy arrays.

    Named as the model names them, names of parts joined by `/`; a part without
    a name by its position, from 0. Weights that are not trained come after the
    others, under `non_trainable/`. A run that did no round has those that it
    would start with. Loads TensorFlow and the data, unless they are there.
    """
    with command.announced():
      from baselines.training import loop
    return loop.load_weights(
        self.config, self._folder, shared_workbench(), command.report
    )

  @property
  def settings(self) -> dict[str, Any]:
    """The settings in use, by name."""
    return record.settings(self.config)

  def save(self, folder: Union[str, os.PathLike]) -> 'Run':
    """Copies the run to a new or empty folder, where it can also go on.

    Raises `baselines.InputError` if that has content or cannot be written.
    """
    target = command.user_path('folder', str(folder))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
      raise command.InputError(
          f'folder must be new or empty, found {target}.'
      )
    folder_lib.check_writable(target, 'folder')
    shutil.copytree(
        self.folder, target, dirs_exist_ok=True,
        ignore=shutil.ignore_patterns('lock'),
    )
    return dataclasses.replace(self, folder=target)

  @property
  def _folder(self) -> folder_lib.RunFolder:
    return folder_lib.RunFolder(self.folder)


def train(
    *, output_dir: Any = None, progress: bool = True, **settings: Any
) -> Run:
  """Runs one experiment, or what is left of it.

  The process keeps data and compiled programs: a second run that differs in
  rates or seeds alone compiles nothing. An interruption (Ctrl-C, SIGTERM, the
  stop button of a notebook) lets the round at work end and saves the run. With
  the same `output_dir` the same call goes on from there, and a run that is done
  is not run again.

  Args:
    output_dir: The run folder; by default, and unless a preset names one, a
      temporary one that goes when the program ends. `Run.save` keeps it.
    progress: Whether to show how far the run is: as a bar on a terminal or in a
      notebook, else as lines. If not, nothing is printed.
    **settings: Settings by the names of the flags of `localupdate-train`:
      `task`, `algorithm`, `theta`, `rounds`, ...; see its `--help`. Also
      `preset`, the name of one or a list of names, whose flags come first.

  Returns:
    The run. A divergence is a status of it and no error.

  Raises:
    baselines.InputError: If a setting is unknown, would be ignored or has a
      value that is refused, before TensorFlow is loaded; or if data, devices or
      the folder cannot be used.
    baselines.Interrupted: If it was interrupted; the run is saved, and in its
      attribute `run`.
  """
  arguments = flags.arguments_of(
      {**settings, 'output_dir': output_dir}, commands.OutputConfig,
      refused=('dry_run',),
  )
  parsed = flags.parse_experiment(
      arguments, _DESCRIPTION, commands.OutputConfig
  )
  output = parsed.extra[commands.OutputConfig]
  plan = plan_lib.plan_run(
      parsed.config, output.output_dir or str(temporary_folder())
  )
  with contextlib.nullcontext() if progress else command.silence():
    outcome = _execute(plan, output.tensorboard)
  done = Run(
      plan.config, plan.folder.path.absolute(), outcome.status, outcome.reason
  )
  if outcome.status not in folder_lib.ENDED:
    raise Interrupted(
        f'The run was interrupted after round {outcome.round} and is '
        f'saved in {done.folder}.', done,
    )
  return done


def main(arguments: list[str]) -> int:
  """Runs the command; returns its exit code."""
  parsed = flags.parse_experiment(
      arguments, _DESCRIPTION, commands.OutputConfig
  )
  output = parsed.extra[commands.OutputConfig]
  plan = plan_lib.plan_run(parsed.config, output.output_dir)
  if output.dry_run:
    print(record.to_json(plan.config))
    print(f'run folder {plan.folder.path} ({plan.stage})', file=sys.stderr)
    return command.FINISHED
  try:
    outcome = _execute(plan, output.tensorboard)
  except command.InputError:
    raise
  except Exception as error:
    traceback.print_exc()
    command.report(f'{_NAME}: failed: {command.one_line(error)}')
    return command.FAILED
  print(runs_lib.closing_table(outcome))
  # Interrupted before it could even start if the status is another one.
  return _EXIT_CODES.get(outcome.status, command.INTERRUPTED)


def _execute(
    plan: plan_lib.Plan, tensorboard: bool, *, may_exit: bool = True
) -> runs_lib.Run:
  """Does what is left to do of a plan, and reads the outcome."""
  if plan.stage == plan_lib.DONE:
    plan.folder.adopt_config(plan.config)
    return runs_lib.summarize(plan.config, plan.folder)
  command.report(f'run folder {plan.folder.path} ({plan.stage})')
  with stopping.Interruption(may_exit=may_exit) as interruption:
    with command.announced():
      from baselines.training import loop
    return loop.run_experiment(
        plan, shared_workbench(), interruption, tensorboard=tensorboard
    )


@functools.cache
def shared_workbench() -> Any:
  """Returns the workbench of this process; loads TensorFlow."""
  from baselines.training import workbench

  # Its programs must go before the parts of TensorFlow that they are made of.
  atexit.register(shared_workbench.cache_clear)
  return workbench.Workbench()


def temporary_folder() -> pathlib.Path:
  """Returns a new path in a folder that goes when the program ends."""
  return _temporary_root() / f'run-{next(_numbers)}'


_numbers = itertools.count(1)


@functools.cache
def _temporary_root() -> pathlib.Path:
  root, owner = tempfile.mkdtemp(prefix='localupdate-'), os.getpid()

  def remove():
    if os.getpid() == owner:  # And not a process that was forked from it.
      shutil.rmtree(root, ignore_errors=True)

  atexit.register(remove)
  return pathlib.Path(root)


def run() -> None:
  """The console script."""
  sys.exit(command.run_command(_NAME, main))


if __name__ == '__main__':
  run()
