"""What CEAL and its rivals share: seeds, hyperparameters, weights."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.ceal import process as process_lib


class State(NamedTuple):
  model_weights: Any
  step_size: Any
  seed: Any


def initial_values(seed):
  weights = tff.learning.models.ModelWeights((tf.zeros([2]),), ())
  return State(weights, tf.constant(0.5, tf.float32), seed)


class Process(process_lib.HorizonProcess):
  """Ends after as many rounds as its seed says."""

  def samples_needed(self, state):
    return int(state.seed)

  def rows_needed(self, state):
    return 4

  def is_finished(self, state):
    return int(state.seed) == 0


@pytest.fixture(scope='module', name='process')
def _process():
  @tff.tensorflow.computation
  def values():
    return initial_values(tf.constant(3, tf.int64))

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(values, tff.SERVER)

  @tff.federated_computation(initialize.type_signature.result)
  def next_fn(state):
    return state

  return Process(initialize, next_fn, initial_values)


def test_must_say_what_a_loop_has_to_know():
  with pytest.raises(TypeError, match='abstract'):
    process_lib.HorizonProcess(None, None, initial_values)


def test_initial_states_differ_by_their_seed(process):
  state = process.initialize_with_seed(2**40)
  assert state.seed.dtype == tf.int64 and int(state.seed) == 2**40
  with pytest.raises(ValueError, match='seed must be'):
    process.initialize_with_seed(0.5)


def test_hparams_keep_their_dtype(process):
  state = process.initialize_with_seed(1)
  assert dict(process.get_hparams(state)) == {'step_size': 0.5}
  state = process.set_hparams(state, {'step_size': np.float64(0.1)})
  assert state.step_size.dtype == tf.float32
  assert state.step_size.numpy() == np.float32(0.1)


@pytest.mark.parametrize(
    'hparams, message',
    [
        ({'seed': 1}, 'hparams must be one of step_size'),
        ({'step_size': 0.0}, 'step_size must be .* found 0.0'),
        ({'step_size': float('nan')}, 'step_size must be .* found nan'),
    ],
)
def test_hparams_are_checked(process, hparams, message):
  with pytest.raises(ValueError, match=message):
    process.set_hparams(process.initialize_with_seed(1), hparams)


def test_weights_are_read_and_replaced(process):
  state = process.initialize_with_seed(1)
  new = tff.learning.models.ModelWeights(
      (np.array([3.0, 4.0], np.float32),), ()
  )
  state = process.set_model_weights(state, new)
  np.testing.assert_array_equal(
      process.get_model_weights(state).trainable[0], [3.0, 4.0]
  )
