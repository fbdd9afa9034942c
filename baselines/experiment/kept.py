"""What is made once and kept for the runs that follow."""

from collections.abc import Callable, Hashable
from typing import Any, Optional

from baselines.experiment import config as config_lib


class Kept:
  """Values by key; those that depend on the data, for one task at a time.

  So a sweep over seeds of large data does not hold them all.
  """

  def __init__(self):
    self._made: dict[Hashable, Any] = {}
    self._task: Optional[config_lib.TaskConfig] = None
    self._made_of_data: dict[Hashable, Any] = {}

  def make(self, key: Hashable, build: Callable[[], Any]) -> Any:
    """Returns the value of a key, built if it is not there."""
    return _get(self._made, key, build)

  def make_of_data(
      self,
      task: config_lib.TaskConfig,
      key: Hashable,
      build: Callable[[], Any],
  ) -> Any:
    """Returns a value that depends on the data of a task.

    Args:
      task: The task. Another one than before takes the place of all that was
        made of that.
      key: The key among the values of the task.
      build: Makes the value.
    """
    if task != self._task:
      self._task, self._made_of_data = task, {}
    return _get(self._made_of_data, key, build)


def _get(made, key, build):
  if key not in made:
    made[key] = build()
  return made[key]
