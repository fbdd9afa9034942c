"""LocalUpdate by `process.next`: spec values, transcriptions, edge cases."""

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
from tff_localupdate.local_update import process as process_lib
from tff_localupdate.local_update import server_step

TOLERANCES = [('float64', 1e-9), ('float32', 1e-5)]

# The examples that the two logistic clients of G21 draw.
G21_DRAWS = ([[0, 0], [2, 1]], [[1, 1], [0, 1]])


@pytest.fixture(scope='module', autouse=True)
def in_process():
  execution.set_default_context()


def build(
    model, theta='1:3', gamma=0.3, optimizer=None, batch_size=1, **kwargs
):
  return process_lib.build_local_update(
      model,
      theta=theta_lib.parse_theta(theta),
      batch_size=batch_size,
      client_learning_rate=gamma,
      server_optimizer=optimizer or server_optimizers.build_sgd(0.05),
      **kwargs,
  )


@functools.lru_cache(maxsize=None)
def logistic_process(dtype='float64', theta='1:2', batch_size=2):
  """A process that tests share; they set their own rates in its state."""
  return build(
      spec_examples.logistic_model(dtype), theta, batch_size=batch_size
  )


def start(process, gamma, eta):
  rates = {'client_learning_rate': gamma, 'server_learning_rate': eta}
  return process.set_hparams(process.initialize(), rates)


def run(process, clients, rounds=1, state=None):
  state = process.initialize() if state is None else state
  for _ in range(rounds):
    state, metrics = process.next(state, clients)
  return state, metrics


def weights_of(state):
  return np.asarray(state.model_weights.trainable[0])


def logistic_clients(indices=G21_DRAWS, dtype='float64'):
  return [
      spec_examples.logistic_batches(client, rows, dtype)
      for client, rows in zip(spec_examples.LOGISTIC, indices)
  ]


def transcribe_q(client, x, gamma, weights=(1.0, 1.0)):
  return spec_examples.transcribe_inner_loop(
      spec_examples.logistic_gradient, x, zip(*client.batches), gamma, weights
  )


@pytest.mark.parametrize('dtype, tolerance', TOLERANCES)
def test_g16_quadratics(dtype, tolerance):
  process = build(spec_examples.quadratic_model(dtype))
  clients = [
      spec_examples.quadratic_batches(client, [[0]] * 3, dtype)
      for client in spec_examples.QUADRATICS
  ]
  state, _ = run(process, clients, rounds=3)
  assert weights_of(state).dtype == dtype
  np.testing.assert_allclose(
      weights_of(state), (0.8238417020, 1.0855046162), rtol=0, atol=tolerance
  )
  assert np.asarray(state.round_num) == 3


@pytest.mark.parametrize('dtype, tolerance', TOLERANCES)
def test_g20_logistic_of_unequal_clients(dtype, tolerance):
  """Client 1 in full batches of 3; client 2, of 2 examples, repeated to 6."""
  model = spec_examples.logistic_model(dtype)
  optimizer = server_optimizers.build_sgd(0.3, dtype=dtype)
  process = build(model, '1:3', 0.5, optimizer, batch_size=6)
  rows = ([[0, 1, 2, 0, 1, 2]] * 3, [[0, 1, 0, 1, 0, 1]] * 3)
  state, metrics = run(process, logistic_clients(rows, dtype), rounds=2)
  np.testing.assert_allclose(
      weights_of(state), (-0.1047678975, 0.1309666997), rtol=0, atol=tolerance
  )
  assert metrics.examples_used == 36


@pytest.mark.parametrize('dtype, tolerance', TOLERANCES)
def test_g21_logistic_of_drawn_batches(dtype, tolerance):
  process = logistic_process(dtype)
  state, _ = run(
      process, logistic_clients(dtype=dtype), state=start(process, 0.5, 0.3)
  )
  np.testing.assert_allclose(
      weights_of(state), (0.0296375394, -0.0512897380), rtol=0, atol=tolerance
  )


@pytest.mark.parametrize('dtype, tolerance', TOLERANCES)
@pytest.mark.parametrize(
    'bias_correction, expected',
    [
        (True, (-0.0203974585, 1.0274431696)),
        (False, (-0.0242530787, 1.0351789541)),
    ],
)
def test_g23_g24_yogi(bias_correction, expected, dtype, tolerance):
  process = build(
      spec_examples.linear_model(dtype, (0.0, 1.0)),
      '1:1',
      optimizer=server_optimizers.build_yogi(
          0.01, bias_correction=bias_correction
      ),
  )
  state = process.initialize()
  for gradient in ((1.0, -2.0), (0.5, -2.0), (-1.0, 0.1)):
    clients = [spec_examples.linear_batches([gradient], dtype)]
    state, _ = process.next(state, clients)
  np.testing.assert_allclose(
      weights_of(state), expected, rtol=0, atol=tolerance
  )


