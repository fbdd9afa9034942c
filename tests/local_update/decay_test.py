"""LocalUpdateDecay around LocalUpdate and around stock FedAvg."""

import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.local_update import spec_examples
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import decay
from tff_localupdate.local_update import learning_process
from tff_localupdate.local_update import plateau
from tff_localupdate.local_update import process as process_lib
from tff_localupdate.local_update import rates as rates_lib

G27_LOSSES = (5.0, 4.0, 3.95, 3.85, 3.86, 3.0)
ALGORITHM_3 = plateau.PlateauRule(1, 1, 0, 0.1)
THETA = theta_lib.Theta.ones(2)


@pytest.fixture(scope='module')
def context():
  return execution.InProcessContext()


@pytest.fixture(autouse=True)
def in_process(context):
  tff.framework.set_default_context(context)


def _given_loss_model():
  """Its loss is its input, whatever the weights: a loss as one likes it."""

  @tf.function
  def predict(weights, x, training=True):
    del training
    return x + 0.0 * weights[0][0]

  spec = tf.TensorSpec([None, 1], tf.float64)
  return tff.learning.models.FunctionalModel(
      initial_weights=((np.zeros([1]),), ()),
      predict_on_batch_fn=predict,
      loss_fn=lambda output, label, sample_weight=None: tf.reduce_mean(output),
      input_spec=(spec, spec),
  )


def _client_with_loss(loss, num_examples=1):
  batches = np.full([2, 1, 1], loss)
  return client_work.ClientBatches((batches, batches), np.int32(num_examples))


@pytest.fixture(scope='module')
def given_loss_process():
  """LocalUpdate in float64, both rates 1, with losses given by the clients."""
  return process_lib.build_local_update(
      _given_loss_model(), theta=THETA, batch_size=1, client_learning_rate=1.0,
      server_optimizer=server_optimizers.build_sgd(1.0),
  )


def _run(process, cohorts, state=None):
  """Returns the rounds after which the client rate decays, metrics, state."""
  state = process.initialize() if state is None else state
  rounds, history = [], []
  before = int(state.plateaus[0].num_decays)
  for round_num, cohort in enumerate(cohorts, 1):
    state, metrics = process.next(state, cohort)
    history.append(metrics)
    if metrics.client_decays > before:
      before = metrics.client_decays
      rounds.append(round_num)
  return rounds, history, state


def _rates(process, state):
  hparams = process.get_hparams(state)
  return [float(value) for value in tf.nest.flatten(hparams)]


@pytest.mark.parametrize(
    'rule, expected',
    [('canonical', [200, 400, 600]), ('callback', [200, 399, 598])],
)
def test_g27_constant_loss_through_local_update(
    given_loss_process, rule, expected):
  process = decay.build_local_update_decay(
      given_loss_process, rule=plateau.PlateauRule(100, 100, 100, rule=rule)
  )
  cohorts = [[_client_with_loss(1.7)]] * 600
  rounds, history, state = _run(process, cohorts)
  assert rounds == expected
  # A new rate acts from the next round on, and is logged there.
  first = expected[0]
  for round_num, rates in ((first, (1.0, 1.0)), (first + 1, (0.1, 0.9))):
    metrics = history[round_num - 1]
    assert (metrics.client_learning_rate, metrics.server_learning_rate) == rates
    # It is the rate that the process itself used.
    assert metrics.process.client_learning_rate == rates[0]
    assert metrics.process.server_learning_rate == rates[1]
  assert _rates(process, state) == pytest.approx([1e-3, 0.729], rel=1e-12)


def test_g27_algorithm_3_through_local_update(given_loss_process):
  process = decay.build_local_update_decay(given_loss_process, rule=ALGORITHM_3)
  cohorts = [[_client_with_loss(loss)] for loss in G27_LOSSES]
  rounds, history, state = _run(process, cohorts)
  assert rounds == [3, 5]
  assert _rates(process, state) == pytest.approx([0.01, 0.81], rel=1e-12)
  assert [m.loss for m in history] == list(G27_LOSSES)
  assert [m.average_loss for m in history] == list(G27_LOSSES)
  assert [m.server_decays for m in history] == [0, 0, 1, 1, 2, 2]


