"""The weights of a functional model: checked, and put into a state."""

from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments


def checked_weights(
    model: tff.learning.models.FunctionalModel, dtype: Optional[str] = None
) -> tuple[tff.learning.models.ModelWeights, str]:
  """Returns the model's weights as arrays, and the dtype of the trainable.

  Args:
    model: The model.
    dtype: `float32` or `float64`, which the trainable weights must have; None
      takes theirs.

  Raises:
    ValueError: If they are of several dtypes, or of another one.
  """
  trainable, non_trainable = tf.nest.map_structure(
      np.asarray, model.initial_weights
  )
  found = sorted({leaf.dtype.name for leaf in tf.nest.flatten(trainable)})
  allowed = [arguments.checked_dtype(dtype)] if dtype else list(
      arguments.FLOAT_DTYPES
  )
  if len(found) != 1 or found[0] not in allowed:
    raise ValueError(
        f'model must have trainable weights of dtype {" or ".join(allowed)}, '
        f'all of one, found {", ".join(found) or "no weights"}.'
    )
  return tff.learning.models.ModelWeights(trainable, non_trainable), found[0]


def replace_weights(
    state: Any, model_weights: tff.learning.models.ModelWeights
) -> Any:
  """Returns `state` with other weights, of the same shapes and dtypes.

  Args:
    state: A NamedTuple with a field `model_weights`.
    model_weights: The new weights.

  Raises:
    ValueError: If number, shape or dtype of the weights differ.
  """
  old = [tf.convert_to_tensor(w) for w in tf.nest.flatten(state.model_weights)]
  new = [tf.convert_to_tensor(w) for w in tf.nest.flatten(model_weights)]
  old_specs = [(w.dtype.name, tuple(w.shape)) for w in old]
  new_specs = [(w.dtype.name, tuple(w.shape)) for w in new]
  if old_specs != new_specs:
    raise ValueError(
        'model_weights must have the dtypes and shapes of the old ones, '
        f'{old_specs}, found {new_specs}.'
    )
  return state._replace(
      model_weights=tf.nest.pack_sequence_as(state.model_weights, new)
  )
