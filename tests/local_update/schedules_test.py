"""Scheduled rates: their values, in the state, and what they converge to."""

import numpy as np
import pytest
import tensorflow as tf

from tests.local_update import spec_examples
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import decay
from tff_localupdate.local_update import process as process_lib
from tff_localupdate.local_update import schedules as schedules_lib
from tff_localupdate.theory import convergence
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import surrogate

Schedule = schedules_lib.RateSchedule
NUM_STEPS = 2
THETA = theta_lib.Theta.ones(NUM_STEPS)
POPULATION = quadratics.population_of(
    [
        quadratics.QuadraticExamples(*client)
        for client in spec_examples.QUADRATICS
    ]
)


def build(gamma, eta, **schedules):
  inner = process_lib.build_local_update(
      spec_examples.quadratic_model('float64'),
      theta=THETA,
      batch_size=1,
      client_learning_rate=gamma,
      server_optimizer=server_optimizers.build_sgd(eta, dtype='float64'),
  )
  if not schedules:
    return inner
  return schedules_lib.build_scheduled(inner, **schedules)


def compiled(process):
  return execution.compile_process(process, devices=('/device:CPU:0',))


def cohort():
  """Both clients, whose batches give their full gradients."""
  clients = [
      spec_examples.quadratic_batches(client, [[0]] * NUM_STEPS, 'float64')
      for client in spec_examples.QUADRATICS
  ]
  return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *clients)


def run(program, rounds, state=None):
  state = program.initialize() if state is None else state
  history, data = [], cohort()
  for _ in range(rounds):
    state, metrics = program.next(state, data)
    history.append((state, metrics))
  return history


def weights_of(program_state):
  return np.asarray(program_state.process.model_weights.trainable[0])


@pytest.mark.parametrize(
    'schedule, factors',
    [
        (Schedule(), [1.0, 1.0, 1.0, 1.0]),
        (Schedule('inverse', offset=3.0), [1.0, 4 / 5, 4 / 6, 4 / 7]),
        (Schedule('inverse', offset=-0.5), [1.0, 1 / 3, 1 / 5, 1 / 7]),
        (Schedule('steps', steps=((2, 0.5), (4, 0.1))), [1.0, 0.5, 0.5, 0.05]),
        (Schedule('steps', steps=((3, 0.0),)), [1.0, 1.0, 0.0, 0.0]),
    ],
)
def test_factors(schedule, factors):
  found = [float(schedule.factor(t)) for t in range(1, 5)]
  np.testing.assert_allclose(found, factors, rtol=1e-15)


@pytest.mark.parametrize(
    'arguments, message',
    [
        ({'kind': 'linear'}, 'kind must be one of'),
        ({'kind': 'inverse'}, 'offset must be given'),
        ({'offset': 1.0}, 'offset must be given'),
        ({'kind': 'inverse', 'offset': -1.0}, r'offset \+ 1 must be'),
        ({'kind': 'steps'}, 'steps must be given'),
        ({'steps': ((2, 0.5),)}, 'steps must be given'),
        ({'kind': 'steps', 'steps': ((1, 0.5),)}, 'rise from 2'),
        ({'kind': 'steps', 'steps': ((3, 0.5), (3, 0.5))}, 'rise from 2'),
        ({'kind': 'steps', 'steps': ((2, -0.5),)}, 'factor of steps'),
        ({'kind': 'steps', 'steps': ((2.5, 0.5),)}, 'round of steps'),
    ],
)
def test_wrong_schedules(arguments, message):
  with pytest.raises(ValueError, match=message):
    Schedule(**arguments)


def test_wrong_types():
  with pytest.raises(TypeError, match='client_schedule must be of type'):
    build(0.1, 0.1, client_schedule=0.5)
  with pytest.raises(TypeError, match='process must be of type'):
    schedules_lib.build_scheduled('process')


def test_two_rules_for_the_same_rates_are_refused():
  # A schedule around a decay would write over what has decayed, a decay around
  # a schedule report other rates than were used.
  scheduled = build(0.2, 0.1, client_schedule=Schedule('inverse', offset=0.0))
  decaying = decay.build_local_update_decay(build(0.2, 0.1))
  for inner in (scheduled, decaying):
    for wrap in (schedules_lib.build_scheduled, decay.build_local_update_decay):
      with pytest.raises(ValueError, match='process must leave its rates as'):
        wrap(inner)


