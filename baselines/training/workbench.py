"""What the runs of one process share: tasks, compiled programs, evaluators.

Rates are in the state and seeds only choose what goes in, so the points of a
sweep over them need one program: the second point costs only its rounds.
"""

from collections.abc import Callable, Hashable
import dataclasses
import functools
import time
from typing import Any, NamedTuple, Optional
import warnings

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines import command
from baselines.algorithms import driver as driver_lib
from baselines.regret import counter
from baselines.regret import objectives
from baselines.regret import optimum
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.tasks import registry as tasks
from baselines.tasks import task as task_lib
from baselines.training import evaluation
from baselines.training import plan
from tff_localupdate import execution


class Kept:
  """Values by key; those that depend on the data, for one task at a time.

  So a sweep over seeds of large data does not hold them all.
  """

  def __init__(self):
    self._made: dict[Hashable, Any] = {}
    self._task: Optional[experiment.TaskConfig] = None
    self._made_of_data: dict[Hashable, Any] = {}

  def make(self, key: Hashable, build: Callable[[], Any]) -> Any:
    """Returns the value of a key, built if it is not there."""
    return _get(self._made, key, build)

  def make_of_data(
      self,
      task: experiment.TaskConfig,
      key: Hashable,
      build: Callable[[], Any],
  ) -> Any:
    """Returns a value of this key that depends on the data of a task.

    Another task than before takes the place of all that was made of that.
    """
    if task != self._task:
      self._task, self._made_of_data = task, {}
    return _get(self._made_of_data, key, build)


def _get(made, key, build):
  if key not in made:
    made[key] = build()
  return made[key]


def initial_weights(
    model: tff.learning.models.FunctionalModel, initial_point: str, seed: int
) -> tff.learning.models.ModelWeights:
  """Returns x_1, by the choice `initial_point`.

  That is `model` for the model's own weights, `zero`, or `sphere` for trainable
  weights that are, by the seed, together uniform on the unit sphere.
  """
  trainable, non_trainable = model.initial_weights
  leaves = [np.asarray(leaf) for leaf in tf.nest.flatten(trainable)]
  if initial_point == 'zero':
    leaves = [np.zeros_like(leaf) for leaf in leaves]
  elif initial_point == 'sphere':
    generator = np.random.default_rng(seed)
    vector = generator.standard_normal(sum(leaf.size for leaf in leaves))
    vector /= np.linalg.norm(vector)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    leaves = [
        part.reshape(leaf.shape).astype(leaf.dtype)
        for part, leaf in zip(np.split(vector, ends), leaves)
    ]
  return tff.learning.models.ModelWeights(
      tf.nest.pack_sequence_as(trainable, leaves), non_trainable
  )


class Tools(NamedTuple):
  """What one run works with.

  Attributes:
    driver: The algorithm, as the loop drives it.
    program: Its process, compiled for this process.
    regret: Counts the regret, if the run does.
  """

  task: task_lib.Task
  driver: Any
  program: execution.Program
  evaluator: evaluation.Evaluator
  regret: Optional[counter.RegretCounter]

  @property
  def process(self) -> Any:
    """The algorithm's `tff.templates.IterativeProcess`."""
    return self.driver.process