def _stock(build, num_inputs, loss, metric, rates):
  """Stock FedAvg of a linear model, with the metric `loss`.

  Built of a `model_fn`: of a functional model TFF keeps no client rate.
  """
  spec = [tf.TensorSpec([None, n], tf.float32) for n in (num_inputs, 1)]
  start = np.reshape([0.1, -0.2][:num_inputs], [-1, 1])

  def model_fn():
    layer = tf.keras.layers.Dense(
        1, use_bias=False, input_shape=(num_inputs,),
        kernel_initializer=tf.keras.initializers.Constant(start),
    )
    return tff.learning.models.from_keras_model(
        tf.keras.Sequential([layer]), loss=loss, input_spec=tuple(spec),
        metrics=[metric()],
    )

  sgd = tff.learning.optimizers.build_sgdm
  return build(model_fn, sgd(rates[0]), sgd(rates[1]))


def _stock_squares():
  """Both rates 1; with inputs 0 the loss is the label squared."""
  return _stock(
      tff.learning.algorithms.build_unweighted_fed_avg, 1,
      tf.keras.losses.MeanSquaredError(),
      lambda: tf.keras.metrics.MeanSquaredError('loss'),
      (1.0, 1.0),
  )


def _stock_logistic(build):
  """The logistic clients' model, client rate 0.5, server rate 0.6."""
  return _stock(
      build, 2, tf.keras.losses.BinaryCrossentropy(from_logits=True),
      lambda: tf.keras.metrics.BinaryCrossentropy('loss', from_logits=True),
      (0.5, 0.6),
  )


def _data_with_loss(loss, num_examples=1):
  zeros = np.zeros([num_examples, 1], np.float32)
  labels = np.full([num_examples, 1], math.sqrt(loss), np.float32)
  return tf.data.Dataset.from_tensors((zeros, labels))


@pytest.fixture(scope='module')
def stock_process():
  return _stock_squares()


def test_g27_algorithm_3_through_stock_fed_avg(stock_process):
  process = decay.build_local_update_decay(stock_process, rule=ALGORITHM_3)
  cohorts = [[_data_with_loss(loss)] for loss in G27_LOSSES]
  rounds, history, state = _run(process, cohorts)
  assert rounds == [3, 5]
  found = process.get_hparams(state)
  assert float(found['client_work']['learning_rate']) == pytest.approx(0.01)
  assert float(found['finalizer']['learning_rate']) == pytest.approx(0.81)
  np.testing.assert_allclose([m.loss for m in history], G27_LOSSES, rtol=1e-6)
  assert [float(m.client_learning_rate) for m in history] == pytest.approx(
      [1.0, 1.0, 1.0, 0.1, 0.1, 0.01]
  )


@pytest.mark.parametrize(
    'rule, expected',
    [('canonical', [200, 400, 600]), ('callback', [200, 399, 598])],
)
def test_g27_constant_loss_through_stock_fed_avg(
    stock_process, rule, expected):
  """Real rounds before, at and after each decay; between, the rule alone."""
  rule = plateau.PlateauRule(100, 100, 100, rule=rule)
  process = decay.build_local_update_decay(stock_process, rule=rule)
  data = [_data_with_loss(1.7)]
  state, metrics = process.next(process.initialize(), data)
  skip = tf.function(
      lambda state, count: tf.while_loop(
          lambda i, state: i < count,
          lambda i, state: (
              i + 1, plateau.update(rule, state, metrics.loss).state),
          (0, state),
      )[1]
  )
  done, decayed = 1, []
  for decay_round in expected:
    count = tf.constant(decay_round - 2 - done)
    state = state._replace(
        plateaus=tuple(skip(s, count) for s in state.plateaus)
    )
    done = decay_round - 2
    rounds, _, state = _run(process, [data] * 3, state)
    decayed.extend(done + r for r in rounds)
    done += 3
  assert decayed == expected
  found = process.get_hparams(state)
  assert float(found['client_work']['learning_rate']) == pytest.approx(1e-3)
  assert float(found['finalizer']['learning_rate']) == pytest.approx(0.729)


def _quadratic_process(gamma=0.3, eta=0.05, dtype='float64'):
  return process_lib.build_local_update(
      spec_examples.quadratic_model(dtype), theta=theta_lib.Theta.ones(3),
      batch_size=1, client_learning_rate=gamma,
      server_optimizer=server_optimizers.build_yogi(eta),
  )


