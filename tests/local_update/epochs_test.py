"""Batches of epochs: each example once an epoch, short last batches.

Epochs by `process.next`: G18, the bias of shuffling, variable sizes.
"""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.local_update import spec_examples
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import epoch_draws
from tff_localupdate.local_update import epochs as epochs_lib
from tff_localupdate.local_update import local_steps as local_steps_lib
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import sampling_bias


def draw(seed=0, num_examples=7, **changes):
  sizes = {'num_epochs': 2, 'batch_size': 3, 'num_padded_steps': 8, **changes}
  return epoch_draws.draw_epochs(
      np.random.default_rng(seed), num_examples, **sizes
  )


def test_each_example_comes_once_an_epoch():
  draws = draw()
  assert (draws.indices.shape, draws.indices.dtype) == ((8, 3), np.int64)
  assert draws.batch_sizes.dtype == np.int32
  np.testing.assert_array_equal(draws.batch_sizes, [3, 3, 1, 3, 3, 1, 0, 0])
  epochs = [
      np.concatenate([draws.indices[k, : draws.batch_sizes[k]] for k in steps])
      for steps in (range(3), range(3, 6))
  ]
  for epoch in epochs:
    np.testing.assert_array_equal(np.sort(epoch), range(7))
  assert epochs[0].tolist() != epochs[1].tolist()


def test_orders_are_uniform():
  """Of 6 orders of 3 examples each comes within 4 deviations of its share."""
  orders = [
      tuple(draw(seed, 3, num_epochs=1, batch_size=1).indices[:3, 0])
      for seed in range(3000)
  ]
  _, counts = np.unique(orders, axis=0, return_counts=True)
  assert len(counts) == 6
  assert np.abs(counts - 500).max() < 4 * np.sqrt(3000 * 5 / 36)


def test_small_client_takes_one_full_step_an_epoch():
  draws = draw(num_examples=2, num_epochs=3, batch_size=5)
  np.testing.assert_array_equal(draws.batch_sizes, [2] * 3 + [0] * 5)
  np.testing.assert_array_equal(
      np.sort(draws.indices[:3, :2]), [[0, 1]] * 3
  )


def test_client_without_examples_has_no_batch():
  draws = draw(num_examples=0)
  assert not draws.batch_sizes.any() and not draws.indices.any()


@pytest.mark.parametrize(
    'num_examples, num_epochs, batch_size, steps',
    [(7, 2, 3, 6), (6, 2, 3, 4), (2, 5, 20, 5), (0, 5, 20, 0), (1, 1, 1, 1)],
)
def test_number_of_steps(num_examples, num_epochs, batch_size, steps):
  assert epoch_draws.count_steps(num_examples, num_epochs, batch_size) == steps


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'num_examples': -1}, 'num_examples must .* found -1'),
        ({'num_epochs': 0}, 'num_epochs must .* found 0'),
        ({'batch_size': 1.5}, 'batch_size must .* found 1.5'),
        ({'num_padded_steps': 5}, 'num_padded_steps must be .* = 6, found 5'),
    ],
)
def test_arguments_are_checked(changes, message):
  with pytest.raises(ValueError, match=message):
    draw(**changes)


START = np.array(spec_examples.LOGISTIC_START)
EPOCHS, BATCH_SIZE, PADDED_STEPS = 2, 3, 7


@pytest.fixture(scope='module', autouse=True)
def in_process():
  execution.set_default_context()


def build(
    model, num_padded_steps=PADDED_STEPS, batch_size=BATCH_SIZE, gamma=0.5,
    eta=0.3, **kwargs,
):
  return epochs_lib.build_local_update_epochs(
      model,
      num_padded_steps=num_padded_steps,
      batch_size=batch_size,
      client_learning_rate=gamma,
      server_optimizer=server_optimizers.build_sgd(eta),
      **kwargs,
  )


@functools.lru_cache(maxsize=None)
def logistic_process(dtype='float64'):
  return build(spec_examples.logistic_model(dtype))


def weights_of(state):
  return np.asarray(state.model_weights.trainable[0])


def quadratic_client(client, draws):
  """The `ClientEpochs` of a quadratic client, given its `EpochDraws`."""
  drawn = spec_examples.quadratic_batches(client, draws.indices, 'float64')
  return client_work.ClientEpochs(
      drawn.batches, draws.batch_sizes, drawn.num_examples
  )


