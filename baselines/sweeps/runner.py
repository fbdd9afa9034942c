"""Runs the points of a sweep one after another, whatever happens to one."""

import dataclasses
import pathlib
import traceback
from typing import Sequence

from baselines.experiment import command
from baselines.experiment import config as config_lib
from baselines.experiment import config_json
from baselines.experiment import loading
from baselines.experiment import plan as plan_lib
from baselines.experiment import run_folder
from baselines.experiment import stopping
from baselines.experiment import summary


def run_points(
    configs: Sequence[config_lib.ExperimentConfig],
    folder: pathlib.Path,
    interruption: stopping.Interruption,
    *,
    tensorboard: bool,
) -> list[summary.RunSummary]:
  """Runs all points that are not done; loads TensorFlow only if there are any.

  They share compiled program and evaluator; those on the same data follow each
  other and share the task. A point that fails is reported and the next one
  runs; after all others it is tried once more. An interruption ends the sweep
  after the round at work.

  Args:
    configs: The points; data and devices are those of the first one.
    folder: The folder of the run folders.
    interruption: Asked after each round whether to stop.
    tensorboard: Whether to write TensorBoard events.

  Returns:
    The outcome of each point.

  Raises:
    command.InputError: If data or devices are not there for any of them, or
      one has done more rounds than wanted; nothing has been run then.
  """
  plans, outcomes = [], {}
  for config in configs:
    run = run_folder.RunFolder(folder / config_json.run_id(config))
    try:
      stage = plan_lib.find_stage(config, run)
      plans.append(plan_lib.Plan(config, run, stage))
    except plan_lib.TooFewRoundsError:
      raise  # A wrong flag, not a failure: the tables stay as they are.
    except command.InputError as error:
      outcomes[config] = _failed(config, run, error)
  for plan in plans:  # Only now: one of too few rounds leaves all as it was.
    if plan.stage == plan_lib.DONE:
      try:
        plan.folder.adopt_config(plan.config)
      except command.InputError as error:
        outcomes[plan.config] = _failed(plan.config, plan.folder, error)
  to_run = [plan for plan in plans if plan.stage != plan_lib.DONE]
  if to_run:
    outcomes.update(_run_all(to_run, interruption, tensorboard))
  for plan in plans:
    if plan.config not in outcomes:
      try:
        known = summary.summarize(plan.config, plan.folder)
      except command.InputError as error:
        known = _failed(plan.config, plan.folder, error)
      outcomes[plan.config] = known
  return [outcomes[config] for config in configs]


def _run_all(plans, interruption, tensorboard):
  with loading.announced():
    from baselines.experiment import loop
    from baselines.experiment import workbench as workbench_lib

  workbench = workbench_lib.Workbench()
  workbench.check(plans[0].config)
  # Runs on the same data follow each other: the workbench keeps one task.
  tasks = list(dict.fromkeys(plan.config.task for plan in plans))
  plans = sorted(plans, key=lambda plan: tasks.index(plan.config.task))

  def run_one(label, plan):
    command.report(f'[{label}] {plan.folder.path.name}')
    try:
      return loop.run_experiment(
          plan, workbench, interruption, tensorboard=tensorboard
      )
    except Exception as error:  # pylint: disable=broad-exception-caught
      if not isinstance(error, command.InputError):
        traceback.print_exc()
      return _failed(plan.config, plan.folder, error)

  outcomes = {}
  for number, plan in enumerate(plans, 1):
    if interruption.requested:
      break
    outcomes[plan.config] = run_one(f'{number}/{len(plans)}', plan)
  for plan in plans:
    outcome = outcomes.get(plan.config)
    # What fails once may have met a full disk, or a device in use.
    if outcome and outcome.status == run_folder.FAILED:
      if not interruption.requested:
        outcomes[plan.config] = run_one('again', plan)
  return outcomes


def _failed(
    config: config_lib.ExperimentConfig,
    run: run_folder.RunFolder,
    error: Exception,
) -> summary.RunSummary:
  command.report(f'{run.path}: failed: {command.one_line(error)}')
  reason = command.one_line(error)
  try:
    known = summary.summarize(config, run)
  except command.InputError:  # the folder itself cannot be read
    known = summary.nothing_known(config, run)
  return dataclasses.replace(known, status=run_folder.FAILED, reason=reason)