def _quadratic_clients(dtype='float64'):
  return [
      spec_examples.quadratic_batches(client, [[0]] * 3, dtype)
      for client in spec_examples.QUADRATICS
  ]


def test_interrupted_in_the_middle_of_a_window_equals_never_stopped(context):
  def build():
    return decay.build_local_update_decay(
        _quadratic_process(), rule=plateau.PlateauRule(4, 3, 2, 0.1)
    )

  process = build()
  cohorts = [_quadratic_clients()] * 40
  expected, expected_history, expected_state = _run(process, cohorts)
  assert len(expected) >= 2
  # Stopped between a decay and the next, while window and counters are full of
  # what matters; saved as arrays, and read by a process built anew.
  stop = expected[0] + 3
  assert stop < expected[1]
  rounds, history, state = _run(process, cohorts[:stop])
  saved = [np.array(leaf) for leaf in tf.nest.flatten(state)]
  again = build()
  read = tf.nest.pack_sequence_as(again.initialize(), saved)
  more, more_history, state = _run(again, cohorts[stop:], read)
  assert rounds + [stop + r for r in more] == expected
  assert tf.nest.flatten(history + more_history) == tf.nest.flatten(
      expected_history
  )
  for a, b in zip(tf.nest.flatten(state), tf.nest.flatten(expected_state)):
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
  # Rates changed, and nothing was compiled anew.
  assert context.compiled_round(process.next).num_compiled == 1


def test_loss_is_that_of_the_broadcast_weights_before_training():
  """(24), with the rounds of Algorithm 1 in NumPy and decays by hand."""
  process = decay.build_local_update_decay(
      process_lib.build_local_update(
          spec_examples.quadratic_model('float64'),
          theta=theta_lib.Theta.ones(3), batch_size=1,
          client_learning_rate=0.3,
          server_optimizer=server_optimizers.build_sgd(0.05),
      ),
      rule=plateau.PlateauRule(1, 1, 0, 0.5), client_decay=0.5,
  )
  rounds, history, state = _run(process, [_quadratic_clients()] * 8)
  x, gamma, eta = np.array(spec_examples.QUADRATICS_START), 0.3, 0.05
  best, expected_rounds = math.inf, []
  for round_num in range(1, 9):
    loss = np.mean([
        spec_examples.quadratic_value(x, *client)
        for client in spec_examples.QUADRATICS
    ])
    assert history[round_num - 1].loss == pytest.approx(loss, abs=1e-12)
    x = x - eta * np.mean([
        spec_examples.transcribe_inner_loop(
            spec_examples.quadratic_gradient, x, [client] * 3, gamma, [1.0] * 3
        )
        for client in spec_examples.QUADRATICS
    ], axis=0)
    if loss < best - 0.5:
      best = loss
    else:
      gamma, eta = 0.5 * gamma, 0.9 * eta
      expected_rounds.append(round_num)
  assert rounds == expected_rounds != []
  weights = process.get_model_weights(state).trainable[0]
  np.testing.assert_allclose(weights, x, atol=1e-9)


@pytest.mark.parametrize('rule', plateau.RULES)
def test_rounds_without_clients_change_nothing_of_the_rule(
    given_loss_process, rule):
  process = decay.build_local_update_decay(
      given_loss_process, rule=plateau.PlateauRule(2, 2, 0, rule=rule)
  )
  empty = [_client_with_loss(0.0, num_examples=0)]
  loss = [_client_with_loss(2.0)]
  _, _, expected = _run(process, [loss] * 3)
  _, history, state = _run(
      process, [empty, loss, empty, [], loss, loss, empty]
  )
  assert [math.isnan(m.loss) for m in history] == [1, 0, 1, 1, 0, 0, 1]
  for a, b in zip(
      tf.nest.flatten(state.plateaus), tf.nest.flatten(expected.plateaus)
  ):
    np.testing.assert_array_equal(a, b)
  # The window is not poisoned: the next plateau is found.
  _, history, _ = _run(process, [loss] * 2, state)
  assert history[-1].client_decays > int(expected.plateaus[0].num_decays)


