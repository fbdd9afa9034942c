"""LocalUpdate over sequences, as `tff.learning` uses it."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.local_update import spec_examples
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import learning_process
from tff_localupdate.local_update import local_steps
from tff_localupdate.local_update import process as process_lib


@pytest.fixture(scope='module', autouse=True)
def in_process():
  execution.set_default_context()


def build(model, theta='1:3', gamma=0.5, eta=0.3, **kwargs):
  return learning_process.build_local_update_learning_process(
      model,
      theta=theta_lib.parse_theta(theta),
      client_learning_rate=gamma,
      server_optimizer=server_optimizers.build_sgd(eta),
      **kwargs,
  )


def dataset_of(client):
  """The batches of a `ClientBatches`, one after another."""
  return tf.data.Dataset.from_tensor_slices(client.batches)


def full_batches(client, num_batches=1):
  """The whole client as one batch, several times."""
  data = tuple(np.asarray(array) for array in client)
  return tf.data.Dataset.from_tensors(data).repeat(num_batches)


def weights_of(state):
  return np.asarray(state.model_weights.trainable[0])


@pytest.mark.parametrize(
    'dtype, tolerance', [('float64', 1e-9), ('float32', 1e-5)]
)
def test_g20_clients_of_unequal_size_in_full_batches(dtype, tolerance):
  process = build(spec_examples.logistic_model(dtype))
  assert isinstance(process, tff.learning.templates.LearningProcess)
  # One batch each: it is taken three times.
  clients = [
      full_batches([a.astype(dtype) for a in client])
      for client in spec_examples.LOGISTIC
  ]
  state = process.initialize()
  for _ in range(2):
    state, metrics = process.next(state, clients)
  np.testing.assert_allclose(
      weights_of(state), (-0.1047678975, 0.1309666997), rtol=0, atol=tolerance
  )
  assert metrics.examples_used == 15


def test_g22_loss_before_training_is_client_uniform():
  process = build(spec_examples.logistic_model('float64'))
  clients = [full_batches(client, 5) for client in spec_examples.LOGISTIC]
  output = process.next(process.initialize(), clients)
  np.testing.assert_allclose(
      output.metrics.loss_before_training, 0.7729979891, atol=1e-9
  )


@pytest.mark.parametrize('theta', ['1:3', 'k3', '0.5,0,2'])
def test_equals_the_process_over_tensors(theta):
  model = spec_examples.logistic_model('float64')
  tensors = process_lib.build_local_update(
      model,
      theta=theta_lib.parse_theta(theta),
      batch_size=2,
      client_learning_rate=0.5,
      server_optimizer=server_optimizers.build_sgd(0.3),
  )
  sequences = build(model, theta)
  generator = np.random.default_rng(0)
  left, right = tensors.initialize(), sequences.initialize()
  for _ in range(3):
    clients = [
        spec_examples.logistic_batches(
            client, generator.integers(0, 2, size=[3, 2]), 'float64'
        )
        for client in spec_examples.LOGISTIC
    ]
    empty = spec_examples.emptied(clients[0])
    left, expected = tensors.next(left, [*clients, empty])
    right, found = sequences.next(
        right, [*map(dataset_of, clients), dataset_of(empty).take(0)]
    )
    np.testing.assert_allclose(weights_of(right), weights_of(left), rtol=1e-13)
    np.testing.assert_allclose(found[:-1], expected[:-1], rtol=1e-13)
  assert (found.clients_used, found.clients_empty) == (2, 1)


def test_local_steps_equal_those_of_the_process_over_tensors():
  steps = local_steps.LocalSteps(
      optimizer='momentum', step_factors=(1, 0.5, 0), proximal_strength=0.3
  )
  model = spec_examples.logistic_model('float64')
  tensors = process_lib.build_local_update(
      model,
      theta=theta_lib.parse_theta('1:3'),
      batch_size=2,
      client_learning_rate=0.5,
      server_optimizer=server_optimizers.build_sgd(0.3),
      local_steps=steps,
  )
  sequences = build(model, local_steps=steps)
  rows = [[0, 1], [1, 1], [0, 0]]
  clients = [
      spec_examples.logistic_batches(client, rows, 'float64')
      for client in spec_examples.LOGISTIC
  ]
  left, _ = tensors.next(tensors.initialize(), clients)
  right, _ = sequences.next(
      sequences.initialize(), list(map(dataset_of, clients))
  )
  plain, _ = build(model).next(
      sequences.initialize(), list(map(dataset_of, clients))
  )
  np.testing.assert_allclose(weights_of(right), weights_of(left), rtol=1e-14)
  assert np.abs(weights_of(right) - weights_of(plain)).max() > 1e-3


def test_hparams_and_weights_by_computations():
  process = build(spec_examples.logistic_model('float64'))
  state = process.initialize()
  rates = process.get_hparams(state)
  assert rates == collections.OrderedDict(
      client_learning_rate=0.5, server_learning_rate=0.3
  )
  rates['client_learning_rate'] = 0.1
  state = process.set_hparams(state, rates)
  assert process.get_hparams(state)['client_learning_rate'] == 0.1
  new = tff.learning.models.ModelWeights((np.array([3.0, 4.0]),), ())
  state = process.set_model_weights(state, new)
  np.testing.assert_array_equal(
      process.get_model_weights(state).trainable[0], [3.0, 4.0]
  )
  _, metrics = process.next(state, [full_batches(spec_examples.LOGISTIC[0])])
  assert metrics.client_learning_rate == 0.1


def test_set_hparams_composes_into_another_computation():
  """As a decay rule does it: the rates change inside `next`."""
  process = build(spec_examples.logistic_model('float64'))
  state_type, data_type = process.next.type_signature.parameter

  @tff.tensorflow.computation(process.get_hparams.type_signature.result)
  def halve(rates):
    return tf.nest.map_structure(lambda rate: 0.5 * rate, rates)

  @tff.federated_computation(state_type, data_type)
  def next_fn(state, data):
    output = process.next(state, data)
    rates = tff.federated_map(process.get_hparams, output.state)
    halved = tff.federated_map(halve, rates)
    new_state = tff.federated_map(process.set_hparams, (output.state, halved))
    return new_state, output.metrics

  state = process.initialize()
  clients = [full_batches(client) for client in spec_examples.LOGISTIC]
  for rate in (0.5, 0.25, 0.125):
    state, metrics = next_fn(state, clients)
    assert metrics.client_learning_rate == rate


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_compiles_to_map_reduce_form(dtype):
  process = build(
      spec_examples.logistic_model(dtype),
      aggregator=tff.learning.robust_aggregator(weighted=False),
  )
  spec_examples.assert_map_reduce_form(process)


def test_arguments_are_checked():
  model = spec_examples.logistic_model('float32')
  with pytest.raises(ValueError, match='client_learning_rate .* found nan'):
    build(model, gamma=float('nan'))
  with pytest.raises(TypeError, match='^model must be of type'):
    build(None)
  with pytest.raises(TypeError, match='^local_steps must be of type'):
    build(model, local_steps=(1.0, 0.5, 0.25))
