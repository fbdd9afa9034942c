"""The tasks by name: what can be chosen, and where each is built.

Holds import paths, not functions, so that flags are checked and a sweep is
planned without TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import importlib
from typing import Any, Optional

from baselines.tasks import databases
from baselines.tasks import downloads
from baselines.tasks import idx_files
from baselines.tasks import vocabularies


@dataclasses.dataclass(frozen=True)
class TaskEntry:
  """What is known of a task before anything heavy is imported.

  Attributes:
    build: `module:function`, called with a config that has the attributes
      `task`, `model`, `data_source`, `data_dir` and `data_seed`, whose choices
      and data `build_task` has checked; returns a `baselines.tasks.task.Task`.
    models: Names for `model`, the first one is the default.
    data_sources: Names for `data_source`, the first one is the default.
    description: One sentence.
    has_accuracy: Whether evaluations report a test accuracy.
    num_clients: Training clients of each source that reads no files; None if
      only the built task knows.
    database: The TFF database of the sources `cache`, `cache_counted` and
      `download`, if any.
    count_files: The counts that `cache` and `download` need besides it;
      `cache_counted` makes them from the training examples.
    num_idx_clients: Training clients of the source `idx`, if there is one; see
      `idx_files`.
    clients_of_models: Those of models that have clients of their own.
    is_fixed: Whether the generated data are the same for every `data_seed`.
    objective: The name of f's formula in `baselines.regret.objectives`, if f
      is known as one; its constants are `Task.objective_constants`.
  """

  build: str
  models: tuple[str, ...]
  data_sources: tuple[str, ...]
  description: str
  has_accuracy: bool
  num_clients: Mapping[str, Optional[int]]
  database: Optional[databases.DatabaseSpec] = None
  num_idx_clients: Optional[int] = None
  count_files: tuple[vocabularies.CountFile, ...] = ()
  clients_of_models: Mapping[str, int] = dataclasses.field(
      default_factory=dict
  )
  is_fixed: bool = False
  objective: Optional[str] = None

  @property
  def takes_data_seed(self) -> bool:
    """Whether `data_seed` deals or makes the data."""
    return self.database is None and not self.is_fixed


_TFF_SOURCES = ('synthetic', 'cache', 'download')
_COUNTED_SOURCES = ('synthetic', 'cache', 'cache_counted', 'download')

TASKS: Mapping[str, TaskEntry] = {
    'cifar100': TaskEntry(
        build='baselines.tasks.cifar100:build',
        models=('resnet18', 'resnet18_unpenalized'),
        data_sources=_TFF_SOURCES,
        description='CIFAR-100, 500 clients by Pachinko allocation (TFF).',
        has_accuracy=True,
        num_clients={'synthetic': 2},
        database=databases.CIFAR100,
    ),
    'digits': TaskEntry(
        build='baselines.tasks.digits:build',
        models=('cnn', 'logistic'),
        data_sources=('embedded',),
        description=(
            '1,797 real 8x8 digits shipped with scikit-learn, dealt to 100'
            ' clients of unequal size with label skew.'
        ),
        has_accuracy=True,
        num_clients={'embedded': 100},
    ),
    'emnist_digits': TaskEntry(
        build='baselines.tasks.femnist:build',
        models=('cnn',),
        data_sources=_TFF_SOURCES,
        description='EMNIST by writer, the 10 digits (TFF, only_digits=True).',
        has_accuracy=True,
        num_clients={'synthetic': 2},
        database=databases.EMNIST_DIGITS,
    ),
    'femnist': TaskEntry(
        build='baselines.tasks.femnist:build',
        models=('cnn',),
        data_sources=_TFF_SOURCES,
        description='EMNIST by writer, 62 classes (TFF, only_digits=False).',
        has_accuracy=True,
        num_clients={'synthetic': 2},
        database=databases.EMNIST_ALL,
    ),
    'linear_regression': TaskEntry(
        build='baselines.tasks.linear_regression:build',
        models=('linear',),
        data_sources=('synthetic',),
        description='Least squares in 30 dimensions, 100 generated clients.',
        has_accuracy=False,
        num_clients={'synthetic': 100},
    ),
    'mnist_logistic': TaskEntry(
        build='baselines.tasks.mnist_logistic:build',
        models=('logistic',),
        data_sources=('embedded', 'idx'),
        description=(
            'Digits by logistic regression with an L2 penalty, 10 clients: 8x8'
            ' ones of scikit-learn, or MNIST from its idx files.'
        ),
        has_accuracy=True,
        num_clients={'embedded': 10},
        num_idx_clients=10,
        objective='softmax_regression',
    ),
    'quadratics': TaskEntry(
        build='baselines.tasks.quadratics:build',
        models=('two_clients', 'interval'),
        data_sources=('synthetic',),
        description='Scalar quadratics of section 4 (two clients, Figure 1).',
        has_accuracy=False,
        num_clients={'synthetic': None},
        clients_of_models={'two_clients': 2},
        is_fixed=True,
    ),
    'scaled_regression': TaskEntry(
        build='baselines.tasks.scaled_regression:build',
        models=('row_sum', 'frobenius', 'row', 'row_loss'),
        data_sources=('synthetic',),
        description='Least squares of the CEAL paper, 10 generated clients.',
        has_accuracy=False,
        num_clients={'synthetic': 10},
        objective='least_squares',
    ),
    'shakespeare': TaskEntry(
        build='baselines.tasks.shakespeare:build',
        models=('lstm',),
        data_sources=_TFF_SOURCES,
        description="Next character of a role's speeches (TFF Shakespeare).",
        has_accuracy=True,
        num_clients={'synthetic': 3},
        database=databases.SHAKESPEARE,
    ),
    'stackoverflow_tag': TaskEntry(
        build='baselines.tasks.stackoverflow_tag:build',
        models=('logistic', 'logistic_sum'),
        data_sources=_COUNTED_SOURCES,
        description='Tags of a post from its words (TFF Stack Overflow).',
        has_accuracy=True,
        num_clients={'synthetic': 3},
        database=databases.STACKOVERFLOW,
        count_files=(vocabularies.WORD_COUNTS, vocabularies.TAG_COUNTS),
    ),
    'stackoverflow_word': TaskEntry(
        build='baselines.tasks.stackoverflow_word:build',
        models=('lstm',),
        data_sources=_COUNTED_SOURCES,
        description='Next word of a sentence (TFF Stack Overflow).',
        has_accuracy=True,
        num_clients={'synthetic': 3},
        database=databases.STACKOVERFLOW,
        count_files=(vocabularies.WORD_COUNTS,),
    ),
}


def task_entry(name: str) -> TaskEntry:
  """Returns the entry of the task.

  Args:
    name: A key of `TASKS`.

  Returns:
    Its entry.

  Raises:
    ValueError: If there is no such task; lists those there are.
  """
  if name not in TASKS:
    raise ValueError(f'task must be one of {sorted(TASKS)}, got {name!r}.')
  return TASKS[name]


def check_choices(name: str, model: str, data_source: str) -> None:
  """Checks that the task has this model and this source of data.

  Args:
    name: A key of `TASKS`.
    model: One of the entry's `models`.
    data_source: One of the entry's `data_sources`.

  Raises:
    ValueError: If one of the three is unknown; lists those there are.
  """
  entry = task_entry(name)
  for argument, value, allowed in (
      ('model', model, entry.models),
      ('data_source', data_source, entry.data_sources),
  ):
    if value not in allowed:
      raise ValueError(
          f'{argument} of task {name!r} must be one of {list(allowed)}, got'
          f' {value!r}.'
      )


def check_data(
    name: str,
    data_source: str,
    data_dir: Optional[str] = None,
    model: Optional[str] = None,
) -> Optional[int]:
  """Checks, in well under a second, that the task's data can be read.

  Looks at the files' presence, their sizes against the sizes that their headers
  state, a database's tables and splits, an archive's digest; reads no example.

  Args:
    name: A key of `TASKS`.
    data_source: One of the entry's `data_sources`.
    data_dir: The folder with TFF's database and counts, for `cache` and
      `cache_counted` (needed) and `download` (default `~/.tff`); that with the
      four files for `idx`.
    model: One of the entry's `models`, by default the first one.

  Returns:
    The number of training clients, or None if there is no limit, or only the
    built task knows: the data are still to be downloaded.

  Raises:
    FileNotFoundError: If the folder or the file is not there.
    ValueError: If a choice is unknown, a folder is given that the source would
      ignore, or a file is cut, of another format, lacks tables or a split, or
      is an archive of counts that is not TFF's.
  """
  entry = task_entry(name)
  model = model or entry.models[0]
  check_choices(name, model, data_source)
  if data_source in entry.num_clients:
    if data_dir:
      raise ValueError(
          f'data_dir must not be given with data_source={data_source!r}, which'
          f' reads no files, got {data_dir!r}.'
      )
    known = entry.num_clients[data_source]
    return entry.clients_of_models.get(model, known)
  if data_source == 'idx':
    idx_files.check_folder(data_dir)
    return entry.num_idx_clients
  if entry.database is None:
    raise ValueError(f'task {name!r} has no database for {data_source!r}.')
  if data_source == 'download':
    num_clients = downloads.check_download(entry.database, data_dir)
  else:
    num_clients = databases.check_cache(entry.database, data_dir)
  if data_source != 'cache_counted':
    for file in entry.count_files:
      vocabularies.check(
          downloads.download_dir(data_dir), file, data_source == 'cache'
      )
  return num_clients


def build_task(config: Any) -> Any:
  """Imports the task's module and builds the task.

  Args:
    config: Has the attributes `task`, `model`, `data_source`, `data_dir` and
      `data_seed`.

  Returns:
    The `baselines.tasks.task.Task`.

  Raises:
    FileNotFoundError: See `check_data`.
    ValueError: See `check_choices` and `check_data`.
  """
  check_choices(config.task, config.model, config.data_source)
  check_data(config.task, config.data_source, config.data_dir)
  module, function = task_entry(config.task).build.split(':')
  return getattr(importlib.import_module(module), function)(config)
