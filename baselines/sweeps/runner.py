"""Runs the points of a sweep one after another, whatever happens to one.

Before the work it asks whether the sweep may write where it was told to.
"""

import dataclasses
import pathlib
import traceback
from typing import Any, Callable, Optional, Sequence

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import runs as runs_lib
from baselines.settings import experiment
from baselines.settings import record
from baselines.training import plan as plan_lib
from baselines.training import stopping


def check_folder(folder: pathlib.Path, figure: Optional[str]) -> None:
  """Raises `command.InputError` if results could not go where they should.

  A folder is a sweep's if its entries are run folders and a sweep's results.
  """
  folder_lib.check_writable(folder)
  if (folder / 'config.json').exists():
    raise command.InputError(
        f'output_dir must be the folder of a sweep, found a run: {folder}.'
    )
  has_runs = any(folder.glob('*/config.json'))
  # Both tables without a run are those of a sweep that was stopped at once.
  is_sweep = has_runs or (folder / 'results.md').exists()
  if (folder / 'results.csv').exists() and not is_sweep:
    raise command.InputError(
        'output_dir must be new or the folder of a sweep; '
        f'{folder} has a results.csv but no run.'
    )
  if figure:
    path = command.user_path('figure', figure)
    folder_lib.check_writable(path.parent, 'the folder of figure')
    if path.is_dir():
      raise command.InputError(f'figure must be a file, found {path}.')


def run_points(
    configs: Sequence[experiment.ExperimentConfig],
    folder: pathlib.Path,
    interruption: stopping.Interruption,
    *,
    tensorboard: bool,
    workbench_fn: Optional[Callable[[], Any]] = None,
) -> list[runs_lib.Run]:
  """Runs all points that are not done; loads TensorFlow only if there are any.

  They share compiled program and evaluator; those on the same data follow each
  other and share the task. A point that fails is reported and the next one
  runs; after all others it is tried once more. An interruption ends the sweep
  after the round at work. Data and devices are those of the first point;
  `workbench_fn` gives the workbench, by default a new one. Returns the outcome
  of each point.

  Raises:
    command.InputError: If data or devices are not there for any of them, or one
      has done more rounds than wanted; nothing has been run then.
  """
  plans, outcomes = [], {}
  for config in configs:
    run = folder_lib.RunFolder(folder / record.run_id(config))
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
    outcomes.update(
        _run_all(to_run, interruption, tensorboard, workbench_fn)
    )
  for plan in plans:
    if plan.config not in outcomes:
      try:
        known = runs_lib.summarize(plan.config, plan.folder)
      except command.InputError as error:
        known = _failed(plan.config, plan.folder, error)
      outcomes[plan.config] = known
  return [outcomes[config] for config in configs]


def _run_all(plans, interruption, tensorboard, workbench_fn):
  with command.announced():
    from baselines.training import loop
    from baselines.training import workbench as workbench_lib

  workbench = (workbench_fn or workbench_lib.Workbench)()
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
    if outcome and outcome.status == folder_lib.FAILED:
      if not interruption.requested:
        outcomes[plan.config] = run_one('again', plan)
  return outcomes


def _failed(
    config: experiment.ExperimentConfig,
    run: folder_lib.RunFolder,
    error: Exception,
) -> runs_lib.Run:
  command.report(f'{run.path}: failed: {command.one_line(error)}')
  reason = command.one_line(error)
  try:
    known = runs_lib.summarize(config, run)
  except command.InputError:  # the folder itself cannot be read
    known = runs_lib.unreadable(config, run)
  return dataclasses.replace(known, status=folder_lib.FAILED, reason=reason)