def test_stock_rounds_without_examples_change_nothing_of_the_rule(
    stock_process):
  """TFF reports a loss of 0 for them, which would be the best for ever."""
  process = decay.build_local_update_decay(stock_process, rule=ALGORITHM_3)
  data = _data_with_loss(2.0)
  diverging = tf.data.Dataset.from_tensors(
      (np.full([1, 1], 1e30, np.float32), np.zeros([1, 1], np.float32))
  )
  _, history, state = _run(
      process, [[data], [data.take(0)], [diverging], [data]]
  )
  losses = [float(m.process['client_work']['train']['loss']) for m in history]
  assert losses == pytest.approx([2.0, 0.0, 0.0, 2.0])
  assert [math.isnan(m.loss) for m in history] == [False, True, True, False]
  assert float(state.plateaus[0].best) == pytest.approx(2.0)
  assert [m.client_decays for m in history] == [0, 0, 0, 1]


def test_around_the_learning_process_of_local_update():
  process = decay.build_local_update_decay(
      learning_process.build_local_update_learning_process(
          _given_loss_model(), theta=THETA, client_learning_rate=1.0,
          server_optimizer=server_optimizers.build_sgd(1.0),
      ),
      rule=ALGORITHM_3,
  )
  cohorts = []
  for loss in G27_LOSSES:
    values = np.full([1, 1], loss)
    cohorts.append([tf.data.Dataset.from_tensors((values, values))])
  rounds, _, state = _run(process, cohorts)
  assert rounds == [3, 5]
  assert _rates(process, state) == pytest.approx([0.01, 0.81], rel=1e-12)


@pytest.fixture(scope='module')
def logistic_data():
  """Three full batches of each of the two clients."""
  return [
      tf.data.Dataset.from_tensor_slices(
          (x.astype(np.float32), y[:, None].astype(np.float32))
      ).batch(len(x)).repeat(3)
      for x, y in spec_examples.LOGISTIC
  ]


