"""The settings of one experiment, checked before TensorFlow is imported.

  TaskConfig             which data and model
  LocalUpdateConfig      the algorithm (one type per algorithm)
  ServerOptimizerConfig  what the server does with the mean update
  RunConfig              rounds, cohort, batches, seeds, evaluation
  ExecutionConfig        how the rounds are computed
  ExperimentConfig       all of these
"""

from collections.abc import Container
import dataclasses
from typing import Any, Optional

from baselines import settings
from baselines.algorithms import registry as algorithms
from baselines.algorithms.config import LocalUpdateConfig
from baselines.algorithms.config import ServerOptimizerConfig
from baselines.settings import setting
from baselines.tasks import registry as tasks

_DEFAULT_DATA_SEED = 1


@dataclasses.dataclass(frozen=True)
class TaskConfig:
  """Which data, and which model is trained on it.

  Raises:
    ValueError: Also if the task has no such model or data source, or if
      `data_dir` is given for a source that reads no files or is not given for
      `cache`.
  """

  task: str = setting(
      'digits', 'What is learned.', choices=tuple(tasks.TASKS)
  )
  model: Optional[str] = setting(
      None, 'The model; by default the first one of the task.'
  )
  data_source: Optional[str] = setting(
      None,
      'Where the data come from: embedded (in an installed package), synthetic '
      '(a few generated clients), cache (files in data_dir) or download (into '
      'data_dir if it is given). By default the first one of the task.',
  )
  data_dir: Optional[str] = setting(
      None, "Folder with the data, in the layout of TFF's cache."
  )
  data_seed: Optional[int] = setting(
      None,
      'Seed of the dealing or making of data, for tasks that do so; by default '
      f'{_DEFAULT_DATA_SEED}.',
      minimum=0,
  )

  def __post_init__(self) -> None:
    settings.check_settings(self)
    entry = tasks.task_entry(self.task)
    settings.fill_setting(self, 'model', entry.models[0])
    settings.fill_setting(self, 'data_source', entry.data_sources[0])
    tasks.check_choices(self.task, self.model, self.data_source)
    self._check_data_dir(entry.num_clients)
    if entry.database is None:
      settings.fill_setting(self, 'data_seed', _DEFAULT_DATA_SEED)
    elif self.data_seed is not None:
      raise ValueError(
          f'data_seed would be ignored: task {self.task} reads fixed data, '
          f'found {self.data_seed!r}.'
      )

  def _check_data_dir(self, sources_without_files: Container[str]) -> None:
    if self.data_dir is not None and self.data_source in sources_without_files:
      raise ValueError(
          f'data_dir would be ignored: data_source {self.data_source!r} reads '
          f'no files, found {self.data_dir!r}.'
      )
    if self.data_source == 'cache' and not self.data_dir:
      raise ValueError(
          "data_dir must be given with data_source 'cache', found "
          f'{self.data_dir!r}.'
      )


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """How long and on what draws an experiment runs."""

  rounds: int = setting(100, 'Number of rounds T.', minimum=1)
  clients_per_round: int = setting(
      10, 'M, the clients drawn for a round.', minimum=1
  )
  client_sampling: str = setting(
      'without_replacement',
      'How the clients of a round are drawn: uniformly without replacement, or '
      'independently of each other (iid). New clients that a task makes for '
      'each round are both.',
      choices=('without_replacement', 'iid'),
  )
  batch_size: int = setting(
      20, 'B, the examples of a mini-batch, drawn with replacement.', minimum=1
  )
  rounds_per_evaluation: int = setting(
      10,
      'Evaluate on all training clients before training, every so many rounds '
      'and after the last one; 0 means only after the last one.',
      minimum=0,
  )
  rounds_per_checkpoint: int = setting(
      50,
      'Save the state every so many rounds, and after the last one.',
      minimum=1,
  )
  model_seed: int = setting(1, 'Seed of the initial weights.', minimum=0)
  sampling_seed: int = setting(
      1, 'Seed of the draws of clients and of mini-batches.', minimum=0
  )
  dtype: str = setting(
      'float32', 'Type of the weights.', choices=('float32', 'float64')
  )
  divergence_factor: float = setting(
      100.0,
      'A run has diverged when a loss is not finite or more than so many times '
      'its first value; 0 means only when it is not finite.',
      minimum=0.0,
  )

  def __post_init__(self) -> None:
    settings.check_settings(self)
    if 0.0 < self.divergence_factor <= 1.0:
      raise ValueError(
          'divergence_factor must be 0 or greater than 1, found '
          f'{self.divergence_factor!r}.'
      )


