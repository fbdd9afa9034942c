"""The run folder: one experiment's settings, status and results.

  config.json    all settings in use, and versions
  metrics.csv    one row per round
  status.json    running, finished, diverged, interrupted or failed
  checkpoints/   the newest two states
  events/        TensorBoard events
  lock           held by the process that works on the folder
"""

import contextlib
import dataclasses
import errno
import fcntl
import importlib.metadata
import json
import os
import pathlib
from typing import Iterator, Mapping, Optional, Sequence

from baselines import command
from baselines import files
from baselines.settings import experiment
from baselines.settings import record as record_lib

RUNNING = 'running'
FINISHED = 'finished'
DIVERGED = 'diverged'
INTERRUPTED = 'interrupted'
FAILED = 'failed'
ENDED = (FINISHED, DIVERGED)

_FORMAT = 1
# What the system says of file systems that have no locks.
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
_PACKAGES = ('tensorflow', 'tensorflow-federated', 'numpy')


@dataclasses.dataclass(frozen=True)
class Status:
  """How far a run is.

  Attributes:
    round: The last round done and saved.
    reason: Why it failed or what diverged, else empty.
  """

  status: str
  round: int
  reason: str = ''


@dataclasses.dataclass(frozen=True)
class RunFolder:
  """Paths and small files of one run folder."""

  path: pathlib.Path

  @property
  def metrics_path(self) -> pathlib.Path:
    return self.path / 'metrics.csv'

  @property
  def checkpoints_path(self) -> pathlib.Path:
    return self.path / 'checkpoints'

  @property
  def events_path(self) -> pathlib.Path:
    return self.path / 'events'

  def is_new(self) -> bool:
    """Whether there is nothing in the folder, or no folder.

    A lock or a partial file alone comes from a start that was killed at once.
    Raises `InputError` if the path is a file, or the folder has content but no
    config.json.
    """
    if not self.path.exists():
      return True
    if not self.path.is_dir():
      raise command.InputError(
          f'output_dir must be a folder, found a file: {self.path}.'
      )
    content = [
        name
        for name in os.listdir(self.path)
        if name != 'lock' and not name.endswith(files.PARTIAL_SUFFIX)
    ]
    if content and 'config.json' not in content:
      raise command.InputError(
          'output_dir must be new, empty or the folder of the same run; '
          f'{self.path} has {len(content)} entries but no config.json.'
      )
    return not content

  def read_config(self) -> experiment.ExperimentConfig:
    """Returns the settings of the start; `InputError` if unreadable."""
    path = self.path / 'config.json'
    try:
      record = json.loads(path.read_text())
      return record_lib.from_tree(record['settings'])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
      raise command.InputError(
          f'{path} is not the record of a run of this version: '
          f'{command.one_line(error)}'
      ) from error

  def check_digests(self, data_digests: Mapping[str, str]) -> None:
    """Raises `InputError` if a file's digest is not the recorded one."""
    try:
      record = json.loads((self.path / 'config.json').read_text())
    except FileNotFoundError:
      return
    recorded = record.get('data_digests') or {}
    changed = sorted(
        name
        for name, digest in data_digests.items()
        if recorded.get(name, digest) != digest
    )
    if changed:
      raise command.InputError(
          f'output_dir {self.path} holds a run with other data: '
          f'{", ".join(changed)} must be what it was when the run was started, '
          'found another content.'
      )

  def write_config(
      self,
      config: experiment.ExperimentConfig,
      data_digests: Optional[Mapping[str, str]] = None,
  ) -> None:
    """Records settings, run id, versions, and digests of data files."""
    record = {
        'format': _FORMAT,
        'run_id': record_lib.run_id(config),
        'settings': record_lib.to_tree(config),
        **({'data_digests': dict(data_digests)} if data_digests else {}),
        'versions': {p: _version(p) for p in _PACKAGES},
    }
    files.write_whole(
        self.path / 'config.json', json.dumps(record, indent=2) + '\n'
    )

  def adopt_config(self, config: experiment.ExperimentConfig) -> None:
    """Records settings of a run that is done as they are wanted now.

    A run that diverged has also diverged under more rounds, and should stand
    beside runs that have them. The new settings differ in what may change
    alone. Raises `InputError` if another process works on the folder.
    """
    if self.read_config() == config:
      return
    with self.locked():
      path = self.path / 'config.json'
      record = json.loads(path.read_text())
      record['settings'] = record_lib.to_tree(config)
      files.write_whole(path, json.dumps(record, indent=2) + '\n')

  def read_status(self) -> Optional[Status]:
    """Returns the status, or None if there is none that can be read."""
    try:
      status = Status(**json.loads((self.path / 'status.json').read_text()))
    except (OSError, ValueError, TypeError):
      return None
    return status if isinstance(status.round, int) else None

  def write_status(self, status: str, round_num: int, reason: str = '') -> None:
    """Records how far the run is."""
    record = dataclasses.asdict(Status(status, round_num, reason))
    files.write_whole(self.path / 'status.json', json.dumps(record) + '\n')

  @contextlib.contextmanager
  def locked(self) -> Iterator[None]:
    """Holds the folder, created if needed, for this process alone.

    The lock goes with the process, whatever ends it. Raises `InputError` if
    another process holds it, or the folder cannot be written.
    """
    try:
      self.path.mkdir(parents=True, exist_ok=True)
      stream = open(self.path / 'lock', 'a', encoding='utf-8')
    except OSError as error:
      raise command.InputError(
          f'output_dir must be a folder that can be written: {error}.'
      ) from error
    with stream:
      _acquire(stream, self.path)
      yield

  def check_unlocked(self) -> None:
    """Raises `command.InputError` if another process works on the folder."""
    with contextlib.suppress(OSError):  # no lock yet, or not ours to read
      with open(self.path / 'lock', 'r', encoding='utf-8') as stream:
        _acquire(stream, self.path)


