"""TFF types of client data."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.local_update import client_work

INPUT_SPEC = (
    collections.OrderedDict(
        image=tf.TensorSpec([None, 28, 28], tf.float32),
        mask=tf.TensorSpec([None], tf.bool),
    ),
    tf.TensorSpec([None, 1], tf.int64),
)


def test_batches_type_has_steps_and_rows_in_front():
  found = client_work.batches_type(INPUT_SPEC, num_steps=3, batch_size=2)
  expected = tff.to_type(
      client_work.ClientBatches(
          batches=(
              collections.OrderedDict(
                  image=tff.TensorType(np.float32, [3, 2, 28, 28]),
                  mask=tff.TensorType(np.bool_, [3, 2]),
              ),
              tff.TensorType(np.int64, [3, 2, 1]),
          ),
          num_examples=tff.TensorType(np.int32),
      )
  )
  assert found == expected
  assert found.python_container is client_work.ClientBatches


@pytest.mark.parametrize('num_padded', [None, 16])
def test_batches_and_examples_type_has_the_examples(num_padded):
  found = client_work.batches_and_examples_type(INPUT_SPEC, 3, 2, num_padded)
  assert found.python_container is client_work.ClientBatchesAndExamples
  assert tuple(found.batches[1].shape) == (3, 2, 1)
  assert tuple(found.examples[1].shape) == (num_padded, 1)
  assert tuple(found.examples[0].image.shape) == (num_padded, 28, 28)


def test_epochs_type_has_sizes():
  found = client_work.epochs_type(INPUT_SPEC, num_padded_steps=7, batch_size=2)
  assert found.python_container is client_work.ClientEpochs
  assert tuple(found.batches[0].image.shape) == (7, 2, 28, 28)
  assert found.batch_sizes == tff.TensorType(np.int32, [7])
  assert found.num_examples == tff.TensorType(np.int32)
  with pytest.raises(ValueError, match='num_padded_steps must .* found 0'):
    client_work.epochs_type(INPUT_SPEC, 0, 2)
  closed = (tf.TensorSpec([2, 3]), tf.TensorSpec([2]))
  with pytest.raises(ValueError, match='model must leave .* open, .* found 2'):
    client_work.epochs_type(closed, 7, 2)


def test_sequence_type_is_that_of_the_input_spec():
  found = client_work.sequence_type(INPUT_SPEC)
  assert isinstance(found, tff.SequenceType)
  assert tuple(found.element[0].image.shape) == (None, 28, 28)


@pytest.mark.parametrize('batch_size', [0, -1, 2.0, None])
def test_batch_size_is_checked(batch_size):
  with pytest.raises(ValueError, match=f'batch_size must .* {batch_size}'):
    client_work.batches_type(INPUT_SPEC, 3, batch_size)


def test_batch_size_must_be_that_of_the_model():
  spec = (tf.TensorSpec([20, 3]), tf.TensorSpec([20]))
  client_work.batches_type(spec, 3, 20)
  with pytest.raises(ValueError, match='batch_size must .* 20, found 10'):
    client_work.batches_type(spec, 3, 10)


def test_num_padded_examples_is_checked():
  with pytest.raises(ValueError, match='num_padded_examples must .* found 0'):
    client_work.batches_and_examples_type(INPUT_SPEC, 3, 2, 0)
