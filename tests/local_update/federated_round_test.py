"""Types of the computations, initial state, arguments."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.local_update import spec_examples
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import inner_loop
from tff_localupdate.local_update import process
from tff_localupdate.local_update import server_step


@pytest.fixture(scope='module', autouse=True)
def in_process():
  execution.set_default_context()


def build(model=None, **changes):
  arguments = {
      'client_learning_rate': 0.1,
      'server_optimizer': server_optimizers.build_yogi(0.2),
      'aggregator': None,
  }
  return process.build_computations(
      model or spec_examples.logistic_model('float32'),
      lambda spec: client_work.batches_type(spec, 2, 3),
      functools.partial(
          client_work.tensor_client_work,
          update_fn=functools.partial(
              inner_loop.inner_loop_and_first_loss,
              theta=theta_lib.Theta.ones(2),
          ),
          loss_before_training='drawn',
      ),
      **{**arguments, **changes},
  )


def model_with_weights(trainable, non_trainable=()):
  @tf.function
  def predict(weights, x, training=True):
    del training
    return tf.linalg.matvec(x, weights[0][0])

  return tff.learning.models.FunctionalModel(
      initial_weights=(trainable, non_trainable),
      predict_on_batch_fn=predict,
      loss_fn=lambda output, label, sample_weight=None: tf.reduce_mean(output),
      input_spec=(tf.TensorSpec([None, 2]), tf.TensorSpec([None])),
  )


def test_types_of_the_computations():
  initialize, next_fn = build()
  state_type = initialize.type_signature.result
  assert state_type.placement is tff.SERVER
  assert state_type.member.python_container is server_step.LocalUpdateState
  assert next_fn.type_signature.parameter[0] == state_type
  assert next_fn.type_signature.parameter[1].placement is tff.CLIENTS
  result = next_fn.type_signature.result
  assert result.python_container is tff.learning.templates.LearningProcessOutput
  metrics_type = result.metrics.member
  assert metrics_type.python_container is server_step.LocalUpdateMetrics
  scalars = [str(t) for t in list(metrics_type)[:-1]]
  assert scalars == ['float32'] * 4 + ['int32'] * 3 + ['int64']


def test_initial_state():
  initialize, _ = build()
  state = initialize()
  np.testing.assert_array_equal(
      state.model_weights.trainable[0], np.float32(spec_examples.LOGISTIC_START)
  )
  assert np.asarray(state.client_learning_rate) == np.float32(0.1)
  assert np.asarray(state.optimizer['learning_rate']) == np.float32(0.2)
  assert np.asarray(state.round_num) == 0


@pytest.mark.parametrize(
    'name, value',
    [
        ('model', lambda: None),
        ('server_optimizer', tf.keras.optimizers.SGD),
        ('aggregator', tff.aggregators.MeanFactory()),
    ],
)
def test_types_of_arguments_are_checked(name, value):
  with pytest.raises(TypeError, match=f'^{name} must be of type .* found'):
    build(**{name: value})


@pytest.mark.parametrize('rate', [-0.1, float('nan'), float('inf')])
def test_client_learning_rate_is_checked(rate):
  with pytest.raises(ValueError, match=f'client_learning_rate .* {rate}'):
    build(client_learning_rate=rate)


@pytest.mark.parametrize(
    'trainable, found',
    [
        ((np.zeros(2, np.float16),), 'float16'),
        ((np.zeros(2, np.float32), np.zeros(2)), 'float32, float64'),
        ((), 'no weights'),
    ],
)
def test_dtype_of_the_weights_is_checked(trainable, found):
  with pytest.raises(ValueError, match=f'all of one, found {found}'):
    build(model_with_weights(trainable))


def test_dtype_of_the_optimizer_is_checked():
  with pytest.raises(ValueError, match='float64, found float32'):
    build(server_optimizer=server_optimizers.build_sgd(0.1, dtype='float64'))


def test_non_trainable_weights_may_have_any_dtype():
  model = model_with_weights((np.zeros(2, np.float32),), (np.int64(3),))
  initialize, _ = build(model)
  state_type = initialize.type_signature.result.member
  assert str(state_type.model_weights.non_trainable) == '<int64>'
