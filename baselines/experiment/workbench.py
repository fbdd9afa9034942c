"""What the runs of one process share: tasks, compiled programs, evaluators.

Rates are in the state and seeds only choose what goes in, so the points of a
sweep over them need one program: the second point costs only its rounds.
"""

import dataclasses
import time
from typing import Any, Callable, Hashable, NamedTuple

import tensorflow_federated as tff

from baselines.algorithms import registry as algorithms
from baselines.experiment import command
from baselines.experiment import config as config_lib
from baselines.experiment import evaluation
from baselines.experiment import plan
from baselines.tasks import registry as tasks
from baselines.tasks import task as task_lib
from tff_localupdate import execution


class Tools(NamedTuple):
  """What one run works with.

  Attributes:
    task: Data and model.
    process: The algorithm's `tff.templates.IterativeProcess`.
    program: The same, compiled for this process.
    evaluator: Evaluates weights on the task.
  """

  task: task_lib.Task
  process: Any
  program: execution.Program
  evaluator: evaluation.Evaluator


class Workbench:
  """Makes tools and keeps them for the runs that follow."""

  def __init__(self, report: Callable[[str], None] = command.report):
    """Makes an empty workbench; the default TFF context becomes in-process.

    Args:
      report: Called with a line about each part that takes a while.
    """
    self._report = report
    self._made: dict[Hashable, Any] = {}
    execution.set_default_context()

  def task(self, config: config_lib.TaskConfig) -> task_lib.Task:
    """Returns the task.

    Raises:
      command.InputError: If its data cannot be read.
    """
    return self._make(('task', config), lambda: self._build_task(config))

  def devices(self, config: config_lib.ExecutionConfig) -> tuple[str, ...]:
    """Returns the devices for client work.

    Raises:
      command.InputError: If they are not there.
    """
    return self._make(('devices', config), lambda: _find_devices(config))

  def check(self, config: config_lib.ExperimentConfig) -> None:
    """Checks what only the data and the machine can tell.

    Raises:
      command.InputError: If the data cannot be read, have fewer clients than a
        round needs, or the devices are not there.
    """
    task = self.task(config.task)
    if task.generator is None:
      plan.check_cohort(config, task.train.num_clients)
    self.devices(config.execution)

  def tools(self, config: config_lib.ExperimentConfig) -> Tools:
    """Returns the tools for a run; those for other rates and seeds will do."""
    run = config.run
    task = self.task(config.task)
    model = self._make(
        ('model', config.task, run.dtype),
        lambda: task.build_model(run.model_seed, run.dtype),
    )
    evaluator = self._make(
        ('evaluator', config.task, run.dtype),
        lambda: evaluation.Evaluator(task, model),
    )
    process, program = self._make(
        _program_key(config), lambda: self._compile(config, task, model)
    )
    return Tools(task, process, program, evaluator)

  def initial_state(self, config: config_lib.ExperimentConfig) -> Any:
    """Returns the state before round 1: the run's own weights and rates."""
    tools = self.tools(config)
    state = tools.program.initialize()
    run = config.run
    model = tools.task.build_model(run.model_seed, run.dtype)
    weights = tff.learning.models.ModelWeights(*model.initial_weights)
    state = tools.process.set_model_weights(state, weights)
    hparams = tools.process.get_hparams(state)
    hparams['client_learning_rate'] = config.algorithm.client_learning_rate
    hparams['server_learning_rate'] = (
        config.server_optimizer.server_learning_rate
    )
    return tools.process.set_hparams(state, hparams)

  def _make(self, key: Hashable, build: Callable[[], Any]) -> Any:
    if key not in self._made:
      self._made[key] = build()
    return self._made[key]

  def _build_task(self, config: config_lib.TaskConfig) -> task_lib.Task:
    started = time.monotonic()
    try:
      task = tasks.build_task(config)
    except (ValueError, OSError) as error:
      raise command.InputError(command.one_line(error)) from error
    self._report(
        f'task {config.task}: {task.train.num_clients} training clients, '
        f'{len(task.train.features[0])} examples '
        f'({time.monotonic() - started:.1f} s)'
    )
    return task

  def _compile(
      self, config: config_lib.ExperimentConfig, task: Any, model: Any
  ) -> tuple[Any, execution.Program]:
    started = time.monotonic()
    process = algorithms.load_builder(config.algorithm)(
        config.algorithm,
        config.server_optimizer,
        task=task,
        model=model,
        batch_size=config.run.batch_size,
        dtype=config.run.dtype,
    )
    program = execution.compile_process(
        process,
        jit=config.execution.jit,
        clients=config.execution.clients,
        devices=self.devices(config.execution),
    )
    self._report(
        f'{algorithms.algorithm_name(config.algorithm)}: process built '
        f'({time.monotonic() - started:.1f} s)'
    )
    return process, program


def _find_devices(config: config_lib.ExecutionConfig) -> tuple[str, ...]:
  try:
    return execution.configure(
        config.devices,
        require_gpu=config.require_gpu,
        deterministic=config.deterministic,
    )
  except (ValueError, RuntimeError) as error:
    raise command.InputError(command.one_line(error)) from error


def _program_key(config: config_lib.ExperimentConfig) -> Hashable:
  """What a compiled program depends on: neither rates nor seeds."""
  return (
      'program',
      config.task,
      dataclasses.replace(config.algorithm, client_learning_rate=0.0),
      dataclasses.replace(config.server_optimizer, server_learning_rate=0.0),
      config.run.batch_size,
      config.run.dtype,
      config.execution,
  )
