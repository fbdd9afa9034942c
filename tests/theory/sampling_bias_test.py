"""The bias of epochs and of batches that are used again."""

import itertools

import numpy as np
import pytest

from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import sampling_bias
from tff_localupdate.theory import surrogate

Theta = theta_lib.Theta


def _client(seed, num_examples, dimension=2):
  rng = np.random.default_rng(seed)
  roots = rng.normal(size=(num_examples, dimension, dimension))
  return quadratics.QuadraticExamples(
      roots @ np.swapaxes(roots, 1, 2) / 2,
      rng.normal(size=(num_examples, dimension)),
  )


def _surrogate_gradient(client, x, theta, rate):
  hessian = surrogate.surrogate_hessians(client.hessian, theta, rate)
  return hessian @ (x - client.center)


def test_g18_shuffled_epoch():
  client = quadratics.QuadraticExamples([[[1.0]], [[3.0]]], [[0.0], [2.0]])
  x, theta = np.array([1.0]), Theta.ones(2)
  gradient = _surrogate_gradient(client, x, theta, 0.2)
  bias = sampling_bias.epoch_bias(client, x, theta, 0.2)
  assert gradient == pytest.approx(-1.6, abs=1e-12)
  assert gradient + bias == pytest.approx(-2.0, abs=1e-12)
  assert sampling_bias.epoch_update(client, x, theta, 0.2) == pytest.approx(
      -2.0, abs=1e-12
  )


def test_epoch_bias_by_enumeration():
  for seed in range(20):
    num_examples, batch_size = ((2, 1), (4, 1), (4, 2), (6, 2))[seed % 4]
    client = _client(seed, num_examples)
    x = np.random.default_rng(seed).normal(size=2)
    theta = Theta((1.0, 0.5 + seed))
    update = sampling_bias.epoch_update(client, x, theta, 0.3, batch_size)
    bias = sampling_bias.epoch_bias(client, x, theta, 0.3)
    np.testing.assert_allclose(
        update - _surrogate_gradient(client, x, theta, 0.3), bias, atol=1e-9
    )
    assert np.linalg.norm(bias) > 1e-4


def test_measured_epoch_bias_lies_in_its_interval():
  """10^5 shuffled runs, seed 2; 4 standard errors (99.99 %)."""
  client, x, theta = _client(3, 6), np.array([1.0, -1.0]), Theta.ones(2)
  rng = np.random.default_rng(2)
  orders = np.argsort(rng.random((100_000, 6)), axis=1)
  batches = orders[:, :4].reshape(-1, 2, 2)
  updates = sampling_bias.run_batches(client, x, theta, 0.3, batches)
  measured = updates.mean(axis=0) - _surrogate_gradient(client, x, theta, 0.3)
  errors = updates.std(axis=0) / np.sqrt(len(updates))
  bias = sampling_bias.epoch_bias(client, x, theta, 0.3)
  assert np.all(np.abs(measured - bias) <= 4.0 * errors)
  # The interval tells the bias from none.
  assert np.any(np.abs(measured) > 10.0 * errors)


def test_draws_with_replacement_have_no_bias():
  client, x = _client(5, 3), np.array([1.0, -1.0])
  theta = Theta((1.0, 0.0, 2.0))
  batches = np.array(list(itertools.product(range(3), repeat=3)))[..., None]
  updates = sampling_bias.run_batches(client, x, theta, 0.3, batches)
  np.testing.assert_allclose(
      updates.mean(axis=0), _surrogate_gradient(client, x, theta, 0.3),
      atol=1e-12,
  )


def test_reuse_bias_by_enumeration():
  for batch_size in (1, 2, 3):
    client, x = _client(batch_size, 3), np.array([0.5, 2.0])
    theta = Theta((1.0, 1.5))
    draws = np.array(list(itertools.product(range(3), repeat=batch_size)))
    batches = np.stack([draws, draws], axis=1)
    updates = sampling_bias.run_batches(client, x, theta, 0.3, batches)
    bias = sampling_bias.reuse_bias(client, x, theta, 0.3, batch_size)
    np.testing.assert_allclose(
        updates.mean(axis=0) - _surrogate_gradient(client, x, theta, 0.3),
        bias, atol=1e-12,
    )
    assert np.linalg.norm(bias) > 1e-4


def _enumerate_maml(client, x, rate, num_steps, batch_size, reuse):
  """The mean of K-MAML's q over all batches, by its definition."""
  draws = list(itertools.product(range(len(client.centers)),
                                 repeat=batch_size))
  total, count = 0.0, 0
  kinds = 1 if reuse else 2
  for batches in itertools.product(draws, repeat=kinds * num_steps):
    point, jacobian = x, np.eye(len(x))
    for step in range(num_steps):
      batch = list(batches[step])
      other = list(batches[-1 - step])  # The same one if K = 1 and reuse.
      if reuse:
        other = batch
      hessian = client.hessians[batch].mean(axis=0)
      gradient = hessian @ point - client.offsets[batch].mean(axis=0)
      point = point - rate * gradient
      inner = np.eye(len(x)) - rate * client.hessians[other].mean(axis=0)
      jacobian = jacobian @ inner
    total += jacobian @ client.gradients(point).mean(axis=0)
    count += 1
  return total / count


@pytest.mark.parametrize('num_steps, batch_size', [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize('reuse', [False, True])
def test_maml_with_mini_batches_by_enumeration(num_steps, batch_size, reuse):
  client, x, rate = _client(4, 3), np.array([0.5, 2.0]), 0.3
  found = sampling_bias.maml_update(
      client, x, rate, num_steps, batch_size, reuse=reuse
  )
  np.testing.assert_allclose(
      found,
      _enumerate_maml(client, x, rate, num_steps, batch_size, reuse),
      atol=1e-12,
  )
  gradient = surrogate.maml_gradient(
      client.hessian, client.center, x, rate, num_steps
  )
  gap = np.linalg.norm(found - gradient)
  assert gap > 1e-3 if reuse else gap < 1e-12


def test_refused():
  client, x = _client(1, 3), np.zeros(2)
  with pytest.raises(ValueError, match='two steps'):
    sampling_bias.epoch_bias(client, x, Theta.ones(3), 0.1)
  with pytest.raises(ValueError, match='two examples'):
    sampling_bias.epoch_bias(_client(1, 1), x, Theta.ones(2), 0.1)
  with pytest.raises(ValueError, match='at least 4 examples'):
    sampling_bias.epoch_update(client, x, Theta.ones(4), 0.1)
  with pytest.raises(ValueError, match='orders'):
    sampling_bias.epoch_update(_client(1, 12), x, Theta.ones(12), 0.1)
  with pytest.raises(ValueError, match='batches must have shape'):
    sampling_bias.run_batches(client, x, Theta.ones(2), 0.1, [[0, 1]])
  with pytest.raises(ValueError, match='batch_size'):
    sampling_bias.reuse_bias(client, x, Theta.ones(2), 0.1, 0)