def logistic_client(data, draws, dtype='float64', garbage=np.nan):
  """The same of a logistic client, garbage in all rows that do not count."""
  batches = tuple(array[draws.indices].astype(dtype) for array in data)
  padding = np.arange(batches[1].shape[1]) >= draws.batch_sizes[:, None]
  for leaf in batches:
    leaf[padding] = garbage
  return client_work.ClientEpochs(
      batches, draws.batch_sizes, np.int32(len(data[1]))
  )


def random_clients(generator, sizes, dtype='float64'):
  """Logistic clients of these sizes, with draws for E epochs."""
  clients, data = [], []
  for size in sizes:
    data.append((
        generator.normal(size=[size, 2]), generator.integers(0, 2, size)
    ))
    padded = data[-1] if size else (np.zeros([1, 2]), np.zeros([1]))
    draws = epoch_draws.draw_epochs(
        generator,
        size,
        num_epochs=EPOCHS,
        batch_size=BATCH_SIZE,
        num_padded_steps=PADDED_STEPS,
    )
    client = logistic_client(padded, draws, dtype)
    clients.append(client._replace(num_examples=np.int32(size)))
  return clients, data


def ragged_batches(client):
  """The batches that count, without their padding."""
  return [
      tuple(leaf[k, :size] for leaf in client.batches)
      for k, size in enumerate(client.batch_sizes) if size
  ]


def transcribe_q(client, x, gamma):
  batches = ragged_batches(client)
  return spec_examples.transcribe_inner_loop(
      spec_examples.logistic_gradient, x, batches, gamma, [1.0] * len(batches)
  )


def mean_q_of_epochs(client, start, gamma, batch_size):
  """E[q] over all orders of a client's examples, by the real process."""
  num_examples = len(client[1])
  num_steps = epoch_draws.count_steps(num_examples, 1, batch_size)
  process = build(
      spec_examples.quadratic_model('float64', start),
      num_steps + 1,  # One too many.
      batch_size,
      gamma,
      1.0,
  )
  cohort = []
  for order in itertools.permutations(range(num_examples)):
    indices = np.zeros([num_steps + 1, batch_size], int)
    indices.ravel()[:num_examples] = order
    starts = batch_size * np.arange(num_steps + 1)
    sizes = np.clip(num_examples - starts, 0, batch_size).astype(np.int32)
    draws = epoch_draws.EpochDraws(indices, sizes)
    cohort.append(quadratic_client(client, draws))
  # Each order is a client: the mean of the round is that of the orders.
  state, metrics = process.next(process.initialize(), cohort)
  assert metrics.examples_used == num_examples * len(cohort)
  return start - weights_of(state)


def test_g18_shuffled_epoch():
  """q is -2.6 and -1.4 in the two orders: -2.0, where -1.6 is unbiased."""
  q = mean_q_of_epochs(
      spec_examples.SCALAR_QUADRATICS, np.array([1.0]), 0.2, batch_size=1
  )
  np.testing.assert_allclose(q, [-2.0], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    'num_examples, batch_size', [(2, 1), (3, 2), (4, 2), (5, 3)]
)
def test_bias_of_a_shuffled_epoch_is_the_formula(num_examples, batch_size):
  """E[q] - grad ftilde = gamma Cov / (n - 1), also with a short last batch."""
  generator = np.random.default_rng(num_examples)
  matrices = generator.normal(size=[num_examples, 2, 2])
  matrices = matrices @ np.swapaxes(matrices, -1, -2) + 0.1 * np.eye(2)
  centers = generator.normal(size=[num_examples, 2])
  x, gamma = generator.normal(size=2), 0.3
  q = mean_q_of_epochs((matrices, centers), x, gamma, batch_size)
  hessian = matrices.mean(axis=0)
  gradients = (matrices @ (x - centers)[..., None])[..., 0]
  gradient = gradients.mean(axis=0)
  surrogate_gradient = gradient + (np.eye(2) - gamma * hessian) @ gradient
  covariance = np.mean((matrices @ gradients[..., None])[..., 0], axis=0)
  covariance -= hessian @ gradient
  bias = gamma * covariance / (num_examples - 1)
  np.testing.assert_allclose(q - surrogate_gradient, bias, atol=1e-12)
  assert np.abs(bias).max() > 1e-2
  theory = sampling_bias.epoch_bias(
      quadratics.QuadraticExamples(matrices, centers),
      x,
      theta_lib.Theta.ones(2),
      gamma,
  )
  np.testing.assert_allclose(theory, bias, atol=1e-12)


