"""Train and test clients from TFF's files, or from its synthetic ones."""

from collections.abc import Callable, Mapping, Sequence
import functools
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
    config: Has the attributes `data_source` and `data_dir`.
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


def load_images(
    spec: databases.DatabaseSpec,
    config: Any,
    dataset: Any,
    *,
    image: tuple[str, tf.io.FixedLenFeature],
    shape: tuple[int, ...],
    dtype: np.dtype,
    convert: Callable[[np.ndarray], np.ndarray] = lambda images: images,
) -> tuple[Split, Split]:
  """Returns both splits of images with labels; see `load_splits`.

  Args:
    spec: As for `load_splits`.
    config: As for `load_splits`.
    dataset: TFF's module, such as `tff.simulation.datasets.emnist`.
    image: Name and kind of the image among the features.
    shape: Of an image as it is kept.
    dtype: Of the images that are kept.
    convert: Maps images as stored, [n, ...], to [n, *shape].

  Returns:
    The training and the test clients; x [N, *shape], y int32 [N].
  """

  def make_synthetic():
    client_data = dataset.get_synthetic()
    arrays = []
    for client_id in client_data.client_ids:
      examples = client_examples(client_data, client_id)
      images = convert(np.stack([e[image[0]] for e in examples]))
      labels = np.array([e['label'] for e in examples], np.int32)
      arrays.append((images.reshape([-1, *shape]).astype(dtype), labels))
    return clients.from_clients(client_data.client_ids, arrays)

  return load_splits(
      spec,
      config,
      load_data=dataset.load_data,
      make_synthetic=make_synthetic,
      read_split=functools.partial(
          _read_images, image=image, shape=shape, dtype=dtype, convert=convert
      ),
  )


def client_examples(
    client_data: Any, client_id: str
) -> Sequence[Mapping[str, Any]]:
  """Returns a client's examples as TFF's client data have them, as arrays."""
  dataset = client_data.create_tf_dataset_for_client(client_id)
  return list(dataset.as_numpy_iterator())


def _read_images(path, split, *, image, shape, dtype, convert) -> Split:
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
