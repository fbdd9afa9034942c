"""TFF types of client data.

What a client sends: tensors, sequences, epochs, empty and diverged ones.
"""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.local_update import spec_examples
from tff_localupdate import models
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import inner_loop
from tff_localupdate.local_update import local_steps

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


START = np.array(spec_examples.LOGISTIC_START)
WEIGHTS = (tf.constant(START),)
GAMMA = 0.5


def losses():
  return models.build_model_losses(
      spec_examples.logistic_model('float64'),
      (),
      spec_examples.logistic_example_loss,
  )


def run(client, theta='1:2', loss='drawn'):
  client = tf.nest.map_structure(tf.constant, client)
  update_fn = functools.partial(
      inner_loop.inner_loop_and_first_loss, theta=theta_lib.parse_theta(theta)
  )
  return client_work.tensor_client_work(
      losses(), WEIGHTS, client, GAMMA, update_fn, loss
  )


def run_sequence(batches, theta='1:3'):
  spec = (
      tf.TensorSpec([None, 2], tf.float64),
      tf.TensorSpec([None], tf.float64),
  )
  dataset = tf.data.Dataset.from_generator(
      lambda: iter(batches), output_signature=spec
  )
  return client_work.sequence_client_work(
      losses(), WEIGHTS, dataset, GAMMA, theta_lib.parse_theta(theta)
  )


def transcribe(batches, weights):
  return spec_examples.transcribe_inner_loop(
      spec_examples.logistic_gradient, START, batches, GAMMA, weights
  )


def totals_of(result):
  return [int(value) for value in result.totals[1:]]


def batches_of(client, sizes):
  """Consecutive examples in batches of the given sizes."""
  ends = np.cumsum(sizes)
  return [tuple(a[e - s : e] for a in client) for s, e in zip(sizes, ends)]


def test_tensors_update_loss_and_totals():
  client = spec_examples.LOGISTIC[0]
  indices = [[0, 1, 1], [2, 2, 0]]
  result = run(spec_examples.logistic_batches(client, indices, 'float64'))
  batches = [tuple(a[i] for a in client) for i in indices]
  np.testing.assert_allclose(
      result.update[0], transcribe(batches, (1, 1)), rtol=1e-12
  )
  drawn = tuple(a[np.ravel(indices)] for a in client)
  loss = spec_examples.logistic_value(START, *drawn)
  np.testing.assert_allclose(result.totals.loss, loss, rtol=1e-12)
  assert totals_of(result) == [1, 0, 0, 6]
  assert [v.dtype.name for v in result.totals] == [
      'float64', 'int32', 'int32', 'int32', 'int64',
  ]


def test_full_loss_is_that_of_all_examples():
  client = spec_examples.LOGISTIC[0]
  drawn = spec_examples.logistic_batches(client, [[0], [0]], 'float64')
  padding = [(0, 5)]
  result = run(
      client_work.ClientBatchesAndExamples(
          drawn.batches,
          drawn.num_examples,
          (
              np.pad(client[0], padding + [(0, 0)], constant_values=np.nan),
              np.pad(client[1], padding, constant_values=np.nan),
          ),
      ),
      loss='full',
  )
  loss = spec_examples.logistic_value(START, *client)
  np.testing.assert_allclose(result.totals.loss, loss, rtol=1e-12)
  assert totals_of(result) == [1, 0, 0, 2]


def test_loss_of_the_first_batch():
  client = spec_examples.LOGISTIC[0]
  drawn = spec_examples.logistic_batches(client, [[0, 1], [2, 2]], 'float64')
  result = run(drawn, loss='first_batch')
  first = tuple(array[:2] for array in client)
  loss = spec_examples.logistic_value(START, *first)
  np.testing.assert_allclose(result.totals.loss, loss, rtol=1e-12)
  same = run(drawn)
  np.testing.assert_array_equal(result.update[0], same.update[0])
  assert totals_of(result) == totals_of(same)


@pytest.mark.parametrize('value', [0.0, np.nan, np.inf])
@pytest.mark.parametrize('theta', ['1:1', '1:2', '0.5,2'])
@pytest.mark.parametrize('loss', ['drawn', 'first_batch'])
def test_empty_client_sends_zeros_whatever_its_tensors_hold(
    value, theta, loss
):
  num_steps = theta_lib.parse_theta(theta).num_steps
  client = spec_examples.logistic_batches(
      spec_examples.LOGISTIC[0], [[0]] * num_steps, 'float64'
  )
  result = run(spec_examples.emptied(client, value), theta, loss)
  np.testing.assert_array_equal(result.update[0], [0.0, 0.0])
  assert result.totals.loss.numpy() == 0.0
  assert totals_of(result) == [0, 1, 0, 0]


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_update_that_is_not_finite_is_counted_and_kept(value):
  client = spec_examples.logistic_batches(
      spec_examples.LOGISTIC[0], [[0], [1]], 'float64'
  )
  features, labels = client.batches
  features[1, 0, 0] = value
  result = run(client)
  assert not np.isfinite(result.update[0]).all()
  assert totals_of(result) == [1, 0, 1, 2]