def test_random_rounds_equal_a_transcription_of_variable_sizes():
  """Clients of 1 to 9 examples, rates per round, an empty client."""
  generator = np.random.default_rng(1)
  process = logistic_process()
  state, x = process.initialize(), START
  for sizes in ([1, 2, 9], [3, 4, 0], [6, 0, 5], [7, 8, 1]):
    gamma, eta = generator.random(2)
    rates = {'client_learning_rate': gamma, 'server_learning_rate': eta}
    state = process.set_hparams(state, rates)
    clients, data = random_clients(generator, sizes)
    state, metrics = process.next(state, clients)
    used = [i for i, size in enumerate(sizes) if size]
    q = np.mean([transcribe_q(clients[i], x, gamma) for i in used], axis=0)
    # Of whole epochs the loss before training is that of all data.
    loss = np.mean([spec_examples.logistic_value(x, *data[i]) for i in used])
    x = x - eta * q
    np.testing.assert_allclose(weights_of(state), x, rtol=1e-12)
    np.testing.assert_allclose(metrics.loss_before_training, loss, rtol=1e-12)
    np.testing.assert_allclose(metrics.update_norm, np.linalg.norm(q))
    assert metrics.clients_used == len(used)
    assert metrics.clients_empty == 3 - len(used)
    assert metrics.examples_used == EPOCHS * sum(sizes)


@pytest.mark.parametrize('num_examples', [1, 2, 3])
def test_small_client_takes_one_full_gradient_step_an_epoch(num_examples):
  generator = np.random.default_rng(num_examples)
  (client,), (data,) = random_clients(generator, [num_examples])
  assert np.count_nonzero(client.batch_sizes) == EPOCHS
  process = logistic_process()
  state, _ = process.next(process.initialize(), [client])
  x, q = START, 0.0
  for _ in range(EPOCHS):
    gradient = spec_examples.logistic_gradient(x, *data)
    x, q = x - 0.5 * gradient, q + gradient
  np.testing.assert_allclose(weights_of(state), START - 0.3 * q, rtol=1e-12)


def test_padding_changes_no_bit():
  clients, _ = random_clients(np.random.default_rng(2), [4, 9])
  longer = build(spec_examples.logistic_model('float64'), PADDED_STEPS + 5)
  padded = [
      client_work.ClientEpochs(
          tuple(
              np.pad(leaf, [(0, 5)] + [(0, 0)] * (leaf.ndim - 1))
              for leaf in client.batches
          ),
          np.pad(client.batch_sizes, [(0, 5)]),
          client.num_examples,
      )
      for client in clients
  ]
  left, _ = logistic_process().next(logistic_process().initialize(), clients)
  right, _ = longer.next(longer.initialize(), padded)
  assert weights_of(left).tobytes() == weights_of(right).tobytes()


def test_equals_stock_unweighted_fed_avg_over_the_same_batches():
  """Server rate r = eta / gamma, clients with 2, 4 and 6 steps; float32."""
  model = spec_examples.logistic_model('float32')
  sgd = tff.learning.optimizers.build_sgdm
  stock = tff.learning.algorithms.build_unweighted_fed_avg(
      model, sgd(0.5), sgd(0.6)
  )
  ours = logistic_process('float32')
  generator = np.random.default_rng(3)
  left, right = ours.initialize(), stock.initialize()
  for _ in range(2):
    clients, _ = random_clients(generator, [2, 5, 9], 'float32')
    sequences = [
        tf.data.Dataset.from_generator(
            functools.partial(ragged_batches, client),
            output_signature=model.input_spec,
        )
        for client in clients
    ]
    left, _ = ours.next(left, clients)
    right = stock.next(right, sequences).state
  expected = stock.get_model_weights(right).trainable[0]
  np.testing.assert_allclose(weights_of(left), expected, rtol=0, atol=1e-6)


def test_loss_of_the_first_batch():
  process = build(
      spec_examples.logistic_model('float64'),
      loss_before_training='first_batch',
  )
  clients, _ = random_clients(np.random.default_rng(4), [2, 5])
  state, metrics = process.next(process.initialize(), clients)
  losses = [
      spec_examples.logistic_value(START, *ragged_batches(client)[0])
      for client in clients
  ]
  np.testing.assert_allclose(metrics.loss_before_training, np.mean(losses))
  same, _ = logistic_process().next(logistic_process().initialize(), clients)
  np.testing.assert_array_equal(weights_of(state), weights_of(same))