def is_complete(
    status: Status,
    run: experiment.RunConfig,
    rows: Sequence[Mapping[str, str]],
) -> bool:
  """Returns whether nothing is left to do of a run that has ended.

  That depends on the rounds and the horizon wanted by `run`, and on all rows of
  its metrics.csv, that of round 0 included.
  """
  if len(rows) <= status.round:  # Rows were lost.
    return False
  if status.status == DIVERGED or run.rounds in (None, status.round):
    return True
  time_used = float(rows[-1].get('time_used') or 0)
  return run.horizon is not None and time_used >= run.horizon


def check_writable(path: pathlib.Path, name: str = 'output_dir') -> None:
  """Checks that a folder can be written, or made; writes nothing.

  Raises `InputError`, with the setting's name, if the nearest existing folder
  above cannot be written or is no folder, or the path is not valid.
  """
  try:
    nearest = path.absolute()
    while not nearest.exists() and nearest != nearest.parent:
      nearest = nearest.parent
    nearest.stat()
    usable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
  except (OSError, ValueError) as error:
    raise command.InputError(
        f'{name} must be a folder that can be written: {error}.'
    ) from error
  if not usable:
    raise command.InputError(
        f'{name} must be a folder that can be written, found {nearest} on the '
        f'way to {path}.'
    )


@contextlib.contextmanager
def reading(path: pathlib.Path) -> Iterator[None]:
  """Turns what the system says of a folder into `command.InputError`."""
  try:
    yield
  except OSError as error:
    raise command.InputError(
        f'{path} cannot be read: {command.one_line(error)}.'
    ) from error


def _acquire(stream, path: pathlib.Path) -> None:
  try:
    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError as error:
    raise command.InputError(
        f'output_dir is in use by another process: {path}.'
    ) from error
  except OSError as error:
    if error.errno not in _NO_LOCKS:
      raise
    command.report(
        f'warning: {path} is not locked, for its file system has no locks: no '
        'second process may work on it'
    )


def _version(package: str) -> str:
  try:
    return importlib.metadata.version(package)
  except importlib.metadata.PackageNotFoundError:
    return 'unknown'
