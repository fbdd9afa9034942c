"""TFF's SQLite databases: checks before TensorFlow, and bulk reading.

`tff.simulation.datasets` opens one `tf.data` pipeline per client, a second for
a few hundred examples; here a split is one query, in the order in which TFF's
client data have it (clients by name, a client's examples as stored). What reads
raises ValueError, naming the file, if the database cannot be read.
"""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import os
import sqlite3
from typing import Optional
import urllib.parse

_HEADER_BYTES = 100
_MAGIC = b'SQLite format 3\x00'
_CHUNK = 4096


@dataclasses.dataclass(frozen=True)
class DatabaseSpec:
  """A database in TFF's cache folder, and the two splits that a task uses."""

  file_name: str
  train_split: str
  test_split: str


EMNIST_DIGITS = DatabaseSpec(
    'emnist_all.sqlite', 'digits_only_train', 'digits_only_test'
)
EMNIST_ALL = DatabaseSpec('emnist_all.sqlite', 'all_train', 'all_test')
CIFAR100 = DatabaseSpec('cifar100.sqlite', 'train', 'test')
SHAKESPEARE = DatabaseSpec('shakespeare.sqlite', 'train', 'test')
STACKOVERFLOW = DatabaseSpec('stackoverflow.sqlite', 'train', 'test')


def check_cache(spec: DatabaseSpec, data_dir: Optional[str]) -> int:
  """Checks a prepared folder for the sources `cache` and `cache_counted`.

  Returns the number of training clients.

  Raises:
    FileNotFoundError: If the folder or the file is not there.
    ValueError: If no folder is given or the file cannot be used.
  """
  if not data_dir:
    raise ValueError(
        f'data_dir must name the folder that holds {spec.file_name}, got'
        f' {data_dir!r}.'
    )
  if not os.path.isdir(data_dir):
    raise FileNotFoundError(
        f'data_dir {data_dir!r} is not a folder; give the folder that holds'
        f" {spec.file_name}, or use data_source='download'."
    )
  path = os.path.join(data_dir, spec.file_name)
  if not os.path.isfile(path):
    raise FileNotFoundError(
        f'{path} does not exist; put the database there, or use'
        " data_source='download'."
    )
  return check_database(path, spec)


def check_database(path: str, spec: DatabaseSpec) -> int:
  """Checks that the file is a whole database with the splits.

  Returns the number of clients of the training split.

  Raises:
    ValueError: If it is cut, not a database, or lacks tables or a split.
  """
  _check_size(path)
  with _connect(path) as connection:
    tables = {
        row[0] for row in connection.execute('SELECT name FROM sqlite_master')
    }
    missing = {'examples', 'client_metadata'} - tables
    if missing:
      raise ValueError(
          f"{path} is a database, but not one of TFF's client data: it lacks"
          f' the tables {sorted(missing)}; put {spec.file_name} of TFF there.'
      )
    counts = dict(
        connection.execute(
            'SELECT split_name, COUNT(DISTINCT client_id) FROM client_metadata'
            ' GROUP BY split_name'
        )
    )
  for split in (spec.train_split, spec.test_split):
    if not counts.get(split):
      raise ValueError(
          f'{path} has no split {split!r}, only {sorted(counts)}; put'
          f' {spec.file_name} of TFF there.'
      )
  return counts[spec.train_split]


def _check_size(path: str) -> None:
  """Compares the file's size with the one that its header states."""
  found = os.path.getsize(path)
  with open(path, 'rb') as file:
    header = file.read(_HEADER_BYTES)
  if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
    raise ValueError(
        f'{path} is not an SQLite database ({found} bytes); delete it and put'
        ' the right file there, unpacked if it is compressed.'
    )
  page_size = int.from_bytes(header[16:18], 'big')
  page_size = 65536 if page_size == 1 else page_size
  expected = page_size * int.from_bytes(header[28:32], 'big')
  # The page count holds only if the two change counters agree (file format,
  # section 1.3.8).
  if header[24:28] == header[92:96] and found < expected:
    raise ValueError(
        f'{path} is cut off: expected {expected} bytes, found {found}; delete'
        ' it, make sure that the disk has room, and copy or download it again.'
    )


@contextlib.contextmanager
def _connect(path: str) -> Iterator[sqlite3.Connection]:
  """Opens the file for reading only; errors name it."""
  uri = f'file:{urllib.parse.quote(os.path.abspath(path))}?mode=ro'
  try:
    with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
      yield connection
  except sqlite3.Error as e:
    raise ValueError(
        f'{path} ({os.path.getsize(path)} bytes) cannot be read as a database'
        f' ({e}); delete it and copy or download it again.'
    ) from e


def client_counts(path: str, split: str) -> tuple[tuple[str, ...], list[int]]:
  """Counts the examples of each client of a split.

  Returns:
    The clients' names in rising order, and their numbers of examples.

  Raises:
    ValueError: If the database cannot be read, or holds other examples than
      its table of clients says.
  """
  with _connect(path) as connection:
    counts = dict(
        connection.execute(
            'SELECT client_id, COUNT(*) FROM examples WHERE split_name = ?'
            ' GROUP BY client_id ORDER BY client_id',
            (split,),
        )
    )
    stated = _stated_counts(connection, split)
  wrong = [c for c in sorted({*counts, *stated})
           if counts.get(c, 0) != stated.get(c)]
  if wrong:
    raise ValueError(
        f'{path} is damaged: client {wrong[0]!r} of split {split!r} should'
        f' hold {stated.get(wrong[0])} examples, found'
        f' {counts.get(wrong[0], 0)}; delete it and copy or download it again.'
    )
  return tuple(counts), list(counts.values())


def stated_counts(path: str, split: str) -> tuple[tuple[str, ...], list[int]]:
  """Reads how many examples each client of a split should hold.

  In contrast to `client_counts`, which returns the same, no example is looked
  at, so it takes a second for hundreds of thousands of clients.
  """
  with _connect(path) as connection:
    counts = _stated_counts(connection, split)
  client_ids = tuple(sorted(counts))
  return client_ids, [counts[client_id] for client_id in client_ids]


def _stated_counts(
    connection: sqlite3.Connection, split: str
) -> dict[str, int]:
  return dict(
      connection.execute(
          'SELECT client_id, num_examples FROM client_metadata'
          ' WHERE split_name = ?',
          (split,),
      )
  )


def client_examples(
    path: str, split: str, client_ids: Sequence[str]
) -> list[list[bytes]]:
  """Reads each client's serialized `tf.train.Example`s, as stored.

  Opens the file anew, because a connection belongs to one thread.
  """
  with _connect(path) as connection:
    return [
        [
            row[0]
            for row in connection.execute(
                'SELECT serialized_example_proto FROM examples WHERE'
                ' split_name = ? AND client_id = ? ORDER BY rowid',
                (split, client_id),
            )
        ]
        for client_id in client_ids
    ]


def examples(path: str, split: str) -> Iterator[Sequence[bytes]]:
  """Yields a split's serialized `tf.train.Example`s in chunks.

  A chunk has up to a few thousand: clients by name, a client's as stored.
  """
  with _connect(path) as connection:
    cursor = connection.execute(
        'SELECT serialized_example_proto FROM examples WHERE split_name = ?'
        ' ORDER BY client_id, rowid',
        (split,),
    )
    while rows := cursor.fetchmany(_CHUNK):
      yield [row[0] for row in rows]
