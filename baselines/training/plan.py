"""What a command will do with a run folder, known without TensorFlow.

And the constants of CEAL's theory, which f and its data give.
"""

import dataclasses
import pathlib
from typing import Any, NamedTuple, Optional

import numpy as np

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.settings import experiment
from baselines.settings import record
from baselines.tasks import registry as tasks
from baselines.training import checkpoints

# The settings that stand for them.
_KNOWN = ('step_size', 'noise_scale')


class Constants(NamedTuple):
  """Constants of a problem.

  Attributes:
    smoothness: beta, an upper bound on the curvature of f.
    noise_scale: sigma: the root of the expected squared norm of the noise of
      one query at the initial point.
  """

  smoothness: float
  noise_scale: float


def check_given(config: experiment.ExperimentConfig) -> None:
  """Raises ValueError if a constant is missing that no formula of f gives."""
  if config.is_objective_known:
    return
  for name in _KNOWN:
    if getattr(config.algorithm, name, 0.0) is None:
      raise ValueError(
          f'{name} must be given for task {config.task.task}: it has no '
          'formula from which it could be computed, found None.'
      )


def are_missing(config: experiment.ExperimentConfig) -> bool:
  """Returns whether there are any that `fill` would put into `config`."""
  algorithm = config.algorithm
  missing = [name for name in _KNOWN if getattr(algorithm, name, 0.0) is None]
  return bool(missing) and config.is_objective_known


def measure(
    objective: Any, initial_point: np.ndarray, batch_size: int
) -> Constants:
  """Measures the constants, for batches of B examples, at x_1 [d].

  A query is a mean over B examples drawn from all data, so its noise has 1/B of
  the variance of a single example's gradient. The objective f has `smoothness`
  and `gradient_variance`.
  """
  variance = objective.gradient_variance(initial_point) / batch_size
  return Constants(float(objective.smoothness), float(np.sqrt(variance)))


def fill(
    config: experiment.ExperimentConfig, constants: Constants
) -> experiment.ExperimentConfig:
  """Returns `config` with eta = 1 / (5 beta) and sigma where they are None."""
  defaults = {
      'step_size': 1.0 / (5.0 * constants.smoothness),
      'noise_scale': constants.noise_scale,
  }
  missing = {
      name: value
      for name, value in defaults.items()
      if getattr(config.algorithm, name) is None
  }
  return dataclasses.replace(
      config, algorithm=dataclasses.replace(config.algorithm, **missing)
  )


NEW = 'new'
PARTIAL = 'partial'
DONE = 'done'

DEFAULT_ROOT = 'runs'


@dataclasses.dataclass(frozen=True)
class Plan:
  """One run to be done.

  Its stage is `NEW`, `PARTIAL` (something is there to go on from) or `DONE`
  (nothing is left to do: finished or diverged).
  """

  config: experiment.ExperimentConfig
  folder: folder_lib.RunFolder
  stage: str


class TooFewRoundsError(command.InputError):
  """A run has done more rounds than it is asked for."""


def plan_run(
    config: experiment.ExperimentConfig, output_dir: Optional[str] = None
) -> Plan:
  """Checks the data and the run folder, by default named by the run's id.

  Writes nothing.

  Raises:
    command.InputError: If the data cannot be read, there are too few clients,
      or the folder belongs to something else, to a run with other settings, to
      a run that has done more rounds, or to a process at work.
  """
  check_inputs(config)
  default = pathlib.Path(DEFAULT_ROOT) / record.run_id(config)
  path = command.user_path('output_dir', output_dir) if output_dir else default
  folder = folder_lib.RunFolder(path)
  folder_lib.check_writable(path)
  stage = find_stage(config, folder)
  if stage != DONE:
    folder.check_unlocked()
  return Plan(config, folder, stage)


def check_inputs(config: experiment.ExperimentConfig) -> None:
  """Raises `command.InputError` if the data cannot serve `config`."""
  task = config.task
  try:
    check_given(config)
    num_clients = tasks.check_data(
        task.task, task.data_source, task.data_dir, task.model
    )
  except (ValueError, OSError) as error:
    raise command.InputError(command.one_line(error)) from error
  if num_clients is not None:
    check_cohort(config, num_clients)


def check_cohort(
    config: experiment.ExperimentConfig, num_clients: int
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
    config: experiment.ExperimentConfig, folder: folder_lib.RunFolder
) -> str:
  """Returns the stage of the run in `folder`; see `plan_run`."""
  with folder_lib.reading(folder.path):
    return _read_stage(config, folder)


def _read_stage(
    config: experiment.ExperimentConfig, folder: folder_lib.RunFolder
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
  if status and status.status in folder_lib.ENDED:
    rows = records.read_rows(folder.metrics_path, records.columns_of(config))
    is_known = folder_lib.is_complete(status, config.run, rows)
    if is_known and not _may_go_on(status, saved.run, config.run):
      return DONE
  return PARTIAL


def _may_go_on(
    status: folder_lib.Status,
    saved: experiment.RunConfig,
    asked: experiment.RunConfig,
) -> bool:
  """Whether a run diverged by an evaluation that is not due any more.

  It was that of the last round, and now more are wanted: a run that had not
  stopped there would not have seen it. What the round itself tells stays.
  """
  every = asked.rounds_per_evaluation
  is_due = bool(every) and status.round % every == 0
  return (
      status.status == folder_lib.DIVERGED
      and status.round == saved.rounds != asked.rounds
      and not is_due
  )


def _check_same_run(
    saved: experiment.ExperimentConfig,
    asked: experiment.ExperimentConfig,
    folder: folder_lib.RunFolder,
) -> None:
  changed = [
      f'{name} {old!r} there, {new!r} here'
      for name, (old, new) in record.differences(saved, asked).items()
      if name not in record.CHANGEABLE
  ]
  if changed:
    raise command.InputError(
        f'output_dir {folder.path} holds a run with other settings: '
        f'{"; ".join(changed)}.'
    )
