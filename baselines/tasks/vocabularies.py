"""Stack Overflow's word and tag counts: TFF's files, read without TFF.

TFF's own loaders delete an archive whose digest they do not expect, so they are
never called. Each of the two files is looked for in the data folder and in its
subfolder `datasets`, where TFF's loaders put them:

- NAME.tar.bz2, the archive as TFF publishes it: it must have TFF's digest.
- NAME, the plain file: taken as it is, whatever it holds, so own counts can be
  used; its digest is kept with the task. It comes before the archive.
"""

import collections
from collections.abc import Iterable, Iterator
import dataclasses
import hashlib
import json
import os
import tarfile
from typing import BinaryIO, NamedTuple, Optional

_ORIGIN = 'https://storage.googleapis.com/tff-datasets-public/'
_SUBFOLDER = 'datasets'
_SUFFIX = '.tar.bz2'
_CHUNK = 2**20


@dataclasses.dataclass(frozen=True)
class CountFile:
  """A file of TFF that says how many users have each word or tag."""

  name: str
  archive_sha256: str

  @property
  def archive_name(self) -> str:
    return self.name + _SUFFIX

  @property
  def origin(self) -> str:
    """Where TFF gets the archive from."""
    return _ORIGIN + self.archive_name


class Vocabulary(NamedTuple):
  """Words or tags, the most frequent first.

  `digest` is SHA-256 of the file read, or of the entries if they were counted.
  """

  entries: tuple[str, ...]
  digest: str


# A word and its count in each line, in falling order.
WORD_COUNTS = CountFile(
    'stackoverflow.word_count',
    '1dc00256d6e527c54b9756d968118378ae14e6692c0b3b6cad470cdd3f0c519c',
)
# JSON, in no order.
TAG_COUNTS = CountFile(
    'stackoverflow.tag_count',
    '6fe281cec490d9384a290d560072438e7e2b377bbb823876ce7bd6f82696772d',
)


def check(data_dir: str, file: CountFile, required: bool = True) -> None:
  """Checks that the counts can be read, if they are there.

  Raises:
    FileNotFoundError: If they are required and not there.
    ValueError: If there is an archive with another digest than TFF's.
  """
  archive = _find(data_dir, file.archive_name)
  if archive is not None:
    check_archive(file, archive)
  elif required and _find(data_dir, file.name) is None:
    raise FileNotFoundError(
        f'data_dir {data_dir!r} holds neither {file.name} nor'
        f' {file.archive_name}, nor does its folder {_SUBFOLDER!r}; put one of'
        " them there, or use data_source='cache_counted', which counts the"
        " training examples, or data_source='download'."
    )


def check_archive(file: CountFile, path: str) -> None:
  """Raises ValueError if the archive is not the one that TFF publishes."""
  with open(path, 'rb') as stream:
    found = _digest(stream)
  if found != file.archive_sha256:
    raise ValueError(
        f"{path} is not TFF's archive: expected SHA-256 {file.archive_sha256},"
        f' found {found}; put the right one there, or your own counts as a'
        f' plain file {file.name}.'
    )


def load(data_dir: str, file: CountFile, size: int) -> Vocabulary:
  """Reads the `size` most frequent words or tags, or all if there are fewer.

  They are those of `tff.simulation.baselines.stackoverflow`.

  Raises:
    FileNotFoundError: See `check`.
    ValueError: See `check`, or if a file is not of its format.
  """
  check(data_dir, file)
  plain = _find(data_dir, file.name)
  if plain is not None:
    with open(plain, 'rb') as stream:
      entries = _parse(file, stream, plain, size)
      stream.seek(0)
      return Vocabulary(entries, _digest(stream))
  archive = _find(data_dir, file.archive_name)
  with tarfile.open(archive) as members:
    stream = members.extractfile(file.name)
    return Vocabulary(
        _parse(file, stream, archive, size), file.archive_sha256
    )


def count(owned: Iterable[Iterable[str]], size: int) -> Vocabulary:
  """Takes the `size` words or tags that most users have.

  `owned` are the distinct ones of each user; ties come in alphabetical order.
  """
  counts = collections.Counter()
  for entries in owned:
    counts.update(entries)
  ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
  entries = tuple(entry for entry, _ in ranked[:size])
  return Vocabulary(
      entries, hashlib.sha256('\n'.join(entries).encode()).hexdigest()
  )


def archive_folder(data_dir: str) -> str:
  """Returns the folder that downloaded archives are put into."""
  return os.path.join(data_dir, _SUBFOLDER)


def is_present(data_dir: str, file: CountFile) -> bool:
  """Returns whether the plain file or the archive is there."""
  names = (file.name, file.archive_name)
  return any(_find(data_dir, name) is not None for name in names)


def _find(data_dir: str, name: str) -> Optional[str]:
  for folder in (data_dir, os.path.join(data_dir, _SUBFOLDER)):
    path = os.path.join(folder, name)
    if os.path.isfile(path):
      return path
  return None


def _digest(stream: BinaryIO) -> str:
  digest = hashlib.sha256()
  while chunk := stream.read(_CHUNK):
    digest.update(chunk)
  return digest.hexdigest()


def _parse(
    file: CountFile, stream: BinaryIO, path: str, size: int
) -> tuple[str, ...]:
  """Returns the first `size` entries."""
  try:
    entries = _tags(stream) if file == TAG_COUNTS else _words(stream, size)
  except (ValueError, AttributeError, TypeError) as e:
    raise ValueError(
        f'{path} does not hold counts as {file.name} of TFF does ({e}).'
    ) from e
  if not entries:
    raise ValueError(f'{path} holds no counts.')
  return entries[:size]


def _words(stream: Iterator[bytes], size: int) -> tuple[str, ...]:
  """Reads lines `word count` until there are `size` words."""
  words, last = {}, float('inf')
  for line in stream:
    word, number = line.decode().split()
    if int(number) > last:  # The first ones would not be the most frequent.
      raise ValueError(f'counts must fall, found {last} before {number}')
    last = words[word] = int(number)
    if len(words) >= size:
      break
  return tuple(words)


def _tags(stream: BinaryIO) -> tuple[str, ...]:
  """Reads a JSON object; the order of ties is that of the file."""
  counts = json.load(stream)
  return tuple(sorted(counts, key=lambda tag: -counts[tag]))