@dataclasses.dataclass(frozen=True)
class ExecutionConfig:
  """How the rounds are computed; see `tff_localupdate.execution`."""

  jit: str = setting(
      'auto',
      'Whether XLA compiles the round: auto (except convolutional and '
      'recurrent models on CPU), on or off.',
      choices=('auto', 'on', 'off'),
  )
  clients: str = setting(
      'auto',
      'How the clients of a round are computed: one after another (loop), '
      'several at a time (parallel, without XLA); auto picks.',
      choices=('auto', 'loop', 'parallel'),
  )
  devices: str = setting(
      'auto',
      'Devices for client work: auto (all GPUs, else the CPU) or names such as '
      'GPU:0,GPU:1.',
  )
  require_gpu: bool = setting(
      False, 'Stop before the first round unless the work runs on GPUs.'
  )
  deterministic: bool = setting(
      True, 'On GPUs, use only kernels that give the same bits each time.'
  )

  def __post_init__(self) -> None:
    settings.check_settings(self)
    if self.jit == 'on' and self.clients == 'parallel':
      raise ValueError(
          "clients must not be 'parallel' with jit 'on': it works without XLA "
          'only.'
      )


@dataclasses.dataclass(frozen=True)
class ExperimentConfig:
  """All settings of one experiment, with all defaults filled in.

  Attributes:
    task: Data and model.
    algorithm: The algorithm's settings, of a type that
      `baselines.algorithms.registry` lists.
    server_optimizer: The server optimizer's settings.
    run: Rounds, cohort, batches, seeds, evaluation.
    execution: How the rounds are computed.
  """

  task: TaskConfig = TaskConfig()
  algorithm: Any = LocalUpdateConfig()
  server_optimizer: ServerOptimizerConfig = ServerOptimizerConfig()
  run: RunConfig = RunConfig()
  execution: ExecutionConfig = ExecutionConfig()

  def __post_init__(self) -> None:
    algorithms.algorithm_name(self.algorithm)

  @property
  def components(self) -> dict[str, Any]:
    """The components by field name."""
    return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


def find_setting(config: ExperimentConfig, name: str) -> tuple[str, Any]:
  """Returns the component that holds the setting `name`, and its value.

  Raises:
    ValueError: If no component of `config` has this setting.
  """
  for component, values in config.components.items():
    if name in (f.name for f in dataclasses.fields(values)):
      return component, getattr(values, name)
  raise ValueError(f'There is no setting {name!r}.')


def replace_settings(
    config: ExperimentConfig, **changes: settings.Value
) -> ExperimentConfig:
  """Returns `config` with the named settings changed, checked again.

  Raises:
    ValueError: If there is no such setting or its new value is refused.
  """
  for name, value in changes.items():
    component, _ = find_setting(config, name)
    changed = dataclasses.replace(
        getattr(config, component), **{name: value}
    )
    config = dataclasses.replace(config, **{component: changed})
  return config


@dataclasses.dataclass(frozen=True)
class OutputConfig:
  """Where results go; no part of the experiment."""

  output_dir: Optional[str] = setting(
      None, 'Folder of the run; by default one under runs/, named by a digest '
      'of all settings.'
  )
  tensorboard: bool = setting(True, 'Also write TensorBoard events.')
  dry_run: bool = setting(
      False, 'Print the full configuration and stop.'
  )

  def __post_init__(self) -> None:
    settings.check_settings(self)
