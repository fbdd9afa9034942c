"""One server step from a hand-built state; rates and weights in it."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import server_optimizers
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import server_step

SGD = server_optimizers.build_sgd(0.5)
YOGI = server_optimizers.build_yogi(0.5)


def state_of(optimizer, dtype='float64', weights=(1.0, 2.0), gamma=0.25):
  trainable = (tf.constant(weights, dtype),)
  spec = (tf.TensorSpec(trainable[0].shape, dtype),)
  return server_step.LocalUpdateState(
      model_weights=tff.learning.models.ModelWeights(
          trainable, (tf.constant(7, tf.int32),)
      ),
      optimizer=optimizer.initialize(spec),
      aggregator=(),
      client_learning_rate=tf.constant(gamma, dtype),
      round_num=tf.constant(4, tf.int64),
  )


def totals_of(used, empty, loss=0.0, non_finite=0, dtype='float64'):
  return client_work.ClientTotals(
      loss=tf.constant(loss, dtype),
      clients_used=tf.constant(used),
      clients_empty=tf.constant(empty),
      clients_non_finite=tf.constant(non_finite),
      examples_used=tf.constant(20 * used, tf.int64),
  )


def step(optimizer, state, update, totals):
  dtype = state.client_learning_rate.dtype
  return server_step.server_step(
      optimizer, state, (tf.constant(update, dtype),), totals, ('new',), ('m',)
  )


def same_bits(left, right):
  return all(
      a.numpy().tobytes() == b.numpy().tobytes()
      for a, b in zip(tf.nest.flatten(left), tf.nest.flatten(right))
  )


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_step_and_metrics(dtype):
  state, metrics = step(
      SGD, state_of(SGD, dtype), [3.0, -4.0], totals_of(2, 0, 5.0, 1, dtype)
  )
  np.testing.assert_array_equal(state.model_weights.trainable[0], [-0.5, 4.0])
  assert state.model_weights.non_trainable[0].numpy() == 7
  assert state.optimizer['step'].numpy() == 1
  assert state.round_num.numpy() == 5
  assert state.aggregator == ('new',)
  assert state.client_learning_rate.numpy() == 0.25
  values = [value.numpy() for value in metrics[:-1]]
  assert values == [2.5, 5.0, 0.25, 0.5, 2, 0, 1, 40]
  assert [value.dtype.name for value in values] == [dtype] * 4 + [
      'int32', 'int32', 'int32', 'int64',
  ]
  assert metrics.aggregator == ('m',)


def test_empty_clients_leave_the_mean():
  state, metrics = step(
      SGD, state_of(SGD), [1.0, -2.0], totals_of(1, 3, loss=2.0)
  )
  np.testing.assert_array_equal(state.model_weights.trainable[0], [-1.0, 6.0])
  assert metrics.loss_before_training.numpy() == 2.0
  np.testing.assert_allclose(metrics.update_norm, 4 * np.sqrt(5.0), rtol=1e-15)
  assert (metrics.clients_used, metrics.clients_empty) == (1, 3)


def test_without_empty_clients_the_update_keeps_its_bits():
  update = np.random.default_rng(0).normal(size=2)
  state = state_of(server_optimizers.build_sgd(1.0), weights=(0.0, 0.0))
  new_state, _ = step(
      server_optimizers.build_sgd(1.0), state, update, totals_of(3, 0)
  )
  assert (new_state.model_weights.trainable[0].numpy() == -update).all()


@pytest.mark.parametrize('update', [[0.0, 0.0], [0.3, 0.1], [np.nan, np.inf]])
@pytest.mark.parametrize('clients_empty', [0, 3])
def test_all_empty_keeps_every_bit(update, clients_empty):
  state, _ = step(YOGI, state_of(YOGI), [3.0, -4.0], totals_of(1, 0))
  new_state, metrics = step(YOGI, state, update, totals_of(0, clients_empty))
  assert same_bits(new_state.model_weights, state.model_weights)
  assert same_bits(new_state.optimizer, state.optimizer)
  assert new_state.round_num.numpy() == state.round_num.numpy() + 1
  assert np.isnan(metrics.loss_before_training)
  assert metrics.update_norm.numpy() == 0.0
  assert metrics.examples_used.numpy() == 0


def test_update_that_is_not_finite_is_applied():
  state, metrics = step(
      SGD, state_of(SGD), [np.inf, 1.0], totals_of(2, 0, np.nan, 1)
  )
  np.testing.assert_array_equal(
      state.model_weights.trainable[0], [-np.inf, 1.5]
  )
  assert metrics.update_norm.numpy() == np.inf
  assert np.isnan(metrics.loss_before_training)
  assert metrics.clients_non_finite.numpy() == 1


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_hparams_are_set_in_the_state_in_its_dtype(dtype):
  state = state_of(SGD, dtype)
  assert list(server_step.get_hparams(SGD, state)) == [
      'client_learning_rate', 'server_learning_rate',
  ]
  state = server_step.set_hparams(
      SGD, state, collections.OrderedDict(server_learning_rate=0.1)
  )
  state = server_step.set_hparams(
      SGD, state, collections.OrderedDict(client_learning_rate=0.0)
  )
  rates = server_step.get_hparams(SGD, state)
  assert {rate.dtype.name for rate in rates.values()} == {dtype}
  assert rates['client_learning_rate'].numpy() == 0.0
  assert rates['server_learning_rate'].numpy() == np.dtype(dtype).type(0.1)


def test_hparams_of_a_stock_optimizer_keep_its_others():
  stock = tff.learning.optimizers.build_adam(0.5, beta_1=0.7)
  state = state_of(SGD)._replace(
      optimizer=tf.nest.map_structure(
          tf.constant, stock.initialize((tf.TensorSpec([2], tf.float64),))
      )
  )
  state = server_step.set_hparams(
      stock, state, {'server_learning_rate': tf.constant(0.1, tf.float64)}
  )
  assert state.optimizer['learning_rate'].numpy() == np.float32(0.1)
  assert state.optimizer['beta_1'].numpy() == np.float32(0.7)


@pytest.mark.parametrize(
    'hparams, message',
    [
        ({'client_learning_rate': -0.1}, 'client_learning_rate must .* -0.1'),
        ({'server_learning_rate': np.nan}, 'server_learning_rate must .* nan'),
        ({'learning_rate': 0.1}, "hparams must be one of .* 'learning_rate'"),
    ],
)
def test_hparams_are_checked(hparams, message):
  with pytest.raises(ValueError, match=message):
    server_step.set_hparams(SGD, state_of(SGD), hparams)


def test_optimizer_without_rate_is_refused():
  class Fixed(tff.learning.optimizers.Optimizer):

    def initialize(self, specs):
      return ()

    def next(self, state, weights, gradients):
      return state, weights

  with pytest.raises(ValueError, match='must keep its rate .* learning_rate'):
    server_step.check_has_rate(Fixed(), ())