def test_callback_differences_4_to_6_are_those_of_the_process(logistic_data):
  """Loss and mean weighted by examples, as many steps as there are batches.

  The public callback sits on a process that weights by examples and goes
  through the data: so does the stock weighted FedAvg, and what decays around
  it decays by its loss. The canonical numbers are G20 and G22.
  """
  weighted = decay.build_local_update_decay(
      _stock_logistic(tff.learning.algorithms.build_weighted_fed_avg),
      rule=plateau.PlateauRule(rule='callback'),
  )
  one_batch = [data.take(1) for data in logistic_data]
  _, metrics = weighted.next(weighted.initialize(), one_batch)
  assert metrics.loss == pytest.approx(0.7508605373, abs=1e-6)  # difference 4
  canonical = decay.build_local_update_decay(
      process_lib.build_local_update(
          spec_examples.logistic_model('float32'),
          theta=theta_lib.Theta.ones(3), batch_size=6,
          client_learning_rate=0.5,
          server_optimizer=server_optimizers.build_sgd(0.3),
      )
  )
  full_batches = [
      spec_examples.logistic_batches(
          client, [list(range(len(client[1]))) * (6 // len(client[1]))] * 3,
          'float32',
      )
      for client in spec_examples.LOGISTIC
  ]
  found = {}
  for name, process, data in (
      ('weighted', weighted, logistic_data),
      ('canonical', canonical, full_batches),
  ):
    state = process.initialize()
    losses = []
    for _ in range(2):
      state, metrics = process.next(state, data)
      losses.append(metrics.loss)
    weights = np.ravel(process.get_model_weights(state).trainable[0])
    found[name] = (losses[0], weights)
  assert found['canonical'][0] == pytest.approx(0.7729979891, abs=1e-6)
  np.testing.assert_allclose(
      found['canonical'][1], [-0.1047678975, 0.1309666997], atol=1e-6
  )
  np.testing.assert_allclose(  # difference 5
      found['weighted'][1], [0.0293986, 0.0726918], atol=1e-6
  )
  # Difference 6: a client with more batches takes more steps, and sends more.
  lengths = []
  for num_batches in (1, 3):
    cohort = [logistic_data[0].take(num_batches)]
    state, _ = weighted.next(weighted.initialize(), cohort)
    moved = np.ravel(weighted.get_model_weights(state).trainable[0])
    lengths.append(np.linalg.norm(moved - spec_examples.LOGISTIC_START))
  assert lengths[1] > 1.5 * lengths[0]


def test_stock_fed_avg_in_the_scale_of_gradients_equals_local_update(
    logistic_data):
  """With eta = r gamma, both decays keep the two algorithms the same."""
  rule = plateau.PlateauRule(1, 1, 0, 10.0)  # Decays from round 2 on.
  stock = decay.build_local_update_decay(
      _stock_logistic(tff.learning.algorithms.build_unweighted_fed_avg),
      rule=rule, rates=rates_lib.tff_learning_rates('gradient'),
  )
  own = decay.build_local_update_decay(
      learning_process.build_local_update_learning_process(
          spec_examples.logistic_model('float32'),
          theta=theta_lib.Theta.ones(3), client_learning_rate=0.5,
          server_optimizer=server_optimizers.build_sgd(0.3),
      ),
      rule=rule,
  )
  flat_labels = [
      data.map(lambda x, y: (x, y[:, 0])) for data in logistic_data
  ]
  points = []
  for process, data in ((stock, logistic_data), (own, flat_labels)):
    _, history, state = _run(process, [data] * 4)
    assert [float(m.server_learning_rate) for m in history] == pytest.approx(
        [0.3, 0.3, 0.27, 0.243]
    )
    points.append(np.ravel(process.get_model_weights(state).trainable[0]))
  np.testing.assert_allclose(*points, atol=1e-6)


def test_hparams_and_weights_are_at_hand(given_loss_process):
  process = decay.build_local_update_decay(
      given_loss_process, rule=plateau.PlateauRule(3, 2, 0)
  )
  _, _, state = _run(process, [[_client_with_loss(2.0)]] * 4)
  hparams = process.get_hparams(state)
  hparams['client_learning_rate'] = 0.25
  changed = process.set_hparams(state, hparams)
  assert _rates(process, changed) == [0.25, 1.0]
  for a, b in zip(
      tf.nest.flatten(changed.plateaus), tf.nest.flatten(state.plateaus)
  ):
    np.testing.assert_array_equal(a, b)
  # The next decay starts from the rate that was set, in the same round.
  rounds, _, after = _run(process, [[_client_with_loss(2.0)]], changed)
  assert rounds == [1]
  assert _rates(process, after) == pytest.approx([0.025, 0.9])
  weights = tff.learning.models.ModelWeights((np.array([7.0]),), ())
  moved = process.set_model_weights(state, weights)
  assert float(process.get_model_weights(moved).trainable[0][0]) == 7.0


def test_loss_fn_takes_any_metric(given_loss_process):
  process = decay.build_local_update_decay(
      given_loss_process,
      lambda metrics: tf.cast(metrics.clients_used, tf.float32),
      rule=ALGORITHM_3,
  )
  cohorts = [[_client_with_loss(9.0)] * size for size in (3, 2, 2, 1)]
  assert _run(process, cohorts)[0] == [3]


def test_compiles_to_one_fused_round(given_loss_process):
  process = decay.build_local_update_decay(given_loss_process, rule=ALGORITHM_3)
  program = execution.compile_process(process)
  state, rounds = program.initialize(), []
  for loss in G27_LOSSES:
    cohort = tf.nest.map_structure(
        lambda leaf: np.stack([leaf] * 2), _client_with_loss(loss)
    )
    state, metrics = program.next(state, cohort)
    rounds.append(int(metrics.client_decays))
  assert rounds == [0, 0, 1, 1, 2, 2]


def test_refused(given_loss_process):
  build = decay.build_local_update_decay
  with pytest.raises(TypeError, match='process must be of type'):
    build(given_loss_process.next)
  plain = tff.templates.IterativeProcess(
      given_loss_process.initialize, given_loss_process.next
  )
  with pytest.raises(TypeError, match='process must have get_hparams'):
    build(plain)
  with pytest.raises(ValueError, match='client_decay'):
    build(given_loss_process, client_decay=1.5)
  with pytest.raises(ValueError, match='min_client_learning_rate'):
    build(given_loss_process, min_client_learning_rate=0.1)
  with pytest.raises(TypeError, match='rule must be of type'):
    build(given_loss_process, rule=100)
  spec = tf.TensorSpec([None, 1], tf.float32)
  functional = tff.learning.models.functional_model_from_keras(
      tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))]),
      tf.keras.losses.MeanSquaredError(), (spec, spec),
  )
  sgd = tff.learning.optimizers.build_sgdm(0.1)
  with pytest.raises(ValueError, match='rates must be given .* model_fn'):
    build(tff.learning.algorithms.build_unweighted_fed_avg(
        functional, sgd, sgd))