@pytest.mark.parametrize('dtype, tolerance', TOLERANCES)
@pytest.mark.parametrize('name', ['g15', 'g17', 'g19'])
def test_q_is_recovered_from_the_weights(name, dtype, tolerance):
  if name == 'g15':
    model = spec_examples.quadratic_model(dtype)
    client = (spec_examples.QUADRATICS[0], [[0]] * 3)
    batches_fn, gamma = spec_examples.quadratic_batches, 0.3
    x, q = (1.0, 1.0), (0.47625, 2.055)
  elif name == 'g17':
    model = spec_examples.quadratic_model(dtype, (1.0,))
    client = (spec_examples.SCALAR_QUADRATICS, [[0, 1], [1, 1], [0, 0]])
    batches_fn, gamma = spec_examples.quadratic_batches, 0.2
    x, q = (1.0,), (-1.72,)
  else:
    model = spec_examples.logistic_model(dtype)
    client = (spec_examples.LOGISTIC[0], [[0, 1, 2]] * 3)
    batches_fn, gamma = spec_examples.logistic_batches, 0.5
    x, q = spec_examples.LOGISTIC_START, (-0.9173310426, -0.0295667362)
  batch_size = len(client[1][0])
  eta = 1.0
  optimizer = server_optimizers.build_sgd(eta)
  process = build(model, '1:3', gamma, optimizer, batch_size)
  state, metrics = run(process, [batches_fn(*client, dtype)])
  found = (np.asarray(x, dtype) - weights_of(state)) / eta
  np.testing.assert_allclose(found, q, rtol=0, atol=tolerance)
  np.testing.assert_allclose(
      metrics.update_norm, np.linalg.norm(q), rtol=0, atol=tolerance
  )


def test_random_rounds_equal_a_transcription():
  """Theta of three kinds, rates per round, an empty client now and then."""
  generator = np.random.default_rng(1)
  for theta in ('1:4', 'k4', '0.5,0,2,1'):
    weights = theta_lib.parse_theta(theta).weights
    process = logistic_process('float64', theta, 3)
    state = process.initialize()
    x = np.array(spec_examples.LOGISTIC_START)
    for t in range(4):
      gamma, eta = generator.random(2)
      rates = {'client_learning_rate': gamma, 'server_learning_rate': eta}
      state = process.set_hparams(state, rates)
      clients = [
          spec_examples.logistic_batches(
              (generator.normal(size=[5, 2]), generator.integers(0, 2, 5)),
              generator.integers(0, 5, size=[4, 3]),
              'float64',
          )
          for _ in range(3)
      ]
      used = clients if t % 2 else clients[:2]
      if len(used) == 2:
        clients[2] = spec_examples.emptied(clients[2], np.nan)
      state, metrics = process.next(state, clients)
      losses = [
          spec_examples.logistic_value(
              x, *(leaf.reshape([12, *leaf.shape[2:]]) for leaf in c.batches)
          )
          for c in used
      ]
      q = np.mean([transcribe_q(c, x, gamma, weights) for c in used], axis=0)
      x = x - eta * q
      np.testing.assert_allclose(weights_of(state), x, rtol=1e-12)
      np.testing.assert_allclose(metrics.update_norm, np.linalg.norm(q))
      np.testing.assert_allclose(metrics.loss_before_training, np.mean(losses))
      assert metrics.clients_used == len(used)
      assert metrics.clients_empty == 3 - len(used)
      assert metrics.examples_used == 12 * len(used)


def test_gamma_zero_makes_progress():
  process = logistic_process()
  clients = logistic_clients()
  state = start(process, 0.0, 0.3)
  state, metrics = run(process, clients, rounds=20, state=state)
  x = np.array(spec_examples.LOGISTIC_START)
  for _ in range(20):
    x = x - 0.3 * np.mean([transcribe_q(c, x, 0.0) for c in clients], axis=0)
  np.testing.assert_allclose(weights_of(state), x, rtol=1e-12)
  _, first = run(process, clients, state=start(process, 0.0, 0.3))
  assert metrics.loss_before_training < first.loss_before_training - 0.05
  assert metrics.client_learning_rate == 0.0


