"""Rows are added and subtracted as their dense gradients are.

Options of the local steps: NumPy, theory, stock FedProx; defaults.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.local_update import spec_examples
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import inner_loop
from tff_localupdate.local_update import local_steps
from tff_localupdate.local_update import process as process_lib
from tff_localupdate.theory import surrogate

_POINT = {'table': np.arange(12.0).reshape(4, 3), 'bias': np.ones(2)}
_ROWS = np.array([[1.0, 2, 3], [10, 20, 30], [100, 200, 300]])
_DENSE = np.array([[0.0, 0, 0], [101, 202, 303], [0, 0, 0], [10, 20, 30]])


def _gradient():
  rows = tf.IndexedSlices(tf.constant(_ROWS), tf.constant([1, 3, 1]), [4, 3])
  return {'table': rows, 'bias': tf.constant([5.0, 7], tf.float64)}


def _point():
  return tf.nest.map_structure(tf.constant, _POINT)


@pytest.mark.parametrize('function, sign', [
    (local_steps.add, 1), (local_steps.subtract, -1)
])
def test_rows_that_come_twice_count_twice(function, sign):
  found = function(_point(), _gradient(), lambda g: 0.5 * g)
  np.testing.assert_array_equal(
      found['table'], _POINT['table'] + sign * 0.5 * _DENSE
  )
  np.testing.assert_array_equal(
      found['bias'], _POINT['bias'] + sign * np.array([2.5, 3.5])
  )
  found = function(_point(), _gradient())
  np.testing.assert_array_equal(
      found['table'], _POINT['table'] + sign * _DENSE
  )


def _looked_up_loss(weights, indices):
  return tf.reduce_sum(tf.gather(weights, indices) ** 3)


def _dense_loss(weights, indices):
  one_hot = tf.one_hot(indices, 6, dtype=weights.dtype)
  return tf.reduce_sum(tf.matmul(one_hot, weights) ** 3)


_OPTIONS = {
    'plain': local_steps.PLAIN,
    'factors': local_steps.LocalSteps(step_factors=(1.0, 0.5, 2.0, 1.0)),
    'proximal': local_steps.LocalSteps(proximal_strength=0.3),
    'momentum': local_steps.LocalSteps(optimizer='momentum'),
}


@pytest.mark.parametrize('jit_compile', [None, True])
@pytest.mark.parametrize('theta', [(1, 1, 1, 1), (0, 0, 0, 2), (1, 0, 2, 3)])
@pytest.mark.parametrize('options', _OPTIONS)
def test_inner_loop_equals_that_of_dense_gradients(
    options, theta, jit_compile
):
  weights = np.random.default_rng(0).normal(size=(6, 3))
  batches = np.array([[0, 3, 3], [1, 0, 5], [3, 3, 3], [0, 1, 2]])

  def run(loss_fn):
    compiled = tf.function(
        lambda: inner_loop.inner_loop(
            loss_fn, weights, batches, 0.05, theta_lib.Theta(theta),
            _OPTIONS[options],
        ),
        jit_compile=jit_compile,
    )
    return compiled().numpy()

  expected = run(_dense_loss)
  assert np.abs(expected).min(axis=1).tolist()[4] == 0  # A row of no batch.
  np.testing.assert_allclose(run(_looked_up_loss), expected, rtol=1e-12)


@pytest.mark.parametrize('options, expected', [
    ('plain', True), ('factors', True), ('proximal', False),
    ('momentum', False),
])
def test_rows_are_kept_where_absent_rows_do_not_move(options, expected):
  assert _OPTIONS[options].takes_slices == expected


START = np.array(spec_examples.LOGISTIC_START)


def transcribe(gradient_fn, x, batches, gamma, weights, steps):
  """q in NumPy, written from the docstring of `LocalSteps`."""
  start, q = x, np.zeros_like(x)
  velocity = np.zeros_like(x)
  accumulator = np.full_like(x, steps.initial_accumulator or 0.0)
  for k, (theta_k, batch) in enumerate(zip(weights, batches)):
    g = gradient_fn(x, *batch) + steps.proximal_strength * (x - start)
    q = q + theta_k * g
    d = g
    if steps.optimizer == 'momentum':
      d = velocity = steps.momentum * velocity + g
    if steps.optimizer == 'adagrad':
      accumulator = accumulator + g**2
      d = g / np.sqrt(accumulator + steps.epsilon)
    factor = 1.0 if steps.step_factors is None else steps.step_factors[k]
    x = x - gamma * factor * d
  return q


def run(batches, gamma, theta, steps, start=START, jit=None):
  @tf.function(jit_compile=jit)
  def q(gamma):
    return inner_loop.inner_loop(
        lambda w, batch: spec_examples.logistic_loss(w[0], batch),
        (tf.constant(start),),
        tuple(map(tf.constant, batches)),
        gamma,
        theta_lib.parse_theta(theta),
        steps,
    )[0]

  return q(tf.constant(gamma, tf.float64)).numpy()


def random_batches(seed, num_steps):
  generator = np.random.default_rng(seed)
  return (
      generator.normal(size=[num_steps, 3, 2]),
      generator.integers(0, 2, size=[num_steps, 3]).astype(float),
  )


CASES = [
    {'step_factors': (1.0, 0.5, 0.0, 2.0)},
    {'proximal_strength': 0.7},
    {'optimizer': 'momentum'},
    {'optimizer': 'momentum', 'momentum': 0.5},
    {'optimizer': 'adagrad'},
    {'optimizer': 'adagrad', 'initial_accumulator': 0.0, 'epsilon': 1e-3},
    {
        'optimizer': 'momentum',
        'step_factors': (0.1, 1.0, 3.0, 0.0),
        'proximal_strength': 0.2,
    },
    {'optimizer': 'adagrad', 'step_factors': (1, 2, 3, 4)},
]


@pytest.mark.parametrize('settings', CASES)
def test_options_equal_a_transcription(settings):
  steps = local_steps.LocalSteps(**settings)
  for theta in ('1:4', 'k4', '0.5,0,2,1'):
    weights = theta_lib.parse_theta(theta).weights
    for gamma in (0.0, 0.4):
      batches = random_batches(len(theta), 4)
      expected = transcribe(
          spec_examples.logistic_gradient,
          START,
          zip(*batches),
          gamma,
          weights,
          steps,
      )
      found = run(batches, gamma, theta, steps)
      np.testing.assert_allclose(found, expected, rtol=1e-12)
      if gamma:
        plain = run(batches, gamma, theta, local_steps.PLAIN)
        assert np.abs(found - plain).max() > 1e-3
  compiled = run(batches, gamma, theta, steps, jit=True)
  np.testing.assert_allclose(compiled, found, rtol=1e-12)


@pytest.mark.parametrize('theta', ['1:4', 'k4', '0.5,0,2,1'])
def test_gamma_sequence_has_the_update_matrix_of_the_theory(theta):
  """q = Q A (x - c), Q = sum_k theta_k prod_{l<k} (I - gamma_l A)."""
  generator = np.random.default_rng(7)
  gamma, factors = 0.3, (1.0, 0.25, 2.0, 0.5)
  matrix = generator.normal(size=[3, 3])
  hessian = matrix @ matrix.T / 3
  center, x = generator.normal(size=[2, 3])
  theta = theta_lib.parse_theta(theta)
  update_matrix, product = np.zeros([3, 3]), np.eye(3)
  for theta_k, factor in zip(theta.weights, factors):
    update_matrix += theta_k * product
    product = product @ (np.eye(3) - gamma * factor * hessian)
  batches = (
      tf.constant(np.tile(hessian, [4, 1, 1, 1])),
      tf.constant(np.tile(center, [4, 1, 1])),
  )
  found = inner_loop.inner_loop(
      spec_examples.quadratic_loss,
      tf.constant(x),
      batches,
      gamma,
      theta,
      local_steps.LocalSteps(step_factors=factors),
  )
  gradient = hessian @ (x - center)
  np.testing.assert_allclose(found, update_matrix @ gradient, rtol=1e-12)
  rates = [gamma * factor for factor in factors]
  (same,) = surrogate.update_matrices(hessian[None], theta, rates)
  np.testing.assert_allclose(update_matrix, same, rtol=1e-12)


def test_momentum_sums_gradients_and_not_velocities():
  """g_k = 1 for all k: q = 3, though the weights move by 1, 1.9 and 2.71."""
  q = inner_loop.inner_loop(
      lambda x, batch: tf.reduce_sum(x * batch),
      tf.constant([5.0], tf.float64),
      tf.ones([3, 1], tf.float64),
      1.0,
      theta_lib.Theta.ones(3),
      local_steps.LocalSteps(optimizer='momentum'),
  )
  np.testing.assert_array_equal(q, [3.0])


def test_defaults_leave_the_graph_as_it_is():
  """`LocalSteps()` adds not one operation; each option adds some."""
  batches = tuple(map(tf.constant, random_batches(0, 4)))

  def operations(*steps):
    @tf.function
    def q(weights, gamma):
      return inner_loop.inner_loop(
          spec_examples.logistic_loss,
          weights,
          batches,
          gamma,
          theta_lib.Theta.ones(4),
          *steps,
      )

    weights = tf.constant(START)
    graph = q.get_concrete_function(weights, tf.constant(0.1, tf.float64)).graph
    functions = graph.as_graph_def().library.function
    return [op.type for op in graph.get_operations()], sorted(
        [node.op for node in function.node_def] for function in functions
    )

  plain = operations()
  assert operations(local_steps.LocalSteps()) == plain
  for settings in CASES:
    assert operations(local_steps.LocalSteps(**settings)) != plain


PROX_GAMMA, PROX_MU, PROX_RATE = 0.5, 1.0, 0.6


def prox_clients():
  rows = [[[0, 0], [2, 1], [1, 2]], [[1, 1], [0, 1], [1, 0]]]
  return [
      spec_examples.logistic_batches(client, indices, 'float32')
      for client, indices in zip(spec_examples.LOGISTIC, rows)
  ]


def proximal_model(mu, center):
  """The logistic model, mu/2 |x - center|^2 in its loss."""
  center = np.array(center, np.float32)

  @tf.function
  def predict(weights, x, training=True):
    del training
    (w,), _ = weights
    return tf.linalg.matvec(x, w), tf.reduce_sum(tf.square(w - center))

  def loss(output, label, sample_weight=None):
    del sample_weight
    losses = spec_examples.logistic_example_loss(output[0], label)
    return tf.reduce_mean(losses) + mu / 2 * output[1]

  return tff.learning.models.FunctionalModel(
      initial_weights=((center,), ()),
      predict_on_batch_fn=predict,
      loss_fn=loss,
      input_spec=(tf.TensorSpec([None, 2]), tf.TensorSpec([None])),
  )


def run_stock_round(build_process, model):
  """Returns the weights after a round of a process of tff.learning."""
  execution.set_default_context()
  sgd = tff.learning.optimizers.build_sgdm
  process = build_process(model, sgd(PROX_GAMMA), sgd(PROX_RATE))
  data = [
      tf.data.Dataset.from_tensor_slices(client.batches)
      for client in prox_clients()
  ]
  state = process.next(process.initialize(), data).state
  return np.asarray(process.get_model_weights(state).trainable[0])


def test_proximal_term_gives_the_model_delta_of_fed_prox():
  """Three rounds: with eta = r gamma they are those of stock unweighted FedAvg,
  server rate r, whose model has the proximal term in its loss."""
  execution.set_default_context()
  process = process_lib.build_local_update(
      spec_examples.logistic_model('float32'),
      theta=theta_lib.Theta.ones(3),
      batch_size=2,
      client_learning_rate=PROX_GAMMA,
      server_optimizer=server_optimizers.build_sgd(PROX_RATE * PROX_GAMMA),
      local_steps=local_steps.LocalSteps(proximal_strength=PROX_MU),
  )
  state = process.initialize()
  for _ in range(3):
    (received,) = state.model_weights.trainable
    expected, without = (
        run_stock_round(
            tff.learning.algorithms.build_unweighted_fed_avg,
            proximal_model(mu, received),
        )
        for mu in (PROX_MU, 0.0)
    )
    state, _ = process.next(state, prox_clients())
    found = np.asarray(state.model_weights.trainable[0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-7)
    assert np.abs(found - without).max() > 1e-3


def test_fed_prox_of_tff_has_the_other_sign():
  """TFF 0.87.0 steps along grad f - mu (x - x_1), away from x_1.

  When this fails TFF has been mended, and its FedProx has to equal ours.
  """
  stock = run_stock_round(
      lambda model, client, server: (
          tff.learning.algorithms.build_unweighted_fed_prox(
              model, PROX_MU, client, server
          )
      ),
      spec_examples.logistic_model('float32'),
  )

  def after_round(mu):
    deltas = []
    for client in prox_clients():
      x = START
      for batch in zip(*client.batches):
        g = spec_examples.logistic_gradient(x, *batch) + mu * (x - START)
        x = x - PROX_GAMMA * g
      deltas.append(START - x)
    return START - PROX_RATE * np.mean(deltas, axis=0)

  np.testing.assert_allclose(stock, after_round(-PROX_MU), rtol=0, atol=2e-7)
  assert np.abs(stock - after_round(PROX_MU)).max() > 0.05


def test_process_takes_the_steps_and_starts_anew_each_round():
  steps = local_steps.LocalSteps(
      optimizer='momentum', step_factors=(1, 0.5, 2), proximal_strength=0.3
  )
  process = process_lib.build_local_update(
      spec_examples.logistic_model('float64'),
      theta=theta_lib.parse_theta('1,1,2'),
      batch_size=2,
      client_learning_rate=0.1,
      server_optimizer=server_optimizers.build_sgd(0.2),
      local_steps=steps,
  )
  clients = [
      spec_examples.logistic_batches(client, [[0, 1], [1, 1], [0, 0]], float)
      for client in spec_examples.LOGISTIC
  ]
  cohort = tf.nest.map_structure(lambda *leaves: np.stack(leaves), *clients)
  for jit in ('on', 'off'):
    program = execution.compile_process(process, jit=jit)
    state, x = program.initialize(), START
    for gamma in (0.4, 0.1):
      state = process.set_hparams(state, {'client_learning_rate': gamma})
      state, metrics = program.next(state, cohort)
      q = [
          transcribe(
              spec_examples.logistic_gradient,
              x,
              zip(*client.batches),
              gamma,
              (1.0, 1.0, 2.0),
              steps,
          )
          for client in clients
      ]
      x = x - 0.2 * np.mean(q, axis=0)
      assert metrics.client_learning_rate == gamma
    np.testing.assert_allclose(state.model_weights.trainable[0], x, rtol=1e-12)
    assert program.num_compiled == 1


def test_optimizers_fill_in_their_defaults():
  adagrad = local_steps.LocalSteps(optimizer='adagrad', epsilon=1e-3)
  assert dataclasses.astuple(adagrad) == (
      'adagrad', None, 0.1, 1e-3, None, 0.0
  )
  assert local_steps.LocalSteps(optimizer='momentum').momentum == 0.9
  assert local_steps.LocalSteps(step_factors=[1, 0]).step_factors == (1.0, 0.0)
  assert local_steps.checked(None, 3) == local_steps.LocalSteps()


@pytest.mark.parametrize(
    'settings, message',
    [
        ({'optimizer': 'adam'}, "optimizer must be one of .* found 'adam'"),
        ({'momentum': 0.9}, "momentum must be given with optimizer='momentum'"),
        (
            {'optimizer': 'momentum', 'epsilon': 1.0},
            "epsilon must be given with optimizer='adagrad' only, found 1.0",
        ),
        (
            {'optimizer': 'momentum', 'momentum': 1.0},
            r'momentum must be a number in \[0, 1\), found 1.0',
        ),
        ({'optimizer': 'adagrad', 'epsilon': 0.0}, 'epsilon must .* found 0.0'),
        (
            {'optimizer': 'adagrad', 'initial_accumulator': -1.0},
            'initial_accumulator must .* found -1.0',
        ),
        ({'step_factors': (1.0, -1.0)}, 'step_factors must .* found -1.0'),
        ({'step_factors': (np.inf,)}, 'step_factors must .* found inf'),
        ({'proximal_strength': -0.1}, 'proximal_strength must .* found -0.1'),
    ],
)
def test_settings_are_checked(settings, message):
  with pytest.raises(ValueError, match=message):
    local_steps.LocalSteps(**settings)


def test_number_of_factors_is_checked():
  steps = local_steps.LocalSteps(step_factors=(1.0, 0.5))
  message = 'step_factors must be 3 numbers, .* found 2'
  with pytest.raises(ValueError, match=message):
    local_steps.checked(steps, 3)
  with pytest.raises(ValueError, match=message):
    run(random_batches(0, 3), 0.1, '1:3', steps)
