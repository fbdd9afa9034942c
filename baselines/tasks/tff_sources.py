"""Train and test clients from TFF's files, or from its synthetic ones."""

from collections.abc import Callable
import os
from typing import Any

import numpy as np
import tensorflow as tf

from baselines.tasks import clients
from baselines.tasks import databases
from baselines.tasks import downloads

Split = clients.ClientArrays


def load_splits(
    spec: databases.DatabaseSpec,
    config: Any,
    *,
    load_data: Callable[..., Any],
    make_synthetic: Callable[[], Split],
    read_split: Callable[[str, str], Split],
) -> tuple[Split, Split]:
  """Returns the training and the test clients.

  Args:
    spec: TFF's database.
    config: Has the attributes `data_source` (`synthetic`, `cache` or
      `download`) and `data_dir`, the folder of the database.
    load_data: TFF's function that downloads it.
    make_synthetic: Returns TFF's synthetic clients, which are both splits.
    read_split: Maps (path, split) to the clients of a split.

  Raises:
    FileNotFoundError: If the database is not there.
    ValueError: If it is damaged.
  """
  if config.data_source == 'synthetic':
    synthetic = make_synthetic()
    return synthetic, synthetic
  if config.data_source == 'download':
    path = downloads.ensure_downloaded(spec, config.data_dir, load_data)
  else:
    path = os.path.join(config.data_dir, spec.file_name)
  return read_split(path, spec.train_split), read_split(path, spec.test_split)


def read_images(
    path: str,
    split: str,
    *,
    image: tuple[str, tf.io.FixedLenFeature],
    shape: tuple[int, ...],
    dtype: np.dtype,
    convert: Callable[[np.ndarray], np.ndarray] = lambda images: images,
) -> Split:
  """Returns the clients of a split whose examples are images with labels.

  Args:
    path: The database.
    split: Name of the split.
    image: Name and kind of the image among the features.
    shape: Of an image as it is kept.
    dtype: Of the images that are kept.
    convert: Maps images as stored, [n, ...], to [n, *shape].

  Returns:
    The clients; x [N, *shape], y int32 [N].

  Raises:
    ValueError: If the database is damaged.
  """
  client_ids, counts = databases.client_counts(path, split)
  offsets = np.cumsum([0] + counts, dtype=np.int64)
  images = np.empty((offsets[-1], *shape), dtype)
  labels = np.empty(offsets[-1], np.int32)
  name, kind = image
  features = {name: kind, 'label': tf.io.FixedLenFeature((), tf.int64)}
  row = 0
  for protos in databases.examples(path, split):
    parsed = tf.io.parse_example(protos, features)
    rows = slice(row, row + len(protos))
    images[rows] = convert(parsed[name].numpy())
    labels[rows] = parsed['label'].numpy()
    row += len(protos)
  return clients.ClientArrays(client_ids, (images, labels), offsets)
