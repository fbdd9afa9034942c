"""The settings of one experiment, checked before TensorFlow is imported.

  TaskConfig             which data and model
  LocalUpdateConfig      the algorithm (one type per algorithm)
  ServerOptimizerConfig  what the server does with the mean update
  RateConfig             how the rates change from round to round
  RunConfig              rounds, cohort, batches, seeds, evaluation
  ExecutionConfig        how the rounds are computed
  ExperimentConfig       all of these
"""

from collections.abc import Container
import dataclasses
import os
import re
from typing import Any, Optional

from baselines.settings import algorithms
from baselines.settings import schema
from baselines.settings.algorithms import LocalUpdateConfig
from baselines.settings.rates import RateConfig
from baselines.settings.rates import ServerOptimizerConfig
from baselines.settings.schema import setting
from baselines.tasks import registry as tasks

_DEFAULT_DATA_SEED = 1
_SOURCES_OF_FILES = ('cache', 'cache_counted', 'idx')


@dataclasses.dataclass(frozen=True)
class TaskConfig:
  """Which data, and which model is trained on it.

  Raises ValueError also if the task has no such model or data source, or if
  `data_dir` is given for a source that reads no files or missing for `cache`.
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
      '(a few generated clients), cache (files in data_dir), cache_counted (as '
      'cache, with words and tags counted in the train split), idx (the files '
      'of MNIST in data_dir) or download (into data_dir if it is given). By '
      'default the first one of the task.',
  )
  data_dir: Optional[str] = setting(
      None,
      "Folder with the data: TFF's databases, or for idx the files of MNIST.",
  )
  data_seed: Optional[int] = setting(
      None,
      'Seed of the dealing or making of data, for tasks that do so; by default '
      f'{_DEFAULT_DATA_SEED}.',
      minimum=0,
      below=2**63,
  )

  def __post_init__(self) -> None:
    schema.check_settings(self)
    if self.data_dir:  # dir, ./dir and dir/ are one, and so are their runs.
      object.__setattr__(self, 'data_dir', os.path.normpath(self.data_dir))
    entry = tasks.task_entry(self.task)
    schema.fill_setting(self, 'model', entry.models[0])
    schema.fill_setting(self, 'data_source', entry.data_sources[0])
    tasks.check_choices(self.task, self.model, self.data_source)
    self._check_data_dir(entry.num_clients)
    if entry.takes_data_seed:
      schema.fill_setting(self, 'data_seed', _DEFAULT_DATA_SEED)
    elif self.data_seed is not None:
      raise ValueError(
          f'data_seed would be ignored: task {self.task} reads fixed data, '
          f'found {self.data_seed!r}.'
      )

  def _check_data_dir(self, sources_without_files: Container[str]) -> None:
    if self.data_dir is not None and self.data_source in sources_without_files:
      raise ValueError(
          f'data_dir would be ignored: data_source {self.data_source!r} reads '
          f'no files, found {self.data_dir!r}. Those of {self.task} are '
          f'{", ".join(tasks.task_entry(self.task).data_sources)}.'
      )
    if self.data_source in _SOURCES_OF_FILES and not self.data_dir:
      raise ValueError(
          f'data_dir must be given with data_source {self.data_source!r}, '
          f'found {self.data_dir!r}.'
      )


_DEFAULT_ROUNDS = 100
_DEVICE = re.compile(r'(/DEVICE:)?[CG]PU:\d+')


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """Length, cohorts, batches, seeds and evaluation of a run."""

  rounds: Optional[int] = setting(
      None,
      f'Number of rounds; by default {_DEFAULT_ROUNDS}, unless a run ends by '
      'its horizon.',
      minimum=1,
  )
  horizon: Optional[int] = setting(
      None,
      'T, the queries of each client, given instead of a number of rounds. A '
      'query is the gradient of one batch. If too few are left for a last '
      'round, that round ends without a message. ceal takes rounds and '
      'horizon together and ends with whichever comes first. By default 2000 '
      'for ceal and its rivals.',
      minimum=1,
      below=2**31,
      recorded_in='algorithm',
  )
  regret_every: Optional[int] = setting(
      None,
      'Count the cumulative regret, on tasks whose f is known as a formula. '
      'The value is the number of consecutive queries for which f is '
      'evaluated once, at the middle one, where a client moves between '
      'queries; 1 is exact, and the default for ceal and its rivals.',
      minimum=1,
      recorded_in='algorithm',
  )
  clients_per_round: int = setting(
      10, 'M, the clients drawn for a round.', minimum=1
  )
  client_sampling: str = setting(
      'without_replacement',
      'How the clients of a round are drawn: uniformly without replacement, '
      'or independently of each other (iid). Tasks that make new clients for '
      'each round do both at once.',
      choices=('without_replacement', 'iid'),
  )
  batch_size: int = setting(
      20, 'B, the examples of a mini-batch, drawn with replacement.', minimum=1
  )
  rounds_per_evaluation: int = setting(
      10,
      'Rounds between evaluations on all training clients. The initial and '
      'the final model are evaluated as well; 0 means only the final one.',
      minimum=0,
  )
  rounds_per_checkpoint: int = setting(
      50,
      'Rounds between checkpoints. The final state is saved as well.',
      minimum=1,
  )
  initial_point: str = setting(
      'model',
      "The initial weights: the model's, all zero, or one point drawn "
      'uniformly from the unit sphere.',
      choices=('model', 'zero', 'sphere'),
  )
  model_seed: int = setting(
      1, 'Seed of the initial weights.', minimum=0, below=2**63
  )
  sampling_seed: int = setting(
      1,
      'Seed of the draws of clients and of mini-batches.',
      minimum=0,
      below=2**63,
  )
  dtype: str = setting(
      'float32', 'Type of the weights.', choices=('float32', 'float64')
  )
  divergence_factor: float = setting(
      100.0,
      'A run has diverged when a loss is not finite, or is more than this '
      'many times its first value (1 if that is not positive); 0 means only '
      'when it is not finite.',
      minimum=0.0,
  )

  def __post_init__(self) -> None:
    schema.check_settings(self)
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
      'Whether XLA compiles the work: auto (except convolutional models on '
      'CPU), on or off.',
      choices=('auto', 'on', 'off'),
  )
  clients: str = setting(
      'auto',
      'How the clients of a round are computed: one after another (loop), '
      'several at a time (parallel); auto picks.',
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
  tensor_float_32: bool = setting(
      False,
      'On GPUs, round the factors of float32 products to 10 bits, which is '
      'faster.',
      recorded_at_default=False,
  )
  fast_paths: bool = setting(
      True,
      'Compute in the fastest way known; each is tested against the plain '
      'one. Without it: no XLA, one client after another, dense products '
      'instead of the rows in use, and the gradients that TensorFlow derives.',
      recorded_at_default=False,
  )

  def __post_init__(self) -> None:
    schema.check_settings(self)
    for name, fast in (('jit', 'on'), ('clients', 'parallel')):
      if not self.fast_paths and getattr(self, name) == fast:
        raise ValueError(
            f'{name} must not be {fast!r} with fast_paths false, which '
            'computes in the plain way.'
        )
    names = [name.strip().upper() for name in self.devices.split(',')]
    are_names = all(map(_DEVICE.fullmatch, names))
    if self.devices != 'auto' and not (
        are_names and len(set(names)) == len(names)
    ):
      raise ValueError(
          'devices must be auto or different names such as GPU:0,GPU:1, found '
          f'{self.devices!r}.'
      )


@dataclasses.dataclass(frozen=True)
class ExperimentConfig:
  """All settings of one experiment, with all defaults filled in.

  The server optimizer and the rate are None for an algorithm that has none.
  """

  task: TaskConfig = TaskConfig()
  algorithm: Any = LocalUpdateConfig()
  server_optimizer: Optional[ServerOptimizerConfig] = None
  rate: Optional[RateConfig] = None
  run: RunConfig = RunConfig()
  execution: ExecutionConfig = ExecutionConfig()

  def __post_init__(self) -> None:
    entry = algorithms.algorithm_entry(self.algorithm)
    name = algorithms.algorithm_name(self.algorithm)
    if entry.has_server_optimizer:
      schema.fill_setting(self, 'server_optimizer', ServerOptimizerConfig())
      schema.fill_setting(self, 'rate', RateConfig())
      if hasattr(self.algorithm, 'default_loss'):  # Not all let one choose.
        loss = self.algorithm.default_loss(self.rate.decays)
        self._fill('algorithm', loss_before_training=loss)
    elif (self.server_optimizer, self.rate) != (None, None):
      raise ValueError(f'server_optimizer and rate would be ignored by {name}.')
    self._fill_length(name)
    self._fill_regret()

  @property
  def components(self) -> dict[str, Any]:
    """The components in use by field name."""
    parts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
    return {name: part for name, part in parts.items() if part is not None}

  @property
  def num_rounds(self) -> Optional[int]:
    """The number of rounds, or None if only the run itself can tell it."""
    if self.run.rounds or not self.algorithm.queries_per_round:
      return self.run.rounds
    return -(-self.run.horizon // self.algorithm.queries_per_round)

  @property
  def is_objective_known(self) -> bool:
    """Whether f of the task is known as a formula."""
    return tasks.task_entry(self.task.task).objective is not None

  @property
  def counts_regret(self) -> bool:
    """Whether the regret of all queries is counted."""
    return self.run.regret_every is not None

  @property
  def rates(self) -> dict[str, Optional[float]]:
    """The rates that live in the state of the process, as they are set."""
    algorithm = self.algorithm
    rates = {name: getattr(algorithm, name) for name in algorithm.RATES}
    return {**rates, **self._server_rate}

  @property
  def process_rates(self) -> dict[str, Optional[float]]:
    """The same, by the names that the process has for them."""
    return {**self.algorithm.process_rates, **self._server_rate}

  @property
  def _server_rate(self) -> dict[str, float]:
    if self.server_optimizer is None:
      return {}
    return {'server_learning_rate': self.server_optimizer.server_learning_rate}

  def _fill(self, component: str, **defaults: schema.Value) -> None:
    part = getattr(self, component)
    missing = {n: v for n, v in defaults.items() if getattr(part, n) is None}
    object.__setattr__(
        self, component, dataclasses.replace(part, **missing)
    )

  def _fill_length(self, name: str) -> None:
    run, algorithm = self.run, self.algorithm
    if run.rounds is None and run.horizon is None:
      if algorithm.DEFAULT_HORIZON is None:
        self._fill('run', rounds=_DEFAULT_ROUNDS)
      else:
        self._fill('run', horizon=algorithm.DEFAULT_HORIZON)
    elif None not in (run.rounds, run.horizon):
      if not algorithm.TAKES_ROUNDS_AND_HORIZON:
        raise ValueError(
            f'rounds must not be given with horizon, as {name} ends by either, '
            f'found {run.rounds!r} and {run.horizon!r}.'
        )

  def _fill_regret(self) -> None:
    algorithm, every = self.algorithm, self.run.regret_every
    if self.is_objective_known:
      if algorithm.COUNTS_REGRET:
        self._fill('run', regret_every=1)
    elif every is not None:
      raise ValueError(
          f'regret_every would be ignored: f of task {self.task.task} is not '
          f'known as a formula, found {every!r}.'
      )
    queries = algorithm.queries_per_round
    if queries and algorithm.QUERIES_MOVE and (every or 1) > queries:
      raise ValueError(
          f'regret_every must be at most {queries}, the queries of a round, '
          f'found {every!r}.'
      )


def find_setting(config: ExperimentConfig, name: str) -> tuple[str, Any]:
  """Returns a setting's component and value; ValueError if there is none."""
  for component, values in config.components.items():
    if name in (f.name for f in dataclasses.fields(values)):
      return component, getattr(values, name)
  algorithm = algorithms.algorithm_name(config.algorithm)
  raise ValueError(f'{name} would be ignored: algorithm {algorithm} has none.')


def replace_settings(
    config: ExperimentConfig, **changes: schema.Value
) -> ExperimentConfig:
  """Returns `config` with the named settings changed, all at once, and checked.

  Raises ValueError if there is no such setting or its new value is refused.
  """
  found: dict[str, dict[str, schema.Value]] = {}
  for name, value in changes.items():
    component, _ = find_setting(config, name)
    found.setdefault(component, {})[name] = value
  changed = {
      component: dataclasses.replace(getattr(config, component), **values)
      for component, values in found.items()
  }
  return dataclasses.replace(config, **changed)
