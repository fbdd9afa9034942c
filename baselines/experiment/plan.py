"""What a command will do with a run folder, known without TensorFlow."""

import dataclasses
import pathlib
from typing import Optional

from baselines.experiment import checkpoints
from baselines.experiment import command
from baselines.experiment import config as config_lib
from baselines.experiment import config_json
from baselines.experiment import known_constants
from baselines.experiment import records
from baselines.experiment import run_folder as run_folder_lib
from baselines.tasks import registry as tasks

NEW = 'new'
PARTIAL = 'partial'
DONE = 'done'

DEFAULT_ROOT = 'runs'


@dataclasses.dataclass(frozen=True)
class Plan:
  """One run to be done.

  Attributes:
    config: All settings.
    folder: Where it is, or will be.
    stage: `NEW`, `PARTIAL` (something is there to go on from) or `DONE`
      (nothing is left to do: finished or diverged).
  """

  config: config_lib.ExperimentConfig
  folder: run_folder_lib.RunFolder
  stage: str


class TooFewRoundsError(command.InputError):
  """A run has done more rounds than it is asked for."""


def plan_run(
    config: config_lib.ExperimentConfig, output_dir: Optional[str] = None
) -> Plan:
  """Checks the data and the run folder; writes nothing.

  Args:
    config: The settings asked for.
    output_dir: The run folder; by default named by the run's id.

  Returns:
    What is to be done.

  Raises:
    command.InputError: If the data cannot be read, there are too few clients,
      or the folder belongs to something else, to a run with other settings, to
      a run that has done more rounds, or to a process at work.
  """
  check_inputs(config)
  default = pathlib.Path(DEFAULT_ROOT) / config_json.run_id(config)
  path = command.user_path('output_dir', output_dir) if output_dir else default
  folder = run_folder_lib.RunFolder(path)
  run_folder_lib.check_writable(path)
  stage = find_stage(config, folder)
  if stage != DONE:
    folder.check_unlocked()
  return Plan(config, folder, stage)


def check_inputs(config: config_lib.ExperimentConfig) -> None:
  """Raises `command.InputError` if the data cannot serve `config`."""
  task = config.task
  try:
    known_constants.check_given(config)
    num_clients = tasks.check_data(
        task.task, task.data_source, task.data_dir, task.model
    )
  except (ValueError, OSError) as error:
    raise command.InputError(command.one_line(error)) from error
  if num_clients is not None:
    check_cohort(config, num_clients)


def check_cohort(
    config: config_lib.ExperimentConfig, num_clients: int
) -> None:
  """Raises `command.InputError` if a round needs more clients than exist."""
  if config.run.client_sampling != 'without_replacement':
    return
  wanted = config.run.clients_per_round
  if wanted > num_clients:
    raise command.InputError(
        f'clients_per_round must be at most {num_clients}, the number of '
        f'training clients of task {config.task.task} with data_source '
        f'{config.task.data_source!r} and model {config.task.model!r}; found '
        f'{wanted}.'
    )


def find_stage(
    config: config_lib.ExperimentConfig, folder: run_folder_lib.RunFolder
) -> str:
  """Returns the stage of the run in `folder`; see `plan_run`."""
  with run_folder_lib.reading(folder.path):
    return _read_stage(config, folder)


def _read_stage(
    config: config_lib.ExperimentConfig, folder: run_folder_lib.RunFolder
) -> str:
  if folder.is_new():
    return NEW
  saved = folder.read_config()
  _check_same_run(saved, config, folder)
  status = folder.read_status()
  done = max(
      [status.round if status else 0]
      + checkpoints.saved_rounds(folder.checkpoints_path)
  )
  rounds = config.run.rounds
  if rounds is not None and done > rounds:
    raise TooFewRoundsError(
        f'rounds must be at least {done}, the rounds done in {folder.path}; '
        f'found {rounds}.'
    )
  if status and status.status in run_folder_lib.ENDED:
    rows = records.read_rows(folder.metrics_path, records.columns_of(config))
    is_known = run_folder_lib.is_complete(status, rounds, len(rows))
    if is_known and not _may_go_on(status, saved.run, config.run):
      return DONE
  return PARTIAL


def _may_go_on(
    status: run_folder_lib.Status,
    saved: config_lib.RunConfig,
    asked: config_lib.RunConfig,
) -> bool:
  """Whether a run diverged by an evaluation that is not due any more.

  It was that of the last round, and now more are wanted: a run that had not
  stopped there would not have seen it. What the round itself tells stays.
  """
  every = asked.rounds_per_evaluation
  is_due = bool(every) and status.round % every == 0
  return (
      status.status == run_folder_lib.DIVERGED
      and status.round == saved.rounds != asked.rounds
      and not is_due
  )


def _check_same_run(
    saved: config_lib.ExperimentConfig,
    asked: config_lib.ExperimentConfig,
    folder: run_folder_lib.RunFolder,
) -> None:
  changed = [
      f'{name} {old!r} there, {new!r} here'
      for name, (old, new) in config_json.differences(saved, asked).items()
      if name not in config_json.CHANGEABLE
  ]
  if changed:
    raise command.InputError(
        f'output_dir {folder.path} holds a run with other settings: '
        f'{"; ".join(changed)}.'
    )
