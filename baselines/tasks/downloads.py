"""TFF's downloads, so that parallel or interrupted runs do no harm.

TFF writes a download under its final name and takes any file of that name for
whole; here a file gets its name when it has arrived and passed the check.
"""

from collections.abc import Callable, Iterator
import contextlib
import errno
import fcntl
import http.client
import lzma
import os
import shutil
import socket
import sqlite3
import tempfile
from typing import Any, Optional
import urllib.request

from baselines.tasks import databases
from baselines.tasks import vocabularies

_TIMEOUT_SECONDS = 60.0


def download_dir(data_dir: Optional[str]) -> str:
  """Returns the folder that a download goes to: TFF's own by default."""
  return data_dir or os.path.join(os.path.expanduser('~'), '.tff')


def check_download(
    spec: databases.DatabaseSpec, data_dir: Optional[str]
) -> Optional[int]:
  """Checks what `data_source=download` would find.

  Returns the number of training clients, None if the file is not there yet.

  Raises:
    ValueError: If the file is there and cannot be used.
  """
  path = os.path.join(download_dir(data_dir), spec.file_name)
  return databases.check_database(path, spec) if os.path.isfile(path) else None


def ensure_downloaded(
    spec: databases.DatabaseSpec,
    data_dir: Optional[str],
    load_data: Callable[..., Any],
) -> str:
  """Returns the database's path; fetches it with TFF's loader if need be.

  The file arrives in a folder of its own and is moved when it is whole, so an
  interrupted download leaves nothing that looks ready; runs that start
  together wait for the one that fetches. TFF shows the progress.

  `load_data` is that of a module of `tff.simulation.datasets`.

  Raises:
    OSError: If it cannot be fetched or written.
    ValueError: If the file that is there or arrives is damaged.
  """


  def fetch(part: str) -> None:
    with _readable_errors(spec.file_name, part):
      load_data(cache_dir=part)
    databases.check_database(os.path.join(part, spec.file_name), spec)

  path = _ensure(download_dir(data_dir), spec.file_name, fetch)
  databases.check_database(path, spec)
  return path


def ensure_counts(
    file: vocabularies.CountFile, data_dir: Optional[str]
) -> None:
  """Fetches the archive of counts unless they are there; see `vocabularies`.

  Raises:
    OSError: If it cannot be fetched or written.
    ValueError: If what arrives does not have TFF's digest.
  """
  folder = download_dir(data_dir)

  def fetch(part: str) -> None:
    path = os.path.join(part, file.archive_name)
    with _readable_errors(file.archive_name, part):
      with urllib.request.urlopen(file.origin) as source:
        with open(path, 'wb') as target:
          shutil.copyfileobj(source, target)
    vocabularies.check_archive(file, path)

  if not vocabularies.is_present(folder, file):
    _ensure(vocabularies.archive_folder(folder), file.archive_name, fetch)


def _ensure(folder: str, name: str, fetch: Callable[[str], None]) -> str:
  """Returns the file's path, after a fetch into a folder if it is not there."""
  path = os.path.join(folder, name)
  if not os.path.isfile(path):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f'.{name}.lock'), 'w') as lock:
      fcntl.flock(lock, fcntl.LOCK_EX)
      if not os.path.isfile(path):
        with tempfile.TemporaryDirectory(prefix='.part-', dir=folder) as part:
          fetch(part)
          os.replace(os.path.join(part, name), path)
  return path


@contextlib.contextmanager
def _readable_errors(name: str, folder: str) -> Iterator[None]:
  """Sets a time limit; errors say which file it was and what to do."""
  timeout = socket.getdefaulttimeout()
  # TFF sets none: a dead connection would hang for ever.
  socket.setdefaulttimeout(_TIMEOUT_SECONDS)
  try:
    yield
  except (sqlite3.Error, lzma.LZMAError, EOFError) as e:
    raise ValueError(
        f'{name} did not arrive whole ({e}); start again.'
    ) from e
  except (OSError, http.client.HTTPException) as e:
    if getattr(e, 'errno', None) == errno.ENOSPC:
      raise OSError(
          f'{name} does not fit on the disk of {folder!r}; make room'
          ' or choose another data_dir.'
      ) from e
    raise OSError(
        f'{name} could not be downloaded ({e}); without a network'
        " use data_source='cache' with a prepared data_dir, or another source"
        ' that reads no files.'
    ) from e
  finally:
    socket.setdefaulttimeout(timeout)