def test_options_of_the_local_steps():
  """Heavy ball at rates that fall; the factors are as many as padded steps."""
  steps = local_steps_lib.LocalSteps(
      optimizer='momentum', step_factors=tuple(0.5**k for k in range(7))
  )
  process = build(spec_examples.logistic_model('float64'), local_steps=steps)
  clients, _ = random_clients(np.random.default_rng(5), [2, 9])
  state, _ = process.next(process.initialize(), clients)
  updates = []
  for client in clients:
    x, q, velocity = START, 0.0, 0.0
    for k, batch in enumerate(ragged_batches(client)):
      gradient = spec_examples.logistic_gradient(x, *batch)
      q, velocity = q + gradient, 0.9 * velocity + gradient
      x = x - 0.5 * 0.5**k * velocity
    updates.append(q)
  expected = START - 0.3 * np.mean(updates, axis=0)
  np.testing.assert_allclose(weights_of(state), expected, rtol=1e-12)


def test_xla_agrees_and_compiles_once():
  process = logistic_process()
  generator = np.random.default_rng(6)
  programs = [
      execution.compile_process(process, jit=jit) for jit in ('on', 'off')
  ]
  states = [program.initialize() for program in programs]
  for sizes in ([1, 2, 9], [5, 0, 6]):
    clients, _ = random_clients(generator, sizes)
    cohort = tf.nest.map_structure(lambda *leaves: np.stack(leaves), *clients)
    results = [p.next(s, cohort) for p, s in zip(programs, states)]
    states = [state for state, _ in results]
    for a, b in zip(*map(tf.nest.flatten, results)):
      np.testing.assert_allclose(a, b, rtol=1e-12)
  assert [program.num_compiled for program in programs] == [1, 1]


def convolution():
  return tf.keras.Sequential([
      tf.keras.layers.Conv2D(2, 3, activation='relu', input_shape=(6, 6, 1)),
      tf.keras.layers.MaxPool2D(),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(3),
  ]), tf.TensorSpec([None, 6, 6, 1])


def embedding():
  return tf.keras.Sequential([
      tf.keras.layers.Embedding(5, 2, input_length=4),
      tf.keras.layers.GlobalAveragePooling1D(),
      tf.keras.layers.Dense(3),
  ]), tf.TensorSpec([None, 4], tf.int32)


@pytest.mark.parametrize('make', [convolution, embedding])
def test_xla_cuts_rows_off_batches_of_other_models(make):
  """XLA knows no shapes that change; it has to pad and mask by itself."""
  tf.keras.utils.set_random_seed(1)
  keras_model, features = make()
  model = tff.learning.models.functional_model_from_keras(
      keras_model,
      tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      (features, tf.TensorSpec([None], tf.int64)),
  )
  process = build(model, 3, 4)
  generator = np.random.default_rng(7)
  x = generator.integers(0, 5, size=[2, 3, 4, *features.shape[1:]])
  cohort = client_work.ClientEpochs(
      (
          x.astype(features.dtype.as_numpy_dtype),
          generator.integers(0, 3, size=[2, 3, 4]),
      ),
      np.array([[4, 4, 1], [3, 0, 0]], np.int32),
      np.array([9, 3], np.int32),
  )
  compiled, plain = (
      execution.compile_process(process, jit=jit).next(
          process.initialize(), cohort
      )
      for jit in ('on', 'off')
  )
  assert plain[1].examples_used == 12
  for a, b in zip(tf.nest.flatten(compiled), tf.nest.flatten(plain)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_compiles_to_map_reduce_form(dtype):
  process = build(
      spec_examples.logistic_model(dtype),
      aggregator=tff.learning.robust_aggregator(weighted=False),
  )
  spec_examples.assert_map_reduce_form(process)


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'num_padded_steps': 0}, 'num_padded_steps must be .* found 0'),
        ({'batch_size': 0}, 'batch_size must be a whole number .* found 0'),
        ({'gamma': -1.0}, 'client_learning_rate must be .* found -1.0'),
        (
            {'loss_before_training': 'full'},
            "loss_before_training must be one of drawn, first_batch, found 'f",
        ),
        (
            {'local_steps': local_steps_lib.LocalSteps(step_factors=(1.0,))},
            'step_factors must be 7 numbers, .* found 1',
        ),
    ],
)
def test_values_of_arguments_are_checked(changes, message):
  with pytest.raises(ValueError, match=message):
    build(spec_examples.logistic_model('float32'), **changes)
