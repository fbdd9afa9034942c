"""Where a run starts, drawn from the seed of the model."""

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


def initial_weights(
    model: tff.learning.models.FunctionalModel, initial_point: str, seed: int
) -> tff.learning.models.ModelWeights:
  """Returns x_1.

  Args:
    model: The model, made with `seed`.
    initial_point: `model` for its own weights, `zero`, or `sphere` for
      trainable weights that are together uniform on the unit sphere.
    seed: Seed of the draw on the sphere.
  """
  trainable, non_trainable = model.initial_weights
  leaves = [np.asarray(leaf) for leaf in tf.nest.flatten(trainable)]
  if initial_point == 'zero':
    leaves = [np.zeros_like(leaf) for leaf in leaves]
  elif initial_point == 'sphere':
    generator = np.random.default_rng(seed)
    vector = generator.standard_normal(sum(leaf.size for leaf in leaves))
    vector /= np.linalg.norm(vector)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    leaves = [
        part.reshape(leaf.shape).astype(leaf.dtype)
        for part, leaf in zip(np.split(vector, ends), leaves)
    ]
  return tff.learning.models.ModelWeights(
      tf.nest.pack_sequence_as(trainable, leaves), non_trainable
  )
