"""The TFF types of the data of one client."""

from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.local_update import client_work


def batches_type(
    input_spec: Any, num_steps: int, batch_size: int
) -> tff.StructType:
  """Returns the type of a `client_work.ClientBatches`.

  Args:
    input_spec: The input spec of the model, leaves [B or None, ...].
    num_steps: K.
    batch_size: B.

  Returns:
    The type; the leaves of its batches are [K, B, ...].

  Raises:
    ValueError: If `batch_size` is not a positive whole number, or is not that
      of `input_spec`.
  """
  arguments.check_count('batch_size', batch_size)
  for spec in tf.nest.flatten(input_spec):
    if spec.shape[0] not in (None, batch_size):
      raise ValueError(
          f'batch_size must be that of model.input_spec, {spec.shape[0]}, '
          f'found {batch_size}.'
      )
  return tff.to_type(
      client_work.ClientBatches(
          batches=_with_rows(input_spec, [num_steps, batch_size]),
          num_examples=tff.TensorType(np.int32),
      )
  )


def batches_and_examples_type(
    input_spec: Any,
    num_steps: int,
    batch_size: int,
    num_padded_examples: Optional[int],
) -> tff.StructType:
  """Returns the type of a `client_work.ClientBatchesAndExamples`.

  Args:
    input_spec: The input spec of the model.
    num_steps: K.
    batch_size: B.
    num_padded_examples: N, the rows of the examples; None leaves it open.

  Returns:
    The type.

  Raises:
    ValueError: If a size is not a positive whole number, or `batch_size` is not
      that of `input_spec`.
  """
  if num_padded_examples is not None:
    arguments.check_count('num_padded_examples', num_padded_examples)
  batches = batches_type(input_spec, num_steps, batch_size)
  return tff.to_type(
      client_work.ClientBatchesAndExamples(
          batches=batches.batches,
          num_examples=batches.num_examples,
          examples=_with_rows(input_spec, [num_padded_examples]),
      )
  )


def epochs_type(
    input_spec: Any, num_padded_steps: int, batch_size: int
) -> tff.StructType:
  """Returns the type of a `client_work.ClientEpochs`.

  Args:
    input_spec: The input spec of the model, of leaves [None, ...].
    num_padded_steps: K_max.
    batch_size: B.

  Returns:
    The type.

  Raises:
    ValueError: If a size is not a positive whole number, or `input_spec` does
      not leave the number of rows open.
  """
  arguments.check_count('num_padded_steps', num_padded_steps)
  for spec in tf.nest.flatten(input_spec):
    if spec.shape[0] is not None:
      raise ValueError(
          'model must leave the number of rows of a batch open, since the last '
          f'batch of an epoch may be short, found {spec.shape[0]} in its '
          'input_spec.'
      )
  batches = batches_type(input_spec, num_padded_steps, batch_size)
  return tff.to_type(
      client_work.ClientEpochs(
          batches=batches.batches,
          batch_sizes=tff.TensorType(np.int32, [num_padded_steps]),
          num_examples=batches.num_examples,
      )
  )


def sequence_type(input_spec: Any) -> tff.SequenceType:
  """Returns the type of a sequence of batches."""
  return tff.SequenceType(tff.types.tensorflow_to_type(input_spec))


def _with_rows(input_spec: Any, rows: list[Optional[int]]) -> Any:
  """Returns the structure of types with `rows` in place of the batch size."""
  return tf.nest.map_structure(
      lambda spec: tff.types.tensorflow_to_type(
          tf.TensorSpec(rows + spec.shape[1:].as_list(), spec.dtype)
      ),
      input_spec,
  )
