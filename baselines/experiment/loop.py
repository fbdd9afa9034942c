"""The one loop: draw, train, evaluate, record, save, go on where it stopped.

Round r is a pure function of the state before it and of the draws, which are
pure functions of (seed, round, client). So a run that was stopped after any
round, in any way, and is started again gives the same numbers as one that was
not: it takes the newest readable checkpoint, drops the rows after it, and
computes them again.
"""

import contextlib
import dataclasses
import time
from typing import Any, ContextManager, Iterator

from baselines.algorithms import driver as driver_lib
from baselines.experiment import checkpoints
from baselines.experiment import command
from baselines.experiment import config as config_lib
from baselines.experiment import data
from baselines.experiment import plan as plan_lib
from baselines.experiment import recorder as recorder_lib
from baselines.experiment import regret as regret_lib
from baselines.experiment import resume
from baselines.experiment import run_folder
from baselines.experiment import stopping
from baselines.experiment import summary
from baselines.experiment import workbench as workbench_lib


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
        saved = checkpoints.saved_rounds(folder.checkpoints_path)
        folder.write_status(
            run_folder.FAILED, max(saved, default=0), command.one_line(error)
        )
        raise
  return summary.summarize(config, folder)


def _run_locked(
    config: config_lib.ExperimentConfig,
    folder: run_folder.RunFolder,
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

  start = resume.find_start(config, folder, (state, counted), is_last)
  with recorder_lib.Recorder(
      config, folder, start.rows, tensorboard=tensorboard
  ) as recorder:
    run = _Run(config, folder, tools, recorder, start.round_num, *start.state)
    run.write_status(run_folder.RUNNING)
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

  config: config_lib.ExperimentConfig
  folder: run_folder.RunFolder
  tools: workbench_lib.Tools
  recorder: recorder_lib.Recorder
  round_num: int
  state: Any
  counted: Any  # By `tools.regret`; empty without one.

  def __post_init__(self):
    if self.counted:
      self.counted = regret_lib.restored(self.counted)

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
          self.write_status(run_folder.RUNNING)
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
      start = regret_lib.RoundStart(
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
    if not resume.is_evaluated(
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
      self.write_status(run_folder.DIVERGED, self.recorder.divergence)
    elif self._is_finished():
      self.write_status(run_folder.FINISHED)
    else:
      self.write_status(run_folder.INTERRUPTED)

  def write_status(self, status: str, reason: str = '') -> None:
    self.folder.write_status(status, self.round_num, reason)

  def _is_finished(self) -> bool:
    done = self.round_num == self.config.run.rounds
    return done or self.tools.driver.is_finished(self.state)

  def _save(self) -> None:
    # Rows first: a checkpoint is never ahead of metrics.csv.
    self.recorder.flush_to_disk()
    checkpoints.save(
        self.folder.checkpoints_path,
        self.round_num,
        resume.flatten_state((self.state, self.counted)),
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
    return regret_lib.flatten_weights(weights.trainable)


def _seconds_since(started: float) -> float:
  return round(time.monotonic() - started, 6)
