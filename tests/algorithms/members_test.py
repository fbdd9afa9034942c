"""The rivals of CEAL are members of LocalUpdate: transcriptions and bits."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from baselines.settings import algorithms
from tests.algorithms import member_cases as cases
from tff_localupdate import server_optimizers
from tff_localupdate import theta
from tff_localupdate.compression import codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process as process_lib

_FLOAT = ('minibatch_sgd', 'fed_avg')
_QUANTIZED = ('fed_paq', 'fed_com')


@pytest.fixture(scope='module', name='data')
def _data():
  return cases.Data()


@pytest.fixture(scope='module', name='paq')
def _paq():
  driver = cases.build(cases.MEMBERS['fed_paq'])
  return driver, cases.compiled(driver)


@pytest.mark.parametrize('name', cases.MEMBERS)
def test_x_to_1e9_and_bits_exactly_in_float64(name):
  cases.check(name, rounds=8)


@pytest.mark.parametrize('name', cases.MEMBERS)
def test_xla_and_plain_kernels_agree(name):
  cases.check(name, jit='on')


@pytest.mark.parametrize('num_clients', [1, 2, 101])
@pytest.mark.parametrize('name', cases.MEMBERS)
def test_cohorts(name, num_clients):
  cases.check(name, num_clients=num_clients, rounds=2)


@pytest.mark.parametrize('name', _FLOAT)
def test_x_to_1e5_and_bits_exactly_in_float32(name):
  assert cases.check(name, dtype='float32', rounds=8) == 8


@pytest.mark.parametrize('name', _QUANTIZED)
def test_float32_follows_until_a_draw_rounds_differently(name):
  assert cases.check(name, dtype='float32', rounds=8) >= 3


@pytest.mark.parametrize('name', _QUANTIZED)
def test_bits_are_those_of_the_encoded_bytes(data, name):
  driver = cases.build(cases.MEMBERS[name])
  runs = cases.run(driver, cases.compiled(driver), data, 4)
  transcribed = cases.transcribe(name, data, 4, uniforms=cases.draws(0))
  code = codes.FixedWidthCode(cases.LEVELS)
  for (_, metrics), (_, up, _, integers) in zip(runs, transcribed):
    assert driver.messages(metrics).total_uplink_bits == up
    for whole in integers:
      message = quantizers.QuantizedVector(whole, np.ones(1))
      size = 8 * len(messages.encode(message, code))
      assert 0 <= size - metrics.aggregator.uplink_bits < 8


@pytest.mark.parametrize('name', _QUANTIZED)
def test_other_codes_change_the_bits_only(data, name):
  settings = dataclasses.replace(cases.MEMBERS[name], code='elias_gamma')
  driver, code = cases.build(settings), codes.EliasGammaCode()
  transcribed = cases.transcribe(name, data, 3, uniforms=cases.draws(0))
  for (state, metrics), (x, _, _, integers) in zip(
      cases.run(driver, cases.compiled(driver), data, 3), transcribed
  ):
    np.testing.assert_allclose(cases.point_of(state), x, atol=1e-9)
    lengths = [64 + int(code.length(tf.constant(w))) for w in integers]
    assert driver.messages(metrics).total_uplink_bits == sum(lengths)


@pytest.mark.parametrize('kind, more, dimension, bits', [
    (algorithms.MinibatchSgdConfig, {}, 30, 960),
    (algorithms.FedAvgConfig, {}, 30, 960),
    (algorithms.FedPaqConfig, {'quantization_levels': 3}, 30, 122),
    (algorithms.FedPaqConfig, {'quantization_levels': 5}, 7840, 31392),
    (algorithms.FedComConfig, {'quantization_levels': 3}, 30, 122),
])
def test_11_bits_of_a_message(kind, more, dimension, bits):
  driver = cases.build(
      kind(local_steps=2, **more),
      cases.build_linear_model(np.ones(dimension), 'float32'),
      dtype='float32', batch_size=1,
  )
  program = cases.compiled(driver)
  _, metrics = program.next(
      program.initialize(), driver.cohort(cases.linear_cohort(10, 2, 'float32'))
  )
  assert driver.messages(metrics) == (True, 10 * bits, 32 * dimension, 0)


@pytest.mark.parametrize(
    'uniforms, decoded',
    [
        ((0.1, 0.5, 0.9, 0.0), (5 / 3, -10 / 3, 0.0, 0.0)),
        ((0.9, 0.7, 0.9, 0.0), (10 / 3, -5.0, 0.0, 0.0)),
    ],
)
def test_10_decoded_vector_is_the_step(monkeypatch, uniforms, decoded):
  monkeypatch.setattr(
      random_seeds,
      'draw_uniforms',
      lambda shape, seed, dtype: tf.constant(uniforms, dtype),
  )
  driver = cases.build(
      algorithms.FedPaqConfig(1, 1.0, quantization_levels=3),
      cases.build_linear_model([-3.0, 4.0, 0.0, 0.0]), batch_size=1,
  )
  program = cases.compiled(driver)
  state, _ = program.next(
      program.initialize(), driver.cohort(cases.linear_cohort(1, 1))
  )
  np.testing.assert_allclose(cases.point_of(state), decoded, atol=1e-14)


def test_fed_com_with_factor_1_is_fed_paq(data):
  points = []
  for settings in (
      algorithms.FedComConfig(**cases.SETTINGS, server_factor=1.0),
      algorithms.FedPaqConfig(**cases.SETTINGS),
  ):
    driver = cases.build(settings)
    *_, (state, _) = cases.run(driver, cases.compiled(driver), data, 3)
    points.append(cases.point_of(state))
  np.testing.assert_array_equal(*points)


def test_loss_of_minibatch_sgd_is_that_of_all_queries(data):
  driver = cases.build(cases.MEMBERS['minibatch_sgd'])
  (_, metrics), = cases.run(driver, cases.compiled(driver), data, 1)
  x, y = data.draw(0)
  losses = 0.5 * (x.sum(-1) * cases.START - y) ** 2
  assert metrics.loss_before_training == pytest.approx(losses.mean(), rel=1e-12)
  assert metrics.client_learning_rate == 0.0
  assert metrics.server_learning_rate == cases.STEP_SIZE


def test_another_seed_rounds_otherwise_and_needs_no_other_process(data, paq):
  driver, program = paq
  state = cases.initial_state(driver, program, cases.MEMBERS['fed_paq'], 8)
  runs = cases.run(driver, program, data, 3, state)
  expected = cases.transcribe('fed_paq', data, 3, uniforms=cases.draws(8))
  for (after, _), (x, *_) in zip(runs, expected):
    np.testing.assert_allclose(cases.point_of(after), x, atol=1e-9)
  (first, _), = cases.run(driver, program, data, 1)
  (other, _), = cases.run(driver, program, data, 1, state)
  assert np.any(cases.point_of(first) != cases.point_of(other))


def test_resume_is_bit_equal(data, paq):
  whole = list(cases.run(*paq, data, 5))
  saved = tf.nest.map_structure(np.asarray, whole[1][0])
  rest = cases.run(*paq, data, 3, saved)
  for resumed, expected in zip(rest, whole[2:]):
    tf.nest.map_structure(np.testing.assert_array_equal, resumed, expected)


def test_empty_clients_send_nothing_and_are_left_out(data, paq):
  driver, program = paq
  cohort = driver.cohort(data.cohort(0, empty=(0, 3)))
  state, metrics = program.next(program.initialize(), cohort)
  assert metrics.clients_used == 8 and metrics.clients_empty == 2
  assert metrics.examples_used == 8 * 4 * 2
  assert driver.messages(metrics) == (True, 8 * (64 + 6 * 3), 64 * 6, 0)
  fewer = tf.nest.map_structure(
      lambda leaf: np.delete(leaf, (0, 3), axis=0),
      driver.cohort(data.cohort(0)),
  )
  expected, _ = program.next(program.initialize(), fewer)
  np.testing.assert_allclose(
      cases.point_of(state), cases.point_of(expected), rtol=1e-12
  )
  none = driver.cohort(data.cohort(0, empty=range(10)))
  state, metrics = program.next(program.initialize(), none)
  assert metrics.clients_used == 0 and metrics.clients_non_finite == 0
  assert driver.messages(metrics).total_uplink_bits == 0
  assert np.all(cases.point_of(state) == cases.START)


@pytest.mark.parametrize('name', ['fed_avg', 'fed_paq'])
def test_divergence_is_seen(data, name):
  driver = cases.build(cases.MEMBERS[name])
  program = cases.compiled(driver)
  cohort = driver.cohort(data.cohort(0))
  cohort.batches[0][4] = np.inf
  state, metrics = program.next(program.initialize(), cohort)
  assert metrics.clients_non_finite == 1
  assert driver.messages(metrics).clients_not_sent == 1
  bits = (64 + 6 * 3) if name == 'fed_paq' else 64 * 6
  assert driver.messages(metrics).total_uplink_bits == 9 * bits
  assert metrics.clients_used == 10
  assert not np.all(np.isfinite(cases.point_of(state)))


@pytest.mark.parametrize('name, weights, gamma', [
    ('fed_avg', (1.0,) * 4, 0.3),
    ('minibatch_sgd', (0.25,) * 4, 0.0),
])
def test_is_local_update_at_the_rates_reported(data, name, weights, gamma):
  """Minibatch-SGD also as L steps at gamma = 0, not as one large batch."""
  member = cases.build(cases.MEMBERS[name])
  other = process_lib.build_local_update(
      cases.build_model(),
      theta=theta.Theta(weights),
      batch_size=2,
      client_learning_rate=gamma,
      server_optimizer=server_optimizers.build_sgd(0.3, dtype='float64'),
  )
  program = cases.execution.compile_process(
      other, devices=cases.CPU, jit='off'
  )
  state = program.initialize()
  for after, metrics in cases.run(member, cases.compiled(member), data, 3):
    drawn = data.cohort(int(after.round_num) - 1)
    state, expected = program.next(
        state, client_work.ClientBatches(drawn.batches, drawn.num_examples)
    )
    np.testing.assert_allclose(
        cases.point_of(after), cases.point_of(state), rtol=1e-12
    )
    for column in (
        'update_norm', 'client_learning_rate', 'server_learning_rate'
    ):
      np.testing.assert_allclose(
          getattr(metrics, column), getattr(expected, column), rtol=1e-12
      )


@pytest.mark.parametrize('name, rates', [
    ('minibatch_sgd', (0.0, 0.25)), ('fed_avg', (0.25, 0.25)),
    ('fed_paq', (0.25, 0.25)), ('fed_com', (0.25, 0.25 * 7.0)),
])
def test_step_size_stands_for_the_rates(name, rates):
  settings = dataclasses.replace(cases.MEMBERS[name], step_size=0.25)
  if name == 'fed_com':
    settings = dataclasses.replace(settings, server_factor=7.0)
  driver = cases.build(cases.MEMBERS[name])
  state = cases.initial_state(driver, cases.compiled(driver), settings)
  found = driver.process.get_hparams(state)
  names = ('client_learning_rate', 'server_learning_rate')
  assert tuple(float(found[n]) for n in names) == rates
  (field,) = [
      f for f in dataclasses.fields(settings) if f.name == 'step_size'
  ]
  assert field.metadata['ties'] == tuple(
      n for n, rate in zip(names, rates) if rate
  )


def test_every_client_rounds_by_its_own_number(data):
  driver = cases.build(cases.MEMBERS['fed_paq'])
  cohort = driver.cohort(data.cohort(0))
  assert cohort.seed.tolist() == list(range(10))
  assert cohort.seed.dtype == np.int64