def test_momentum_of_the_server():
  clients = logistic_clients()
  process = build(
      spec_examples.logistic_model('float64'),
      '1:2',
      0.5,
      server_optimizers.build_sgd(0.3, 0.9),
      batch_size=2,
  )
  state, _ = run(process, clients, rounds=3)
  x, velocity = np.array(spec_examples.LOGISTIC_START), 0.0
  for _ in range(3):
    q = np.mean([transcribe_q(c, x, 0.5) for c in clients], axis=0)
    velocity = 0.9 * velocity + q
    x = x - 0.3 * velocity
  np.testing.assert_allclose(weights_of(state), x, rtol=1e-12)


def test_stock_optimizer_takes_the_place_of_ours():
  clients = logistic_clients(dtype='float32')
  model = spec_examples.logistic_model('float32')
  ours = build(
      model, '1:2', 0.5, server_optimizers.build_adam(0.1), batch_size=2
  )
  stock = build(
      model, '1:2', 0.5, tff.learning.optimizers.build_adam(0.1), batch_size=2
  )
  left, _ = run(ours, clients, rounds=3)
  right, metrics = run(stock, clients, rounds=3)
  np.testing.assert_allclose(weights_of(left), weights_of(right), atol=1e-6)
  assert metrics.server_learning_rate == np.float32(0.1)


def test_empty_client_changes_nothing_but_the_count():
  process = logistic_process()
  clients = logistic_clients()
  empty = spec_examples.emptied(clients[0], np.nan)
  without, _ = run(process, clients, state=start(process, 0.5, 0.3))
  state, metrics = run(
      process, [empty, *clients, empty], state=start(process, 0.5, 0.3)
  )
  np.testing.assert_allclose(weights_of(state), weights_of(without), rtol=1e-14)
  assert (metrics.clients_used, metrics.clients_empty) == (2, 2)
  assert metrics.clients_non_finite == 0
  assert metrics.examples_used == 8


def test_round_of_empty_clients_keeps_every_bit():
  process = build(
      spec_examples.logistic_model('float64'),
      '1:2',
      0.5,
      server_optimizers.build_yogi(0.1),
      batch_size=2,
  )
  clients = logistic_clients()
  before, _ = run(process, clients, rounds=2)
  empty = [spec_examples.emptied(client) for client in clients]
  after, metrics = run(process, empty, state=before)
  assert np.isnan(metrics.loss_before_training)
  assert (metrics.clients_used, metrics.clients_empty) == (0, 2)
  assert metrics.update_norm == 0.0
  for old, new in zip(
      tf.nest.flatten((before.model_weights, before.optimizer)),
      tf.nest.flatten((after.model_weights, after.optimizer)),
  ):
    assert np.asarray(old).tobytes() == np.asarray(new).tobytes()


def test_diverged_client_is_counted_and_not_repaired():
  process = logistic_process()
  clients = logistic_clients()
  clients[1].batches[0][1, 0, 0] = np.inf
  state, metrics = run(process, clients, state=start(process, 0.5, 0.3))
  assert metrics.clients_non_finite == 1
  assert metrics.clients_used == 2
  assert not np.isfinite(weights_of(state)).all()
  assert not np.isfinite(metrics.update_norm)


def test_full_loss_is_the_mean_over_all_examples_of_each_client():
  process = build(
      spec_examples.logistic_model('float64'),
      '1:2',
      batch_size=2,
      loss_before_training='full',
      example_loss_fn=spec_examples.logistic_example_loss,
  )
  clients = []
  for drawn, data in zip(logistic_clients(), spec_examples.LOGISTIC):
    rows = 4 - len(data[1])
    padded = (
        np.pad(data[0], [(0, rows), (0, 0)], constant_values=np.nan),
        np.pad(data[1], [(0, rows)], constant_values=np.nan),
    )
    clients.append(client_work.ClientBatchesAndExamples(*drawn, padded))
  state, metrics = run(process, clients)
  np.testing.assert_allclose(
      metrics.loss_before_training, 0.7729979891, atol=1e-9  # Spec G22.
  )
  drawn_state, _ = run(logistic_process(), logistic_clients())
  np.testing.assert_allclose(
      weights_of(state), weights_of(drawn_state), rtol=1e-14
  )


