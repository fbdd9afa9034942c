"""CIFAR-100 dealt to clients by Pachinko allocation, as TFF's baseline task.

Images are cropped to their middle 24x24 pixels and standardized one by one; the
network is `resnet.py`'s. The loss of an example is

    f(x; z) = cross-entropy + 1e-4 |x'|^2

with x' the kernels and the last bias, in training and in evaluation, as TFF's
model has it; the model `resnet18_unpenalized` leaves the second term out.

Source: `tff.simulation.baselines.cifar100`. Departures: the output is
log-probabilities (minus the penalty, see `functional_models.penalized_loss`)
where TFF's model ends with a softmax; the loss is the same number. Clients hold
bytes that the model standardizes, a quarter of the memory. The random crops and
flips that TFF offers for training are not there: by default it makes none.
"""

from collections.abc import Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import databases
from baselines.tasks import functional_models
from baselines.tasks import resnet
from baselines.tasks import task
from baselines.tasks import tff_sources

NUM_CLASSES = 100
PENALTY = 1e-4

_STORED_SHAPE = (32, 32, 3)
_IMAGE_SHAPE = (24, 24, 3)
_PENALTIES = {'resnet18': PENALTY, 'resnet18_unpenalized': 0.0}


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  train, test = tff_sources.load_splits(
      databases.CIFAR100,
      config,
      load_data=tff.simulation.datasets.cifar100.load_data,
      make_synthetic=_synthetic_clients,
      read_split=read_split,
  )
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=functools.partial(build_resnet, _PENALTIES[config.model]),
      train=train,
      test=test,
      example_loss_fn=functional_models.penalized_loss,
      example_accuracy_fn=functional_models.classification_accuracy,
      convolutional=True,
  )


def build_resnet(
    penalty: float, seed: int, dtype: str
) -> tff.learning.models.FunctionalModel:
  """Builds the network.

  Args:
    penalty: Factor of the sum of squares.
    seed: Seed of the initial weights.
    dtype: Their dtype.

  Returns:
    A model from images [B, 24, 24, 3] uint8 to [B, 100], log-probabilities
    minus the penalty; labels are int32 [B].
  """
  return functional_models.build_functional_model(
      apply_fn=functools.partial(_apply_resnet, penalty),
      weight_spec=resnet.weight_spec(NUM_CLASSES),
      example_loss_fn=functional_models.penalized_loss,
      input_spec=(
          tf.TensorSpec((None, *_IMAGE_SHAPE), tf.uint8),
          tf.TensorSpec((None,), tf.int32),
      ),
      seed=seed,
      dtype=dtype,
  )


def _apply_resnet(
    penalty: float, weights: Sequence[tf.Tensor], x: tf.Tensor
) -> tf.Tensor:
  weights = [tf.convert_to_tensor(w) for w in weights]
  x = resnet.standardize(x, weights[0].dtype)
  output = tf.nn.log_softmax(resnet.logits(weights, x))
  if penalty:
    output -= penalty * resnet.sum_of_squares(weights)
  return output


def read_split(path: str, split: str) -> clients.ClientArrays:
  """Reads a split of TFF's CIFAR-100 database.

  Args:
    path: The database.
    split: Name of the split.

  Returns:
    The clients; x uint8 [N, 24, 24, 3], y int32 [N].

  Raises:
    ValueError: If the database is damaged.
  """
  return tff_sources.read_images(
      path,
      split,
      image=('image', tf.io.FixedLenFeature(_STORED_SHAPE, tf.int64)),
      shape=_IMAGE_SHAPE,
      dtype=np.uint8,
      convert=_crop,
  )


def _crop(images: np.ndarray) -> np.ndarray:
  """Returns the middle 24x24 pixels."""
  margin = (_STORED_SHAPE[0] - _IMAGE_SHAPE[0]) // 2
  return images[:, margin:-margin, margin:-margin]


def _synthetic_clients() -> clients.ClientArrays:
  """Returns TFF's two synthetic clients of five images each."""
  client_data = tff.simulation.datasets.cifar100.get_synthetic()
  arrays = []
  for client_id in client_data.client_ids:
    dataset = client_data.create_tf_dataset_for_client(client_id)
    examples = list(dataset.as_numpy_iterator())
    images = _crop(np.stack([e['image'] for e in examples]))
    labels = np.array([e['label'] for e in examples], np.int32)
    arrays.append((images, labels))
  return clients.from_clients(client_data.client_ids, arrays)