@pytest.fixture(scope='module')
def scheduled():
  process = build(
      0.2, 0.1,
      client_schedule=Schedule('inverse', offset=1.0),
      server_schedule=Schedule('steps', steps=((3, 0.5),)),
  )
  return process, compiled(process)


def test_rates_of_each_round_are_reported(scheduled):
  _, program = scheduled
  metrics = [m for _, m in run(program, 4)]
  gammas = [float(m.client_learning_rate) for m in metrics]
  etas = [float(m.server_learning_rate) for m in metrics]
  np.testing.assert_allclose(gammas, [0.2, 0.4 / 3, 0.1, 0.08], rtol=1e-15)
  np.testing.assert_allclose(etas, [0.1, 0.1, 0.05, 0.05], rtol=1e-15)


def test_resumed_in_the_middle_is_bit_equal(scheduled):
  _, program = scheduled
  straight = run(program, 5)
  middle = tf.nest.map_structure(
      lambda leaf: tf.constant(np.asarray(leaf)), straight[1][0]
  )
  resumed = run(program, 3, middle)
  for (state, _), (wanted, _) in zip(resumed, straight[2:]):
    for found, leaf in zip(tf.nest.flatten(state), tf.nest.flatten(wanted)):
      np.testing.assert_array_equal(found, leaf)


def test_hparams_are_those_of_round_1_at_any_time(scheduled):
  process, program = scheduled
  state = run(program, 2)[-1][0]
  assert {k: float(v) for k, v in process.get_hparams(state).items()} == {
      'client_learning_rate': 0.2, 'server_learning_rate': 0.1
  }
  state = process.set_hparams(state, {'client_learning_rate': 0.4})
  assert float(process.get_hparams(state)['server_learning_rate']) == 0.1
  _, metrics = run(program, 1, state)[-1]
  np.testing.assert_allclose(metrics.client_learning_rate, 0.4 / 2, rtol=1e-15)
  np.testing.assert_allclose(metrics.server_learning_rate, 0.05, rtol=1e-15)


def test_constant_schedules_change_nothing():
  plain = run(compiled(build(0.2, 0.1)), 4)
  constant = run(compiled(build(0.2, 0.1, client_schedule=Schedule())), 4)
  for (state, _), (wanted, _) in zip(constant, plain):
    np.testing.assert_array_equal(
        weights_of(state), np.asarray(wanted.model_weights.trainable[0])
    )


def test_theorem_29_rates_reach_the_minimizer_within_its_bound():
  gamma = 0.1
  constants = POPULATION.constants
  client_rate, server_rate = convergence.decaying_rates(
    constants, NUM_STEPS, gamma
  )
  process = build(
      gamma, server_rate.at(1),
      client_schedule=Schedule('inverse', offset=client_rate.offset),
      server_schedule=Schedule('inverse', offset=server_rate.offset),
  )
  history = run(compiled(process), 6000)
  first = np.array(spec_examples.QUADRATICS_START)
  start = surrogate.surrogate_minimizer(POPULATION, THETA, gamma)
  for t in (2, 100, 1000, 6001):
    state, metrics = history[t - 2]
    np.testing.assert_allclose(
        metrics.client_learning_rate, client_rate.at(t - 1), rtol=1e-12
    )
    error = np.sum((weights_of(state) - POPULATION.minimizer) ** 2)
    bound = convergence.decaying_rates_bound(
        constants,
        num_steps=NUM_STEPS,
        client_learning_rate=gamma,
        round_num=t,
        distance_squared=float(np.sum((first - start) ** 2)),
        update_variance=0.0,
    )
    assert error <= bound
  # The error follows gamma_t: O(1/t), squared.
  middle, last = (
      np.linalg.norm(weights_of(history[t][0]) - POPULATION.minimizer)
      for t in (2999, 5999)
  )
  assert last < 0.01 and last < 0.75 * middle


def test_theorem_27_rates_reach_the_surrogate_minimizer_and_no_other():
  gamma = 0.1
  server_rate = convergence.decaying_server_rate(
      POPULATION.constants, NUM_STEPS, gamma
  )
  process = build(
      gamma, server_rate.at(1),
      server_schedule=Schedule('inverse', offset=server_rate.offset),
  )
  state, _ = run(compiled(process), 3000)[-1]
  limit = surrogate.surrogate_minimizer(POPULATION, THETA, gamma)
  gap = np.linalg.norm(limit - POPULATION.minimizer)
  assert np.linalg.norm(weights_of(state) - limit) < 0.01 * gap
  assert np.linalg.norm(weights_of(state) - POPULATION.minimizer) > 0.99 * gap
