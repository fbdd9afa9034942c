"""EMNIST character recognition by writer, as TFF's baseline task.

Model: the convolutional network of McMahan et al., AISTATS 2017
(https://arxiv.org/abs/1602.05629), TFF's model id `cnn`: two 5x5 convolutions
(32, 64) with 2x2 pools, a dense layer of 512, logits. 1,663,370 parameters for
the 10 digits, 1,690,046 for 62 classes. Pixels as TFF has them: 1.0 is paper,
0.0 is ink.

Source: `tff.simulation.baselines.emnist`. Departure: outputs logits where
TFF's model ends with a softmax; the loss is the same number.
"""

from collections.abc import Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import models
from baselines.tasks import registry
from baselines.tasks import task
from baselines.tasks import tff_sources

_IMAGE_SHAPE = (28, 28, 1)


def build(config: Any) -> task.Task:
  """Builds `emnist_digits` (10 classes) or `femnist` (62).

  See `registry.build_task`.
  """
  train, test = tff_sources.load_images(
      registry.task_entry(config.task).database,
      config,
      tff.simulation.datasets.emnist,
      image=('pixels', tf.io.FixedLenFeature(_IMAGE_SHAPE, tf.float32)),
      shape=_IMAGE_SHAPE,
      dtype=np.float32,
  )
  num_classes = 10 if config.task == 'emnist_digits' else 62
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=functools.partial(build_cnn, num_classes),
      train=train,
      test=test,
      example_loss_fn=models.classification_loss,
      example_accuracy_fn=models.classification_accuracy,
      convolutional=True,
  )


def build_cnn(
    num_classes: int, seed: int, dtype: str
) -> tff.learning.models.FunctionalModel:
  """Builds the network; see `task.ModelBuilder`.

  It maps images [B, 28, 28, 1] float32 to logits [B, C]; labels are int32 [B].
  """
  return models.build_functional_model(
      apply_fn=_apply_cnn,
      weight_spec=(
          *models.layer_spec('conv1', (5, 5, 1, 32)),
          *models.layer_spec('conv2', (5, 5, 32, 64)),
          *models.layer_spec('dense1', (7 * 7 * 64, 512)),
          *models.layer_spec('dense2', (512, num_classes)),
      ),
      example_loss_fn=models.classification_loss,
      input_spec=models.labelled_spec(_IMAGE_SHAPE, tf.float32),
      seed=seed,
      dtype=dtype,
  )


def _apply_cnn(weights: Sequence[tf.Tensor], x: tf.Tensor) -> tf.Tensor:
  x = models.convolve(weights[0:4], x)
  x = tf.nn.relu(models.dense(weights[4:6], x))
  return models.dense(weights[6:8], x)
