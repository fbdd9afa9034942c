"""The one loop: draw, train, evaluate, record, save, go on where it stopped.

Round r is a pure function of the state before it and of the draws, which are
pure functions of (seed, round, client). So a run that was stopped after any
round, in any way, and is started again gives the same numbers as one that was
not: it takes the newest readable checkpoint, drops the rows after it, and
computes them again.
"""

import dataclasses
import math
import time
from typing import Any

from baselines.experiment import checkpoints
from baselines.experiment import command
from baselines.experiment import config as config_lib
from baselines.experiment import data
from baselines.experiment import plan as plan_lib
from baselines.experiment import recorder as recorder_lib
from baselines.experiment import records
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
  with folder.locked():
    # Another process may have worked on it while this one was loading.
    if plan_lib.find_stage(config, folder) != plan_lib.DONE:
      folder.write_config(config)
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
  start = resume.find_start(
      config.run, folder, workbench.initial_state(config)
  )
  with recorder_lib.Recorder(
      config.run, folder, start.rows, tensorboard=tensorboard
  ) as recorder:
    run = _Run(config, folder, tools, recorder, start.round_num, start.state)
    run.write_status(run_folder.RUNNING)
    if start.round_num:
      recorder.report(f'going on after round {start.round_num}')
    if start.incomplete is not None:
      recorder.record({**start.incomplete, **run.evaluate()})
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

  def train(self, interruption: stopping.Interruption) -> None:
    """Runs rounds until the last one, divergence, or an interruption."""
    first = self.round_num + 1
    rounds = range(first, self.config.run.rounds + 1)
    if interruption.requested:
      return
    with data.Prefetcher(self._draw, rounds) as cohorts:
      started = time.monotonic()
      for self.round_num, cohort in cohorts:
        self.state, metrics = self.tools.program.next(self.state, cohort)
        values = _training_values(metrics)
        values['round'] = self.round_num
        values['round_seconds'] = _seconds_since(started)
        if self.round_num == first:
          self.recorder.report(self.tools.program.device_report)
        self.recorder.record({**values, **self.evaluate()})
        if self.recorder.divergence or interruption.requested:
          return
        if self.round_num % self.config.run.rounds_per_checkpoint == 0:
          self._save()
          self.write_status(run_folder.RUNNING)
        started = time.monotonic()

  def evaluate(self) -> dict[str, Any]:
    """Returns the evaluation by column; empty if none is due."""
    if not resume.is_evaluated(self.config.run, self.round_num):
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
    elif self.round_num == self.config.run.rounds:
      self.write_status(run_folder.FINISHED)
    else:
      self.write_status(run_folder.INTERRUPTED)

  def write_status(self, status: str, reason: str = '') -> None:
    self.folder.write_status(status, self.round_num, reason)

  def _save(self) -> None:
    # Rows first: a checkpoint is never ahead of metrics.csv.
    self.recorder.flush_to_disk()
    checkpoints.save(
        self.folder.checkpoints_path,
        self.round_num,
        resume.flatten_state(self.state),
    )

  def _draw(self, round_num: int) -> Any:
    run, algorithm = self.config.run, self.config.algorithm
    return data.draw_cohort(
        self.tools.task.population,
        seed=run.sampling_seed,
        round_num=round_num,
        clients_per_round=run.clients_per_round,
        client_sampling=run.client_sampling,
        num_steps=algorithm.num_steps,
        batch_size=run.batch_size,
        full=algorithm.loss_before_training == 'full',
    )


def _training_values(metrics: Any) -> dict[str, Any]:
  """The metrics of a round by column; no loss if no client had examples."""
  values = {c: getattr(metrics, c) for c in records.TRAINING_COLUMNS}
  if not values['clients_used'] and math.isnan(values['loss_before_training']):
    values['loss_before_training'] = None
  return values


def _seconds_since(started: float) -> float:
  return round(time.monotonic() - started, 6)
