"""Settings of the data and the model, checked without TensorFlow."""

from collections.abc import Container
import dataclasses
import os
from typing import Optional

from baselines import settings
from baselines.settings import setting
from baselines.tasks import registry as tasks

_DEFAULT_DATA_SEED = 1
_SOURCES_OF_FILES = ('cache', 'cache_counted', 'idx')


@dataclasses.dataclass(frozen=True)
class TaskConfig:
  """Which data, and which model is trained on it.

  Raises:
    ValueError: Also if the task has no such model or data source, or if
      `data_dir` is given for a source that reads no files or is not given for
      `cache`.
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
    settings.check_settings(self)
    if self.data_dir:  # dir, ./dir and dir/ are one, and so are their runs.
      object.__setattr__(self, 'data_dir', os.path.normpath(self.data_dir))
    entry = tasks.task_entry(self.task)
    settings.fill_setting(self, 'model', entry.models[0])
    settings.fill_setting(self, 'data_source', entry.data_sources[0])
    tasks.check_choices(self.task, self.model, self.data_source)
    self._check_data_dir(entry.num_clients)
    if entry.takes_data_seed:
      settings.fill_setting(self, 'data_seed', _DEFAULT_DATA_SEED)
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
