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
    module: The module of `baselines.tasks` whose `build` is called by
      `build_task`, with choices and data checked.
    models: Names for `model`, the first one is the default.
    data_sources: Names for `data_source`, the first one is the default.
    description: One sentence.
    num_clients: Training clients of each source that reads no files; None if
      only the built task knows.
    has_accuracy: Whether evaluations report a test accuracy.
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

  module: str
  models: tuple[str, ...]
  data_sources: tuple[str, ...]
  description: str
  num_clients: Mapping[str, Optional[int]]
  has_accuracy: bool = True
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
        module='cifar100',
        models=('resnet18', 'resnet18_unpenalized'),
        data_sources=_TFF_SOURCES,
        description='CIFAR-100, 500 clients by Pachinko allocation (TFF).',
        num_clients={'synthetic': 2},
        database=databases.CIFAR100,
    ),
    'digits': TaskEntry(
        module='digits',
        models=('cnn', 'logistic'),
        data_sources=('embedded',),
        description=(
            '1,797 real 8x8 digits shipped with scikit-learn, dealt to 100'
            ' clients of unequal size with label skew.'
        ),
        num_clients={'embedded': 100},
    ),
    'emnist_digits': TaskEntry(
        module='femnist',
        models=('cnn',),
        data_sources=_TFF_SOURCES,
        description='EMNIST by writer, the 10 digits (TFF, only_digits=True).',
        num_clients={'synthetic': 2},
        database=databases.EMNIST_DIGITS,
    ),
    'femnist': TaskEntry(
        module='femnist',
        models=('cnn',),
        data_sources=_TFF_SOURCES,
        description='EMNIST by writer, 62 classes (TFF, only_digits=False).',
        num_clients={'synthetic': 2},
        database=databases.EMNIST_ALL,
    ),
    'linear_regression': TaskEntry(
        module='linear_regression',
        models=('linear',),
        data_sources=('synthetic',),
        description='Least squares in 30 dimensions, 100 generated clients.',
        has_accuracy=False,
        num_clients={'synthetic': 100},
    ),
    'mnist_logistic': TaskEntry(
        module='mnist_logistic',
        models=('logistic',),
        data_sources=('embedded', 'idx'),
        description=(
            'Digits by logistic regression with an L2 penalty, 10 clients: 8x8'
            ' ones of scikit-learn, or MNIST from its idx files.'
        ),
        num_clients={'embedded': 10},
        num_idx_clients=10,
        objective='softmax_regression',
    ),
    'quadratics': TaskEntry(
        module='quadratics',
        models=('two_clients', 'interval'),
        data_sources=('synthetic',),
        description='Scalar quadratics of section 4 (two clients, Figure 1).',
        has_accuracy=False,
        num_clients={'synthetic': None},
        clients_of_models={'two_clients': 2},
        is_fixed=True,
    ),
    'scaled_regression': TaskEntry(
        module='scaled_regression',
        models=('row_sum', 'frobenius', 'row', 'row_loss'),
        data_sources=('synthetic',),
        description='Least squares of the CEAL paper, 10 generated clients.',
        has_accuracy=False,
        num_clients={'synthetic': 10},
        objective='least_squares',
    ),
    'shakespeare': TaskEntry(
        module='shakespeare',
        models=('lstm',),
        data_sources=_TFF_SOURCES,
        description="Next character of a role's speeches (TFF Shakespeare).",
        num_clients={'synthetic': 3},
        database=databases.SHAKESPEARE,
    ),
    'stackoverflow_tag': TaskEntry(
        module='stackoverflow_tag',
        models=('logistic', 'logistic_sum'),
        data_sources=_COUNTED_SOURCES,
        description='Tags of a post from its words (TFF Stack Overflow).',
        num_clients={'synthetic': 3},
        database=databases.STACKOVERFLOW,
        count_files=(vocabularies.WORD_COUNTS, vocabularies.TAG_COUNTS),
    ),
    'stackoverflow_word': TaskEntry(
        module='stackoverflow_word',
        models=('lstm',),
        data_sources=_COUNTED_SOURCES,
        description='Next word of a sentence (TFF Stack Overflow).',
        num_clients={'synthetic': 3},
        database=databases.STACKOVERFLOW,
        count_files=(vocabularies.WORD_COUNTS,),
    ),
}


def task_entry(name: str) -> TaskEntry:
  """Returns the entry of the task; ValueError lists those there are."""
  if name not in TASKS:
    raise ValueError(f'task must be one of {sorted(TASKS)}, got {name!r}.')
  return TASKS[name]


def check_choices(name: str, model: str, data_source: str) -> None:
  """Raises ValueError if one of the three is unknown; lists those there are."""
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
    name: The task.
    data_source: Its source of data.
    data_dir: The folder with TFF's database and counts, for `cache` and
      `cache_counted` (needed) and `download` (default `~/.tff`); that with the
      four files for `idx`.
    model: Its model, by default the first one.

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
  """Imports the task's module and builds the `baselines.tasks.task.Task`.

  Takes a config with the attributes `task`, `model`, `data_source`, `data_dir`
  and `data_seed`, and raises the errors of `check_data`.
  """
  check_choices(config.task, config.model, config.data_source)
  check_data(config.task, config.data_source, config.data_dir)
  module = task_entry(config.task).module
  return importlib.import_module(f'baselines.tasks.{module}').build(config)
