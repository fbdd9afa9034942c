"""Spec 1.5: what LocalUpdate becomes, against those algorithms themselves.

Each is written here as its own paper has it, over models and not over sums of
gradients, in NumPy; LocalUpdate runs by `process.next`. Three rounds on new
draws, logistic clients, float64.
"""

import functools

import numpy as np
import pytest

from tests.local_update import spec_examples
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import process as process_lib

BATCH_SIZE, ROUNDS = 3, 3
START = np.array(spec_examples.LOGISTIC_START)


@pytest.fixture(scope='module', autouse=True)
def in_process():
  execution.set_default_context()


@functools.lru_cache(maxsize=None)
def build(theta):
  return process_lib.build_local_update(
      spec_examples.logistic_model('float64'),
      theta=theta_lib.parse_theta(theta),
      batch_size=BATCH_SIZE,
      client_learning_rate=0.0,
      server_optimizer=server_optimizers.build_sgd(0.0),
  )


@functools.lru_cache(maxsize=None)
def draw_rounds(num_steps, num_clients):
  """Returns clients of each round; their data stay, their batches change."""
  generator = np.random.default_rng(num_steps)
  data = [
      (generator.normal(size=[7, 2]), generator.integers(0, 2, 7))
      for _ in range(num_clients)
  ]
  return [
      [
          spec_examples.logistic_batches(
              client,
              generator.integers(0, 7, size=[num_steps, BATCH_SIZE]),
              'float64',
          )
          for client in data
      ]
      for _ in range(ROUNDS)
  ]


def check(theta, gamma, eta, num_clients, next_model):
  """Compares LocalUpdate with an algorithm, round by round.

  Args:
    theta: The Theta weights.
    gamma: The client rate.
    eta: The server rate.
    num_clients: M.
    next_model: The algorithm: maps x and a list over the clients, of lists over
      their steps, of batches to the next x.
  """
  process = build(theta)
  num_steps = theta_lib.parse_theta(theta).num_steps
  rates = {'client_learning_rate': gamma, 'server_learning_rate': eta}
  state, x = process.set_hparams(process.initialize(), rates), START
  for clients in draw_rounds(num_steps, num_clients):
    state, _ = process.next(state, clients)
    before = x
    x = next_model(x, [list(zip(*client.batches)) for client in clients])
    np.testing.assert_allclose(
        state.model_weights.trainable[0], x, rtol=0, atol=1e-12
    )
    assert np.abs(x - before).max() > 1e-3


def gradient(x, *batches):
  """The gradient of the mean loss over the examples of all these batches."""
  joined = (np.concatenate(leaves) for leaves in zip(*batches))
  return spec_examples.logistic_gradient(x, *joined)


def local_model(x, batches, rate):
  """The model after steps of SGD."""
  for batch in batches:
    x = x - rate * gradient(x, batch)
  return x


@pytest.mark.parametrize('gamma', [0.0, 0.8, 100.0])
def test_minibatch_sgd_by_theta_1(gamma):
  """One client, batches of B, rate eta; gamma plays no part."""
  check('1:1', gamma, 0.3, 1, lambda x, clients: (
      x - 0.3 * gradient(x, clients[0][0])
  ))


def test_minibatch_sgd_by_gamma_0_and_theta_1_to_k():
  """One client, batches of K B, rate K eta: gradients are summed."""
  check('1:4', 0.0, 0.1, 1, lambda x, clients: (
      x - 4 * 0.1 * gradient(x, *clients[0])
  ))


def test_minibatch_sgd_by_gamma_0_and_theta_k():
  """One client, batches of B, rate eta, of which the last counts."""
  check('k4', 0.0, 0.3, 1, lambda x, clients: (
      x - 0.3 * gradient(x, clients[0][-1])
  ))


def test_distributed_minibatch_sgd_by_theta_1():
  """M clients, batches of M B in all, rate eta."""
  check('1:1', 0.8, 0.3, 3, lambda x, clients: (
      x - 0.3 * gradient(x, *(client[0] for client in clients))
  ))


def test_distributed_minibatch_sgd_by_gamma_0():
  """M clients, batches of M K B in all, rate K eta."""
  check('1:4', 0.0, 0.1, 3, lambda x, clients: (
      x - 4 * 0.1 * gradient(x, *sum(clients, []))
  ))


def test_lookahead_with_one_client():
  """K fast steps of SGD, then the slow weights go a share of the way."""

  def next_model(slow, clients):
    fast = local_model(slow, clients[0], 0.4)
    return slow + (0.1 / 0.4) * (fast - slow)

  check('1:4', 0.4, 0.1, 1, next_model)


def test_fed_avg_and_local_sgd_by_equal_rates():
  """The mean of the models of the clients."""
  check('1:4', 0.4, 0.4, 3, lambda x, clients: (
      np.mean([local_model(x, client, 0.4) for client in clients], axis=0)
  ))


def test_reptile_by_a_server_rate_of_its_own():
  """Towards that mean, by a share that may exceed 1."""

  def next_model(x, clients):
    models = [local_model(x, client, 0.4) for client in clients]
    return x + 1.5 * np.mean([model - x for model in models], axis=0)

  check('1:4', 0.4, 1.5 * 0.4, 3, next_model)


def test_first_order_maml_by_theta_k_plus_1():
  """K = 3 steps, then the gradient of a new batch where they lead."""

  def next_model(x, clients):
    gradients = [
        gradient(local_model(x, client[:3], 0.4), client[3])
        for client in clients
    ]
    return x - 0.3 * np.mean(gradients, axis=0)

  check('k4', 0.4, 0.3, 3, next_model)


@pytest.mark.parametrize('theta', ['0.5,0,2,1', '0,3', '2,2,2', '0,0,0,0,0.1'])
def test_any_theta_as_differences_of_local_models(theta):
  """g_k = (x_k - x_{k+1}) / gamma, weighted by theta_k."""
  weights = theta_lib.parse_theta(theta).weights

  def next_model(x, clients):
    updates = []
    for client in clients:
      models = [local_model(x, client[:k], 0.4) for k in range(len(client) + 1)]
      updates.append(np.dot(weights, -np.diff(models, axis=0)) / 0.4)
    return x - 0.3 * np.mean(updates, axis=0)

  check(theta, 0.4, 0.3, 3, next_model)
