"""Saving a run, and finding the place where it goes on.

The one loop: draw, train, evaluate, record, save, go on where it stopped.

Round r is a pure function of the state before it and of the draws, which are
pure functions of (seed, round, client). So a run that was stopped after any
round, in any way, and is started again gives the same numbers as one that was
not: it takes the newest readable checkpoint, drops the rows after it, and
computes them again.
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import time
from typing import Any, Callable, ContextManager, Iterator, Optional

import numpy as np
import tensorflow as tf

from baselines import command
from baselines.algorithms import driver as driver_lib
from baselines.regret import counter
from baselines.run import data
from baselines.run import folder as folder_lib
from baselines.run import plan as plan_lib
from baselines.run import recorder as recorder_lib
from baselines.run import records
from baselines.run import stopping
from baselines.run import summary
from baselines.run import workbench as workbench_lib
from baselines.settings import experiment


@dataclasses.dataclass(frozen=True)
class Start:
  """Where a run starts or goes on.

  Attributes:
    round_num: The round after which `state` is; 0 for a new run.
    state: The server state.
    rows: The rows of metrics.csv up to that round that stay as they are.
    incomplete: The row of `round_num` if it is still to be written (then it is
      not in `rows`) because it lacks an evaluation, else None.
  """

  round_num: int
  state: Any
  rows: list[records.Row]
  incomplete: Optional[dict[str, Any]]


def is_evaluated(
    config: experiment.RunConfig, round_num: int, is_last: bool
) -> bool:
  """Whether an evaluation is due: at 0, N, 2 N, ... and after the last round.

  With N = `rounds_per_evaluation` = 0 only after the last round.
  """
  every = config.rounds_per_evaluation
  return is_last or bool(every and round_num % every == 0)


def find_start(
    config: experiment.ExperimentConfig,
    folder: folder_lib.RunFolder,
    initial_state: Any,
    is_last: Callable[[int, Any], bool],
    report: Callable[[str], None] = command.report,
) -> Start:
  """Returns the place where the run in `folder` goes on.

  That is the newest checkpoint that can be read and that metrics.csv reaches,
  or else the beginning. Rows after it are dropped, for their rounds will be run
  again, with the same result. So is the evaluation of a round that was the last
  one when fewer rounds were wanted.

  Args:
    config: Rounds and evaluations wanted now.
    folder: The run folder.
    initial_state: The state before round 1; gives structure, shapes, dtypes.
    is_last: Tells of a round and the state after it whether the run ends there.
    report: Called with a line about what is passed over.
  """
  rows = [
      row if _keeps_evaluation(config.run, r)
      else records.without_evaluation(row)
      for r, row in enumerate(
          records.read_rows(folder.metrics_path, records.columns_of(config))
      )
  ]
  round_num, state = 0, initial_state
  found = folder_lib.load_newest(
      folder.checkpoints_path, len(rows) - 1, report
  )
  if found:
    round_num = found[0]
    state = unflatten_state(initial_state, found[1])
  rows = rows[: round_num + 1]
  if not rows:
    return Start(0, state, [], {'round': 0})
  last = rows[-1]
  is_due = is_evaluated(config.run, round_num, is_last(round_num, state))
  if is_due and not last['population_loss']:
    return Start(round_num, state, rows[:-1], last)
  return Start(round_num, state, rows, None)


def _keeps_evaluation(config: experiment.RunConfig, round_num: int) -> bool:
  # A run that ends by itself has always had the same last round.
  is_last = config.rounds in (None, round_num)
  return is_evaluated(config, round_num, is_last)


def flatten_state(state: Any) -> list[np.ndarray]:
  """Returns the leaves of a state as arrays."""
  return [np.asarray(leaf) for leaf in tf.nest.flatten(state)]


def unflatten_state(like: Any, leaves: list[np.ndarray]) -> Any:
  """Returns a state with the structure of `like` and the given leaves.

  Raises:
    ValueError: If number, shapes or dtypes of the leaves differ from `like`.
  """
  expected = [(leaf.shape, leaf.dtype) for leaf in flatten_state(like)]
  found = [(leaf.shape, leaf.dtype) for leaf in leaves]
  if expected != found:
    raise ValueError(
        'leaves must have the shapes and dtypes of the state of this program, '
        f'{expected}; found {found}.'
    )
  tensors = [tf.convert_to_tensor(leaf) for leaf in leaves]
  return tf.nest.pack_sequence_as(like, tensors)


def load_weights(
    config: experiment.ExperimentConfig,
    folder: folder_lib.RunFolder,
    workbench: workbench_lib.Workbench,
    report: Callable[[str], None] = command.report,
) -> dict[str, np.ndarray]:
  """Returns the weights of the newest state of a run that can be read.

  Those that the run starts with if there is none. Trainable weights come first;
  see `named_leaves` for the names.
  """
  tools = workbench.tools(config)
  counted = tools.regret.initial_state() if tools.regret else ()
  start = find_start(
      config, folder, (workbench.initial_state(config), counted),
      lambda *unused: False, report,
  )
  weights = tools.process.get_model_weights(start.state[0])
  return {
      **named_leaves(weights.trainable),
      **named_leaves(weights.non_trainable, 'non_trainable/'),
  }


def named_leaves(structure: Any, prefix: str = '') -> dict[str, np.ndarray]:
  """Returns the leaves of a structure in the order of `tf.nest.flatten`.

  A leaf is named by its keys, the names of its fields, or its positions, from
  the outermost on, with `/` between them.
  """
  if isinstance(structure, Mapping):
    parts = [(str(key), structure[key]) for key in sorted(structure)]
  elif hasattr(structure, '_asdict'):
    parts = list(structure._asdict().items())
  elif isinstance(structure, (list, tuple)):
    parts = [(str(number), part) for number, part in enumerate(structure)]
  else:
    return {prefix.rstrip('/'): np.asarray(structure)}
  found = {}
  for name, part in parts:
    found.update(named_leaves(part, f'{prefix}{name}/'))
  return found


def run_experiment(
    plan: plan_lib.Plan,
    workbench: workbench_lib.Workbench,
    interruption: stopping.Interruption,
    *,
    tensorboard: bool = True,
) -> summary.RunSummary:
  """Does what is left to do of a run.

  Args:
    plan: Settings and folder.
    workbench: Gives task, program and evaluator.
    interruption: Asked after each round whether to stop.
    tensorboard: Whether to write TensorBoard events.

  Returns:
    The outcome: finished, diverged or interrupted; as it was before if the
    interruption came before the start.

  Raises:
    command.InputError: If the data, the devices or the folder do not allow the
      run; nothing has been written then.
    Exception: Whatever a round raises; status.json says `failed` then.
  """
  config, folder = plan.config, plan.folder
  if interruption.requested:
    return summary.summarize(config, folder)
  workbench.check(config)
  workbench.tools(config)  # What cannot be built leaves no folder.
  with folder.locked():
    # Another process may have worked on it while this one was loading.
    if plan_lib.find_stage(config, folder) != plan_lib.DONE:
      digests = workbench.task(config.task).data_digests
      folder.check_digests(digests)
      folder.write_config(config, digests)
      try:
        _run_locked(config, folder, workbench, interruption, tensorboard)
      except command.InputError:
        raise
      except Exception as error:
        saved = folder_lib.saved_rounds(folder.checkpoints_path)
        folder.write_status(
            folder_lib.FAILED, max(saved, default=0), command.one_line(error)
        )
        raise
  return summary.summarize(config, folder)


def _run_locked(
    config: experiment.ExperimentConfig,
    folder: folder_lib.RunFolder,
    workbench: workbench_lib.Workbench,
    interruption: stopping.Interruption,
    tensorboard: bool,
) -> None:
  """Runs from where the folder is to where the run ends or is stopped."""
  tools = workbench.tools(config)
  state = workbench.initial_state(config)
  # Not None, which would be a leaf of its own.
  counted = tools.regret.initial_state() if tools.regret else ()

  def is_last(round_num, saved):
    done = round_num == config.run.rounds
    return done or tools.driver.is_finished(saved[0])

  start = find_start(config, folder, (state, counted), is_last)
  with recorder_lib.Recorder(
      config, folder, start.rows, tensorboard=tensorboard
  ) as recorder:
    run = _Run(config, folder, tools, recorder, start.round_num, *start.state)
    run.write_status(folder_lib.RUNNING)
    if start.round_num:
      recorder.report(f'going on after round {start.round_num}')
    least = config.rate and config.rate.rounds_without_decay
    if least and config.run.rounds <= least:
      recorder.report(
          f'the rates cannot decay: that takes more than {least} rounds'
      )
    if start.incomplete is not None:
      first = run.regret_row() if not start.round_num else {}
      recorder.record({**start.incomplete, **first, **run.evaluate()})
    if not recorder.divergence:
      run.train(interruption)
    run.finish()


@dataclasses.dataclass
class _Run:
  """A run at work, after round `round_num`."""

  config: experiment.ExperimentConfig
  folder: folder_lib.RunFolder
  tools: workbench_lib.Tools
  recorder: recorder_lib.Recorder
  round_num: int
  state: Any
  counted: Any  # By `tools.regret`; empty without one.

  def __post_init__(self):
    if self.counted:
      self.counted = counter.restored(self.counted)

  def train(self, interruption: stopping.Interruption) -> None:
    """Runs rounds until the last one, divergence, or an interruption."""
    if interruption.requested or self._is_finished():
      return
    first = self.round_num + 1
    with self._cohorts(first) as cohorts:
      started = time.monotonic()
      for self.round_num, drawn in cohorts:
        values = self._train_round(drawn)
        values['round_seconds'] = _seconds_since(started)
        if self.round_num == first:
          self._report_devices()
        self.recorder.record({**values, **self.evaluate()})
        if self.recorder.divergence or interruption.requested:
          return
        if self.round_num % self.config.run.rounds_per_checkpoint == 0:
          self._save()
          self.write_status(folder_lib.RUNNING)
        started = time.monotonic()

  def _report_devices(self) -> None:
    program = self.tools.program
    self.recorder.report(program.device_report)
    if self.config.execution.require_gpu:
      # That there is a GPU does not yet mean that the work went there.
      if any('GPU' not in device for device in program.client_devices):
        raise RuntimeError(f'require_gpu: {program.device_report}.')

  def _train_round(self, drawn: data.Drawn) -> dict[str, Any]:
    """Runs a round; returns its numbers by column."""
    driver, before = self.tools.driver, self.state
    cohort = driver.cohort(
        driver_lib.CohortData(
            drawn.batches, drawn.num_examples, drawn.examples, drawn.batch_sizes
        )
    )
    self.state, metrics = self.tools.program.next(before, cohort)
    remark = driver.remark(metrics)
    if remark:
      self.recorder.report(remark)
    values = {'round': self.round_num, **driver.row(metrics, self.state)}
    if self.tools.regret:
      start = counter.RoundStart(
          point=self._point(before),
          step_size=float(before.step_size),
          rows=drawn.rows,
          num_queries=int(metrics.num_queries),
          num_clients=self.config.run.clients_per_round,
      )
      self.counted = self.tools.regret.count(self.counted, start)
      values.update(self.regret_row(start.point))
    return values

  def regret_row(self, start_point: Any = None) -> dict[str, Any]:
    """Returns the regret so far by column; empty if it is not counted."""
    if not self.tools.regret:
      return {}
    return self.tools.regret.row(
        self.counted, self._point(self.state), start_point
    )

  def evaluate(self) -> dict[str, Any]:
    """Returns the evaluation by column; empty if none is due."""
    if not is_evaluated(
        self.config.run, self.round_num, self._is_finished()
    ):
      return {}
    started = time.monotonic()
    weights = self.tools.process.get_model_weights(self.state)
    values = self.tools.evaluator.evaluate(weights)._asdict()
    values['evaluation_seconds'] = _seconds_since(started)
    return values

  def finish(self) -> None:
    """Saves the state and says how the run has ended."""
    if self.round_num:
      self._save()
    if self.recorder.divergence:
      self.write_status(folder_lib.DIVERGED, self.recorder.divergence)
    elif self._is_finished():
      self.write_status(folder_lib.FINISHED)
    else:
      self.write_status(folder_lib.INTERRUPTED)

  def write_status(self, status: str, reason: str = '') -> None:
    self.folder.write_status(status, self.round_num, reason)

  def _is_finished(self) -> bool:
    done = self.round_num == self.config.run.rounds
    return done or self.tools.driver.is_finished(self.state)

  def _save(self) -> None:
    # Rows first: a checkpoint is never ahead of metrics.csv.
    self.recorder.flush_to_disk()
    folder_lib.save(
        self.folder.checkpoints_path,
        self.round_num,
        flatten_state((self.state, self.counted)),
    )

  def _cohorts(self, first: int) -> ContextManager[Iterator[Any]]:
    """The rounds to come with their data, drawn ahead where that can be."""
    num_rounds = self.config.num_rounds
    if num_rounds is None:
      return contextlib.closing(self._cohorts_on_demand(first))
    size = self.tools.driver.rows_needed(self.state)
    return data.Prefetcher(
        lambda round_num: self._draw(round_num, size, size),
        range(first, num_rounds + 1),
    )

  def _cohorts_on_demand(self, first: int) -> Iterator[tuple[int, data.Drawn]]:
    """Yields rounds whose size depends on the state before them."""
    driver, round_num = self.tools.driver, first
    while not driver.is_finished(self.state):
      samples = driver.samples_needed(self.state)
      rows = driver.rows_needed(self.state)
      yield round_num, self._draw(round_num, samples, rows)
      round_num += 1

  def _draw(self, round_num: int, num_steps: int, num_rows: int) -> data.Drawn:
    run = self.config.run
    return data.draw_cohort(
        self.tools.task.population,
        seed=run.sampling_seed,
        round_num=round_num,
        clients_per_round=run.clients_per_round,
        client_sampling=run.client_sampling,
        num_steps=num_steps,
        num_rows=num_rows,
        batch_size=run.batch_size,
        num_epochs=self.tools.driver.num_epochs,
        full=self.config.algorithm.needs_all_examples,
    )

  def _point(self, state: Any) -> Any:
    weights = self.tools.process.get_model_weights(state)
    return counter.flatten_weights(weights.trainable)


def _seconds_since(started: float) -> float:
  return round(time.monotonic() - started, 6)