class Workbench:
  """Makes tools and keeps them for the runs that follow, see `kept`."""

  def __init__(self, report: Callable[[str], None] = command.report):
    """Makes an empty workbench; the default TFF context becomes in-process.

    `report` is called with a line about each part that takes a while.
    """
    self._report = report
    self._kept = Kept()
    execution.set_default_context()

  def task(self, config: experiment.TaskConfig) -> task_lib.Task:
    """Returns the task; `InputError` if its data cannot be read."""
    return self._kept.make_of_data(
        config, 'task', lambda: self._build_task(config)
    )

  def devices(self, config: experiment.ExecutionConfig) -> tuple[str, ...]:
    """Returns the devices for client work; `InputError` if not there."""
    return self._kept.make(('devices', config), lambda: _find_devices(config))

  def check(self, config: experiment.ExperimentConfig) -> None:
    """Raises `InputError` if data, devices or enough clients are missing."""
    # First: reading data starts TensorFlow, whose threads are fixed by then.
    self.devices(config.execution)
    task = self.task(config.task)
    if task.population.num_clients is not None:
      plan.check_cohort(config, task.population.num_clients)

  def tools(self, config: experiment.ExperimentConfig) -> Tools:
    """Returns the tools for a run; those for other rates and seeds will do."""
    run, fast = config.run, config.execution.fast_paths
    task = self.task(config.task)
    # The data decide what a client has, not how it computes.
    family = tuple(
        (name, value)
        for name, value in dataclasses.asdict(config.task).items()
        if name != 'data_seed'
    )
    model = self._kept.make(
        ('model', family, run.dtype, fast),
        lambda: task.model_builder(fast)(run.model_seed, run.dtype),
    )
    compiled = self._kept.make(
        ('compiled evaluator', family, run.dtype, fast),
        lambda: evaluation.Evaluator(
            task,
            model,
            jit=None if fast else False,
            device=self.devices(config.execution)[0],
        ),
    )
    evaluator = self._kept.make_of_data(
        config.task,
        ('evaluator', run.dtype, fast),
        lambda: compiled.with_data_of(task),
    )
    config = self._with_known_constants(config, task)
    key = _program_key(config, family)
    compile_ = functools.partial(self._compile, config, task, model)
    if config.algorithm.has_data_in_program:
      driver, program = self._kept.make_of_data(config.task, key, compile_)
    else:
      driver, program = self._kept.make(key, compile_)
    return Tools(task, driver, program, evaluator, self._regret(config, task))

  def initial_state(self, config: experiment.ExperimentConfig) -> Any:
    """Returns the state before round 1: the run's own weights and rates."""
    tools = self.tools(config)
    run = config.run
    return tools.driver.initial_state(
        tools.program,
        _initial_weights(config, tools.task),
        self._with_known_constants(config, tools.task).process_rates,
        run.sampling_seed,
    )

  def _with_known_constants(
      self, config: experiment.ExperimentConfig, task: task_lib.Task
  ) -> experiment.ExperimentConfig:
    """Fills in what the theory computes from f, if f is known."""
    if not plan.are_missing(config):
      return config
    found = self._kept.make_of_data(
        config.task,
        ('constants', config.run),
        lambda: self._measure(config, task),
    )
    return plan.fill(config, found)

  def _measure(
      self, config: experiment.ExperimentConfig, task: task_lib.Task
  ) -> plan.Constants:
    found = plan.measure(
        self._objective(config.task, task),
        counter.flatten_weights(_initial_weights(config, task).trainable),
        config.run.batch_size,
    )
    self._report(
        f'measured: noise_scale {found.noise_scale:.6g}, smoothness '
        f'{found.smoothness:.6g}'
    )
    return found

  def _regret(
      self, config: experiment.ExperimentConfig, task: task_lib.Task
  ) -> Optional[counter.RegretCounter]:
    if not config.counts_regret:
      return None
    objective = self._objective(config.task, task)
    best = self._kept.make_of_data(
        config.task,
        'optimum',
        lambda: optimum.load_or_solve(objective, optimum.default_folder()),
    )
    return counter.RegretCounter(
        objective,
        best.value,
        evaluate_every=config.run.regret_every,
        logs_norm='true_gradient_norm' in config.algorithm.extra_columns,
    )

  def _objective(
      self, config: experiment.TaskConfig, task: task_lib.Task
  ) -> Any:
    return self._kept.make_of_data(
        config, 'objective', lambda: objectives.build_objective(task)
    )

  def _build_task(self, config: experiment.TaskConfig) -> task_lib.Task:
    started = time.monotonic()
    try:
      task = tasks.build_task(config)
    except (ValueError, OSError) as error:
      raise command.InputError(command.one_line(error)) from error
    self._report(
        f'task {config.task}, data: {config.data_source}: '
        f'{_population_text(task)} '
        f'({time.monotonic() - started:.1f} s)'
    )
    return task

  def _compile(
      self, config: experiment.ExperimentConfig, task: Any, model: Any
  ) -> tuple[Any, execution.Program]:
    started = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
      warnings.simplefilter('always', UserWarning)
      try:
        driver = algorithms.load_builder(config.algorithm)(
            config.algorithm,
            driver_lib.BuildContext(
                model, task, config.run, config.server_optimizer, config.rate
            ),
        )
      except ValueError as error:
        raise command.InputError(command.one_line(error)) from error
    for warning in caught:
      self._report(f'warning: {warning.message}')
    jit, clients = config.execution.jit, config.execution.clients
    if jit == 'auto' and not driver.gains_by_xla:
      jit = 'off'
    if not config.execution.fast_paths:
      jit, clients = 'off', 'loop'
    program = execution.compile_process(
        driver.process,
        jit=jit,
        clients=clients,
        devices=self.devices(config.execution),
    )
    self._report(
        f'{algorithms.algorithm_name(config.algorithm)}: process built '
        f'({time.monotonic() - started:.1f} s)'
    )
    return driver, program


def _initial_weights(
    config: experiment.ExperimentConfig, task: task_lib.Task
) -> Any:
  run = config.run
  return initial_weights(
      task.build_model(run.model_seed, run.dtype),
      run.initial_point,
      run.model_seed,
  )


def _population_text(task: task_lib.Task) -> str:
  examples = len(task.train.features[0])
  if task.population is task.train:
    return f'{task.train.num_clients} training clients, {examples} examples'
  held = f'evaluated on {task.train.num_clients} with {examples} examples'
  if task.population.num_clients is None:
    return f'new clients each round, {held}'
  return f'{task.population.num_clients} training clients, {held}'


def _find_devices(config: experiment.ExecutionConfig) -> tuple[str, ...]:
  try:
    return execution.configure(
        config.devices,
        require_gpu=config.require_gpu,
        deterministic=config.deterministic,
        tensor_float_32=config.tensor_float_32,
    )
  except (ValueError, RuntimeError) as error:
    raise command.InputError(command.one_line(error)) from error


def _program_key(
    config: experiment.ExperimentConfig, family: tuple[Any, ...]
) -> Hashable:
  """What a compiled program depends on: neither rates nor seeds."""
  server_optimizer = config.server_optimizer
  if server_optimizer is not None:
    server_optimizer = dataclasses.replace(
        server_optimizer, server_learning_rate=1.0
    )
  return (
      'program',
      family,
      config.algorithm.compiled_settings(),
      # What plans by the state knows its horizon; others leave it to the loop.
      config.run.horizon if config.algorithm.PLANS_BY_HORIZON else None,
      server_optimizer,
      config.rate,
      config.run.clients_per_round,
      config.run.batch_size,
      config.run.dtype,
      config.execution,
  )