def test_loss_of_the_first_batches():
  process = build(
      spec_examples.logistic_model('float64'),
      '1:2',
      batch_size=2,
      loss_before_training='first_batch',
  )
  clients = logistic_clients()
  state, metrics = run(process, clients)
  x = np.array(spec_examples.LOGISTIC_START)
  losses = [
      spec_examples.logistic_value(x, *(leaf[0] for leaf in client.batches))
      for client in clients
  ]
  np.testing.assert_allclose(metrics.loss_before_training, np.mean(losses))
  assert metrics.examples_used == 8


@pytest.mark.parametrize('theta', ['1:2', '0.5,2'])
@pytest.mark.parametrize('loss', ['drawn', 'first_batch', 'full'])
def test_xla_compiles_the_round_and_agrees(loss, theta):
  is_full = loss == 'full'
  process = build(
      spec_examples.logistic_model('float64'),
      theta,
      batch_size=2,
      loss_before_training=loss,
      example_loss_fn=spec_examples.logistic_example_loss if is_full else None,
  )
  clients = logistic_clients()
  if is_full:
    rows = [tuple(a[:2] for a in data) for data in spec_examples.LOGISTIC]
    clients = [
        client_work.ClientBatchesAndExamples(client.batches, np.int32(2), data)
        for client, data in zip(clients, rows)
    ]
  cohort = tf.nest.map_structure(lambda *leaves: np.stack(leaves), *clients)
  compiled, plain = (
      execution.compile_process(process, jit=jit).next(
          process.initialize(), cohort
      )
      for jit in ('on', 'off')
  )
  for a, b in zip(tf.nest.flatten(compiled), tf.nest.flatten(plain)):
    np.testing.assert_allclose(a, b, rtol=1e-13)


def test_rates_change_without_another_compilation():
  process = logistic_process()
  program = execution.compile_process(process)
  clients = logistic_clients()
  cohort = tf.nest.map_structure(lambda *leaves: np.stack(leaves), *clients)
  state = program.initialize()
  for gamma, eta in ((0.5, 0.3), (0.0, 0.2), (2.0, 0.1)):
    x = weights_of(state)
    state = process.set_hparams(
        state, {'client_learning_rate': gamma, 'server_learning_rate': eta}
    )
    state, metrics = program.next(state, cohort)
    q = np.mean([transcribe_q(c, x, gamma) for c in clients], axis=0)
    np.testing.assert_allclose(weights_of(state), x - eta * q, rtol=1e-12)
    assert metrics.client_learning_rate == gamma
    assert metrics.server_learning_rate == eta
  assert program.num_compiled == 1


def test_methods_are_plain_functions_of_the_state():
  process = logistic_process()
  state = process.initialize()
  assert isinstance(state, server_step.LocalUpdateState)
  state = process.set_hparams(state, {'client_learning_rate': 0.7})
  rates = {k: float(v) for k, v in process.get_hparams(state).items()}
  assert rates == {'client_learning_rate': 0.7, 'server_learning_rate': 0.05}
  new = tff.learning.models.ModelWeights((np.array([3.0, 4.0]),), ())
  state = process.set_model_weights(state, new)
  np.testing.assert_array_equal(
      process.get_model_weights(state).trainable[0], [3.0, 4.0]
  )


AGGREGATORS = {
    'default': lambda: None,
    'clipping': lambda: tff.aggregators.clipping_factory(
        0.5, tff.aggregators.UnweightedMeanFactory()
    ),
    'robust': lambda: tff.learning.robust_aggregator(weighted=False),
    'dp': lambda: tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
        0.5, clients_per_round=2, clip=1.0
    ),
}


@pytest.mark.parametrize('kind', ['drawn', 'full'])
@pytest.mark.parametrize('dtype', ['float32', 'float64'])
@pytest.mark.parametrize('aggregator', AGGREGATORS)
def test_compiles_to_map_reduce_form(aggregator, dtype, kind):
  if aggregator == 'dp' and dtype == 'float64':
    pytest.skip('the noise of TFF is float32')
  example_loss_fn = spec_examples.logistic_example_loss
  process = build(
      spec_examples.logistic_model(dtype),
      aggregator=AGGREGATORS[aggregator](),
      loss_before_training=kind,
      example_loss_fn=example_loss_fn if kind == 'full' else None,
  )
  spec_examples.assert_map_reduce_form(process)


