"""What all rivals share: state, horizon, rates, errors, contexts."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from baselines.algorithms import fed_avg
from baselines.algorithms import fed_paq
from baselines.algorithms import minibatch_sgd
from baselines.algorithms import rivals
from tests.algorithms import rival_cases
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta
from tff_localupdate.compression import codes
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process as local_update


def _fed_paq(**changes):
  arguments = {**rival_cases.ARGUMENTS, 'quantization_levels': 3, **changes}
  model = arguments.pop('model', None) or rival_cases.build_model()
  return fed_paq.build_fed_paq(model, **arguments)


@pytest.fixture(scope='module', name='plain')
def _plain():
  process = _fed_paq()
  return process, rival_cases.compiled(process)


@pytest.fixture(scope='module', name='data')
def _data():
  return rival_cases.Data()


def test_another_seed_rounds_otherwise_and_needs_no_other_process(data, plain):
  process, program = plain
  state = process.initialize_with_seed(8)
  runs = rival_cases.run(program, data, 3, state)
  expected = rival_cases.transcribe(
      'fed_paq', data, 3, uniforms=rival_cases.draws(8)
  )
  for (after, _), (x, *_) in zip(runs, expected):
    np.testing.assert_allclose(rival_cases.point_of(after), x, atol=1e-9)
  (first, _), = rival_cases.run(program, data, 1)
  (other, _), = rival_cases.run(program, data, 1, state)
  assert np.any(rival_cases.point_of(first) != rival_cases.point_of(other))
  with pytest.raises(ValueError, match='seed must be a whole number'):
    process.initialize_with_seed(0.5)


def test_resume_is_bit_equal(data, plain):
  _, program = plain
  whole = list(rival_cases.run(program, data, 5))
  saved = tf.nest.map_structure(np.asarray, whole[1][0])
  rest = rival_cases.run(program, data, 3, saved)
  for resumed, expected in zip(rest, whole[2:]):
    tf.nest.map_structure(np.testing.assert_array_equal, resumed, expected)


def test_horizon_that_cuts_a_round_sends_nothing_in_it(data):
  process = _fed_paq(horizon=11)
  program = rival_cases.compiled(process)
  state = program.initialize()
  assert process.rows_needed(state) == 4
  needed, states = [], [state]
  while not process.is_finished(state):
    needed.append(process.samples_needed(state))
    (state, metrics), = rival_cases.run(program, data, 1, state)
    states.append(state)
  assert needed == [4, 4, 3] and int(state.time_used) == 11
  assert metrics.num_queries == 3 and metrics.time_used == 11
  assert not metrics.sent and np.isnan(metrics.loss_before_training)
  assert metrics.total_uplink_bits == metrics.downlink_bits == 0
  assert metrics.clients_used == metrics.examples_used == 0
  np.testing.assert_array_equal(*map(rival_cases.point_of, states[-2:]))
  assert int(state.downlink_bits) == 2 * 64 * rival_cases.DIMENSION
  (after, metrics), = rival_cases.run(program, data, 1, state)
  tf.nest.map_structure(np.testing.assert_array_equal, after, state)
  assert metrics.num_queries == 0


def test_horizon_shorter_than_a_round_is_warned_of():
  with pytest.warns(UserWarning, match='horizon 3 is shorter than the 4 steps'):
    _fed_paq(horizon=3)


def test_empty_clients_are_left_out(data, plain):
  _, program = plain
  state, metrics = program.next(
      program.initialize(), data.cohort(0, empty=(0, 3))
  )
  assert metrics.clients_used == 8 and metrics.clients_empty == 2
  assert metrics.examples_used == 8 * 4 * 2
  assert metrics.total_uplink_bits == 8 * (64 + 6 * 3)
  assert metrics.uplink_bits == 65.6
  cohort = tf.nest.map_structure(
      lambda leaf: np.delete(leaf, (0, 3), axis=0), data.cohort(0)
  )
  expected, _ = program.next(program.initialize(), cohort)
  np.testing.assert_allclose(
      rival_cases.point_of(state), rival_cases.point_of(expected), rtol=1e-12
  )
  state, metrics = program.next(
      program.initialize(), data.cohort(0, empty=range(10))
  )
  assert metrics.clients_used == 0 and metrics.clients_non_finite == 0
  assert np.all(rival_cases.point_of(state) == rival_cases.START)


def test_divergence_is_seen(data, plain):
  _, program = plain
  cohort = data.cohort(0)
  cohort.batches[0][4] = np.inf
  state, metrics = program.next(program.initialize(), cohort)
  assert metrics.clients_non_finite == metrics.clients_not_sent == 1
  assert metrics.clients_used == 10
  assert np.all(np.isnan(rival_cases.point_of(state)))


def test_rates_and_weights(data, plain):
  process, program = plain
  state = program.initialize()
  assert float(process.get_hparams(state)['step_size']) == 0.3
  changed = process.set_hparams(
      state, collections.OrderedDict(step_size=0.1)
  )
  assert float(changed.step_size) == 0.1  # Not that of float32.
  with pytest.raises(ValueError, match='hparams must be one of step_size, fou'):
    process.set_hparams(state, {'server_factor': 1.0})
  with pytest.raises(ValueError, match='step_size must be .* above 0, found 0'):
    process.set_hparams(state, {'step_size': 0.0})
  weights = process.get_model_weights(state)
  assert isinstance(weights, tff.learning.models.ModelWeights)
  weights = tf.nest.map_structure(lambda w: 2.0 * w, weights)
  changed = process.set_model_weights(changed, weights)
  np.testing.assert_array_equal(rival_cases.point_of(changed), 1.0)
  (_, metrics), = rival_cases.run(program, data, 1, changed)
  assert metrics.client_learning_rate == metrics.server_learning_rate == 0.1
  with pytest.raises(ValueError, match='model_weights must have the dtypes'):
    process.set_model_weights(
        state, tf.nest.map_structure(lambda w: w[:1], weights)
    )


@pytest.mark.parametrize(
    'build, weights, gamma',
    [
        (fed_avg.build_fed_avg, (1.0,) * 4, 0.3),
        (minibatch_sgd.build_minibatch_sgd, (0.25,) * 4, 0.0),
    ],
)
def test_is_local_update_at_the_rates_reported(data, build, weights, gamma):
  rival = build(rival_cases.build_model(), **rival_cases.ARGUMENTS)
  other = local_update.build_local_update(
      rival_cases.build_model(),
      theta=theta.Theta(weights),
      batch_size=2,
      client_learning_rate=gamma,
      server_optimizer=server_optimizers.build_sgd(0.3, dtype='float64'),
  )
  program = rival_cases.compiled(other)
  state = program.initialize()
  for after, metrics in rival_cases.run(rival_cases.compiled(rival), data, 3):
    cohort = data.cohort(int(after.round_num) - 1)
    state, expected = program.next(
        state, client_work.ClientBatches(cohort.batches, cohort.num_examples)
    )
    np.testing.assert_allclose(
        rival_cases.point_of(after), rival_cases.point_of(state), rtol=1e-12
    )
    for name in ('update_norm', 'client_learning_rate', 'server_learning_rate'):
      np.testing.assert_allclose(
          getattr(metrics, name), getattr(expected, name), rtol=1e-12
      )


def test_runs_in_a_context(data, plain):
  process, program = plain
  execution.set_default_context(devices=rival_cases.CPU)
  cohort = data.cohort(0)
  clients = [
      tf.nest.map_structure(lambda leaf, m=m: leaf[m], cohort)
      for m in range(10)
  ]
  after, metrics = process.next(process.initialize(), clients)
  expected, _ = program.next(program.initialize(), cohort)
  np.testing.assert_allclose(
      rival_cases.point_of(after), rival_cases.point_of(expected), rtol=1e-12
  )
  assert metrics.total_uplink_bits.dtype == np.int64
  assert metrics.downlink_bits.dtype == np.int64
  assert metrics.uplink_bits.dtype == np.float64


@pytest.mark.parametrize(
    'changes, error, message',
    [
        (dict(model=3), TypeError, 'model must be of type FunctionalModel'),
        (dict(local_steps=0), ValueError, 'local_steps must be a whole number'),
        (dict(batch_size=0), ValueError, 'batch_size must be a whole number'),
        (dict(step_size=0.0), ValueError, 'step_size must be a finite number'),
        (dict(step_size=np.nan), ValueError, 'step_size must be .* found nan'),
        (dict(horizon=0), ValueError, 'horizon must be a whole number'),
        (dict(seed=1.5), ValueError, 'seed must be a whole number'),
        (dict(dtype='int32'), ValueError, 'dtype must be one of float32, fl'),
        (dict(dtype='float32'), ValueError, 'dtype float32, all of one, found'),
    ],
)
def test_wrong_arguments(changes, error, message):
  with pytest.raises(error, match=message):
    _fed_paq(**changes)


def test_fields_of_messages():
  fields = rivals.qsgd_message(5, None)
  assert fields['resolution'] == 5
  assert isinstance(fields['code'], codes.FixedWidthCode)
  vector = tf.constant([1.5, -2.0])
  quantizer = rivals.float_message()['quantizer']
  sent = quantizer.quantize(vector, None, None)
  np.testing.assert_array_equal(quantizer.dequantize(sent, None), vector)
