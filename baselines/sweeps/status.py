"""What is left of a sweep, and how long it will take; needs no TensorFlow."""

import dataclasses
import pathlib
from typing import Optional, Sequence

from baselines import command
from baselines.results import folder as folder_lib
from baselines.results import runs as runs_lib
from baselines.settings import experiment
from baselines.settings import record
from baselines.training import plan


@dataclasses.dataclass(frozen=True)
class PointStatus:
  """How far one point of a sweep is.

  Attributes:
    status: A word of `run_folder`, `new`, or `unreadable`.
    done: Rounds done, or queries of an algorithm with a horizon.
    seconds: Time they took, evaluations included.
  """

  name: str
  status: str
  done: int
  total: int
  seconds: float

  @property
  def left(self) -> int:
    """Rounds or queries that are left to do."""
    return 0 if self.status in folder_lib.ENDED else self.total - self.done


def point_status(
    config: experiment.ExperimentConfig, folder: pathlib.Path
) -> PointStatus:
  """Reads how far a point is; `InputError` if beyond the rounds wanted."""
  run = folder_lib.RunFolder(folder / record.run_id(config))
  total = config.run.rounds or config.run.horizon
  try:
    stage = plan.find_stage(config, run)
    known = runs_lib.summarize(config, run)
  except plan.TooFewRoundsError:
    raise
  except command.InputError:
    return PointStatus(run.path.name, 'unreadable', 0, total, 0.0)
  status = run.read_status()
  word = status.status if status else stage
  if word in folder_lib.ENDED and stage != plan.DONE:
    word = plan.PARTIAL  # More is wanted than there is.
  done = known.final['round' if config.run.rounds else 'time_used']
  return PointStatus(
      run.path.name, word, int(done or 0), total, known.final['seconds']
  )


def seconds_left(points: Sequence[PointStatus]) -> Optional[float]:
  """Returns the time to go at the mean pace so far, None if nothing is done."""
  done = sum(point.done for point in points)
  if not done:
    return None
  pace = sum(point.seconds for point in points) / done
  return pace * sum(point.left for point in points)


def status_text(points: Sequence[PointStatus]) -> str:
  """Returns a line for each point, and one for all."""
  lines = [
      f'{point.status:12} {point.done:>6}/{point.total:<6} {point.name}'
      for point in points
  ]
  num_left = sum(point.left > 0 for point in points)
  remaining = seconds_left(points)
  time_to_go = '' if remaining is None else f', about {remaining:.0f} s to go'
  lines.append(f'{num_left} of {len(points)} left{time_to_go}')
  return '\n'.join(lines)


def plan_text(
    configs: Sequence[experiment.ExperimentConfig], folder: pathlib.Path
) -> str:
  """Returns a line for each point: its stage, see `plan`, and its folder.

  Raises `InputError` if a folder belongs to something else.
  """
  lines = []
  for config in configs:
    run = folder_lib.RunFolder(folder / record.run_id(config))
    lines.append(f'{plan.find_stage(config, run):8} {run.path}')
  return '\n'.join(lines)