def test_sequence_equals_tensors():
  client = spec_examples.LOGISTIC[0]
  indices = [[0, 1], [1, 1], [2, 0]]
  drawn = spec_examples.logistic_batches(client, indices, 'float64')
  from_tensors = run(drawn, '0.5,0,2')
  from_sequence = run_sequence(list(zip(*drawn.batches)), '0.5,0,2')
  np.testing.assert_allclose(
      from_sequence.update[0], from_tensors.update[0], rtol=1e-14
  )
  np.testing.assert_allclose(
      from_sequence.totals.loss, from_tensors.totals.loss, rtol=1e-14
  )
  assert totals_of(from_sequence) == totals_of(from_tensors) == [1, 0, 0, 6]


def test_short_sequence_of_unequal_batches_starts_again():
  batches = batches_of(spec_examples.LOGISTIC[0], [2, 1])
  result = run_sequence(batches)
  taken = batches + batches[:1]
  np.testing.assert_allclose(
      result.update[0], transcribe(taken, (1, 1, 1)), rtol=1e-12
  )
  every = tuple(np.concatenate(arrays) for arrays in zip(*taken))
  loss = spec_examples.logistic_value(START, *every)
  np.testing.assert_allclose(result.totals.loss, loss, rtol=1e-12)
  assert totals_of(result) == [1, 0, 0, 5]


def test_long_sequence_is_cut():
  batches = batches_of(spec_examples.LOGISTIC[0], [1, 1, 1])
  result = run_sequence(batches, '1:2')
  np.testing.assert_allclose(
      result.update[0], transcribe(batches[:2], (1, 1)), rtol=1e-12
  )
  assert totals_of(result) == [1, 0, 0, 2]


@pytest.mark.parametrize('theta', ['1:1', '1:3', 'k3', '1,2'])
def test_empty_sequence_is_an_empty_client(theta):
  result = run_sequence([], theta)
  np.testing.assert_array_equal(result.update[0], [0.0, 0.0])
  assert result.totals.loss.numpy() == 0.0
  assert totals_of(result) == [0, 1, 0, 0]


def run_epochs(client, sizes, loss='drawn', num_examples=3, garbage=np.nan):
  """Consecutive examples in batches of these sizes, padded to 4 rows and 6."""
  batches = batches_of(client, sizes)
  padded = tuple(np.full((6, 4) + a.shape[1:], garbage) for a in client)
  for k, batch in enumerate(batches):
    for target, rows in zip(padded, batch):
      target[k, : len(rows)] = rows
  value = client_work.ClientEpochs(
      batches=tuple(map(tf.constant, padded)),
      batch_sizes=tf.constant(sizes + [0] * (6 - len(sizes))),
      num_examples=tf.constant(num_examples),
  )
  result = client_work.epoch_client_work(
      losses(), WEIGHTS, value, GAMMA, local_steps.PLAIN, loss
  )
  return result, batches


@pytest.mark.parametrize('sizes', [[3], [2, 1], [1, 1, 1]])
@pytest.mark.parametrize('loss', ['drawn', 'first_batch'])
def test_epochs_of_unequal_batches(sizes, loss):
  """Padding, full of NaN, neither moves the weights nor counts."""
  client = spec_examples.LOGISTIC[0]
  result, batches = run_epochs(client, sizes, loss)
  np.testing.assert_allclose(
      result.update[0], transcribe(batches, (1,) * len(sizes)), rtol=1e-12
  )
  data = client if loss == 'drawn' else batches[0]
  np.testing.assert_allclose(
      result.totals.loss, spec_examples.logistic_value(START, *data), rtol=1e-12
  )
  assert totals_of(result) == [1, 0, 0, 3]


@pytest.mark.parametrize('sizes, num_examples', [([], 3), ([2, 1], 0)])
@pytest.mark.parametrize('loss', ['drawn', 'first_batch'])
def test_epochs_of_an_empty_client(sizes, num_examples, loss):
  result, _ = run_epochs(
      spec_examples.LOGISTIC[0], sizes, loss, num_examples, np.inf
  )
  np.testing.assert_array_equal(result.update[0], [0.0, 0.0])
  assert result.totals.loss.numpy() == 0.0
  assert totals_of(result) == [0, 1, 0, 0]


def test_epochs_that_diverge_are_counted():
  client = tuple(np.array(a) for a in spec_examples.LOGISTIC[0])
  client[0][1, 0] = np.inf
  result, _ = run_epochs(client, [2, 1], 'first_batch')
  assert not np.isfinite(result.update[0]).all()
  assert totals_of(result) == [1, 0, 1, 3]
