"""Stack Overflow's users as lazy clients, and its vocabularies.

The original has 342,477 training users with 135,818,730 sentences, so users are
read from the database when they are drawn. What is evaluated, `Task.train` and
`Task.test`, are the first 100 users of either split in a fixed random order.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import functools
import itertools
import os
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import databases
from baselines.tasks import downloads
from baselines.tasks import registry
from baselines.tasks import tff_sources
from baselines.tasks import vocabularies

EVALUATED_CLIENTS = 100
NUM_WORDS = 10_000
NUM_TAGS = 500


class Sentences(NamedTuple):
  """Sentences of one or several users, as stored.

  The words of each, separated by spaces; the title of the question that it
  belongs to; and the question's tags, separated by |.
  """

  tokens: Sequence[bytes]
  titles: Sequence[bytes]
  tags: Sequence[bytes]


# From n sentences to (x, y) with n rows.
EncodeFn = Callable[[Sentences], clients.Examples]


class Vocabularies(NamedTuple):
  """What sentences are encoded by; see `Task.digests`.

  Up to 10,000 words and 500 tags, the most frequent first; no tags, None, if
  the task needs none.
  """

  words: Sequence[str]
  tags: Optional[Sequence[str]]
  digests: Mapping[str, str]


class Splits(NamedTuple):
  """All training clients, and what is evaluated."""

  lazy: clients.LazyClients
  train: clients.ClientArrays
  test: clients.ClientArrays


def fetch(config: Any) -> None:
  """Fetches what is to be downloaded and is not there; see `downloads`."""
  if config.data_source != 'download':
    return
  for file in registry.task_entry(config.task).count_files:
    downloads.ensure_counts(file, config.data_dir)
  downloads.ensure_downloaded(
      databases.STACKOVERFLOW,
      config.data_dir,
      tff.simulation.datasets.stackoverflow.load_data,
  )


def load_vocabularies(config: Any) -> Vocabularies:
  """Reads or counts the vocabularies that the task needs, after `fetch`.

  Counting takes a pass over all training sentences for each, which is an hour
  or more for the original data.

  Raises:
    ValueError: If a file cannot be read.
  """
  needs_tags = (
      vocabularies.TAG_COUNTS in registry.task_entry(config.task).count_files
  )
  if config.data_source == 'synthetic':
    words = tff.simulation.datasets.stackoverflow.get_synthetic_word_counts()
    tags = tff.simulation.datasets.stackoverflow.get_synthetic_tag_counts()
    return Vocabularies(tuple(words), tuple(tags) if needs_tags else None, {})
  if config.data_source == 'cache_counted':
    read = functools.partial(count, _path(config))
  else:
    read = functools.partial(
        vocabularies.load, downloads.download_dir(config.data_dir)
    )
  words, tags = read(vocabularies.WORD_COUNTS, NUM_WORDS), None
  digests = {vocabularies.WORD_COUNTS.name: words.digest}
  if needs_tags:
    tags = read(vocabularies.TAG_COUNTS, NUM_TAGS)
    digests[vocabularies.TAG_COUNTS.name] = tags.digest
  return Vocabularies(words.entries, tags and tags.entries, digests)


def count(
    path: str, file: vocabularies.CountFile, size: int
) -> vocabularies.Vocabulary:
  """Returns the `size` words or tags that most training users have.

  Raises:
    ValueError: If the database is damaged.
  """
  field, separator = (
      ('tags', b'|') if file == vocabularies.TAG_COUNTS else ('tokens', b' ')
  )
  split = databases.STACKOVERFLOW.train_split
  texts = _texts(path, split, field)
  _, sizes = databases.client_counts(path, split)
  return vocabularies.count(
      (_distinct(itertools.islice(texts, size), separator) for size in sizes),
      size,
  )


def _texts(path: str, split: str, field: str) -> Iterator[bytes]:
  for protos in databases.examples(path, split):
    yield from getattr(_parse(protos), field)


def _distinct(texts: Iterable[bytes], separator: bytes) -> set[str]:
  entries = {entry for text in texts for entry in text.split(separator)}
  return {entry.decode() for entry in entries if entry}


def open_splits(config: Any, encode_fn: EncodeFn) -> Splits:
  """Opens the database, after `fetch`, and reads what is evaluated.

  The clients come in the order of TFF.

  Raises:
    ValueError: If the database is damaged.
  """
  if config.data_source == 'synthetic':
    train = test = _synthetic_clients(encode_fn)
  else:
    spec = databases.STACKOVERFLOW
    train, test = (
        open_split(_path(config), split, encode_fn)
        for split in (spec.train_split, spec.test_split)
    )
  return Splits(
      train, train.sample(EVALUATED_CLIENTS), test.sample(EVALUATED_CLIENTS)
  )


def open_split(
    path: str, split: str, encode_fn: EncodeFn
) -> clients.LazyClients:
  """Opens a split of the database at `path`; reads no sentence.

  Raises:
    ValueError: If the database is damaged.
  """

  def read(client_ids):
    protos = databases.client_examples(path, split, client_ids)
    # All at once: a call of TensorFlow costs more than a sentence does.
    x, y = encode_fn(_parse([p for client in protos for p in client]))
    ends = np.cumsum([len(client) for client in protos])[:-1]
    return list(zip(np.split(x, ends), np.split(y, ends)))

  return clients.LazyClients(*databases.stated_counts(path, split), read)


def _synthetic_clients(encode_fn: EncodeFn) -> clients.LazyClients:
  """Returns TFF's three synthetic clients."""
  client_data = tff.simulation.datasets.stackoverflow.get_synthetic()

  def read(client_ids):
    return [encode_fn(_synthetic(client_data, name)) for name in client_ids]

  client_ids = client_data.client_ids
  sizes = [len(_synthetic(client_data, name).tokens) for name in client_ids]
  return clients.LazyClients(client_ids, sizes, read)


def _synthetic(client_data: Any, client_id: str) -> Sentences:
  examples = tff_sources.client_examples(client_data, client_id)
  return Sentences(
      *([e[name] for e in examples] for name in ('tokens', 'title', 'tags'))
  )


def _parse(protos: Sequence[bytes]) -> Sentences:
  """Parses serialized `tf.train.Example`s."""
  names = ('tokens', 'title', 'tags')
  parsed = tf.io.parse_example(
      tf.constant(protos, tf.string),
      {name: tf.io.FixedLenFeature((), tf.string) for name in names},
  )
  return Sentences(*(parsed[name].numpy() for name in names))


def _path(config: Any) -> str:
  return os.path.join(
      downloads.download_dir(config.data_dir),
      databases.STACKOVERFLOW.file_name,
  )