def test_aggregator_sees_each_update_and_reports():
  process = build(
      spec_examples.linear_model('float64', (0.0, 0.0)),
      '1:2',
      0.5,
      server_optimizers.build_sgd(1.0),
      aggregator=AGGREGATORS['clipping'](),
  )
  clients = [
      spec_examples.linear_batches([[1.0, 1.0], [2.0, 3.0]], 'float64'),
      spec_examples.linear_batches([[0.0, 0.1], [0.2, 0.0]], 'float64'),
  ]
  clients.append(spec_examples.emptied(clients[0]))
  state, metrics = run(process, clients)
  # The first update, (3, 4), is clipped to norm 0.5, to the float32 precision
  # of the norm in TFF; the empty client is in no denominator.
  expected = -np.mean([[0.3, 0.4], [0.2, 0.1]], axis=0)
  np.testing.assert_allclose(weights_of(state), expected, rtol=1e-7)
  assert metrics.aggregator['clipped_count'] == 1


def test_keras_model_takes_the_steps_of_its_formula():
  layers = [
      tf.keras.layers.Dense(3, 'tanh', input_shape=(2,)),
      tf.keras.layers.Dense(1),
  ]
  model = tff.learning.models.functional_model_from_keras(
      tf.keras.Sequential(layers),
      tf.keras.losses.MeanSquaredError(),
      (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1])),
  )
  generator = np.random.default_rng(0)
  x = generator.normal(size=[2, 3, 4, 2]).astype(np.float32)
  y = generator.normal(size=[2, 3, 4, 1]).astype(np.float32)
  process = build(model, '1:3', 0.1, batch_size=4)
  state, _ = run(
      process,
      [client_work.ClientBatches((x[i], y[i]), np.int32(9)) for i in range(2)],
  )
  start = [tf.constant(w) for w in model.initial_weights[0]]
  expected = [w.numpy() for w in start]
  for i in range(2):
    w = start
    for k in range(3):
      with tf.GradientTape() as tape:
        tape.watch(w)
        output = tf.tanh(x[i, k] @ w[0] + w[1]) @ w[2] + w[3]
        loss = tf.reduce_mean((output - y[i, k]) ** 2)
      gradients = tape.gradient(loss, w)
      w = [a - 0.1 * g for a, g in zip(w, gradients)]
      expected = [a - 0.05 * g / 2 for a, g in zip(expected, gradients)]
  assert len(expected) == len(state.model_weights.trainable) == 4
  for found, weight in zip(state.model_weights.trainable, expected):
    np.testing.assert_allclose(found, weight, atol=1e-6)


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'batch_size': 0}, 'batch_size must be a whole number .* found 0'),
        ({'gamma': -1.0}, 'client_learning_rate must be .* found -1.0'),
        (
            {'loss_before_training': 'none'},
            "loss_before_training must be one of drawn, .* found 'none'",
        ),
        (
            {'loss_before_training': 'full'},
            "example_loss_fn must be given with .*'full', .* found None",
        ),
        (
            {'example_loss_fn': spec_examples.logistic_example_loss},
            "example_loss_fn must be given .* with 'drawn'",
        ),
        (
            {'num_padded_examples': 8},
            "num_padded_examples must be given .* found 8 with 'drawn'",
        ),
        (
            {
                'loss_before_training': 'full',
                'example_loss_fn': spec_examples.logistic_example_loss,
                'num_padded_examples': 0,
            },
            'num_padded_examples must be a whole number .* found 0',
        ),
    ],
)
def test_values_of_arguments_are_checked(changes, message):
  with pytest.raises(ValueError, match=message):
    build(spec_examples.logistic_model('float32'), **changes)


def test_types_of_arguments_are_checked():
  with pytest.raises(TypeError, match='^model must be of type FunctionalModel'):
    build(tf.keras.Sequential())
  with pytest.raises(TypeError, match='^aggregator must be of type Unweighted'):
    build(
        spec_examples.logistic_model('float32'),
        aggregator=tff.aggregators.MeanFactory(),
    )
  for changes in ({'theta': '1:2'}, {'local_steps': 'momentum'}):
    (name,) = changes
    with pytest.raises(TypeError, match=f'^{name} must be of type .* found'):
      process_lib.build_local_update(**{
          'model': spec_examples.logistic_model('float32'),
          'theta': theta_lib.Theta.ones(2),
          'batch_size': 1,
          'client_learning_rate': 0.1,
          'server_optimizer': server_optimizers.build_sgd(0.1),
          **changes,
      })
