"""Exact moments against enumeration of every possible round."""

import itertools

import numpy as np
import pytest

from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import moments
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import reciprocal
from tff_localupdate.theory import surrogate

THETA = theta_lib.Theta((1.0, 0.5))
REFERENCE = np.array([0.3, -0.2])
START = np.array([1.0, 1.0])


def _clients():
  spectra = quadratics.random_spectra(
      1, num_clients=3, dimension=2, strong_convexity=0.5, smoothness=2.0
  )
  population = quadratics.random_population(2, spectra, center_deviation=1.0)
  return quadratics.random_examples(
      3, population, num_examples=2, hessian_noise=0.5, offset_noise=0.7
  )


def _enumerate_updates(clients, x, batch_size, rates):
  """All equally likely (client, q) of one client's draws, from the listing."""
  for i, client in enumerate(clients):
    draws = itertools.product(range(len(client.centers)), repeat=batch_size)
    for batches in itertools.product(list(draws), repeat=THETA.num_steps):
      point, update = np.array(x), np.zeros_like(x)
      for weight, rate, batch in zip(THETA.weights, rates, batches):
        gradient = np.mean(
            [client.hessians[z] @ (point - client.centers[z]) for z in batch],
            axis=0,
        )
        update = update + weight * gradient
        point = point - rate * gradient
      yield i, update


def _enumerate_round(points, clients, batch_size, rates, eta, distinct):
  """All x_{t+1} for M = 2 and equally likely x_t."""
  for x in points:
    updates = list(_enumerate_updates(clients, x, batch_size, rates))
    for (i, first), (j, second) in itertools.product(updates, repeat=2):
      if not distinct or i != j:
        yield x - eta * (first + second) / 2


@pytest.mark.parametrize('distinct', [False, True])
@pytest.mark.parametrize('batch_size', [1, 2])
@pytest.mark.parametrize('rates', [(0.3, 0.3), (0.4, 0.0)])
def test_one_round_by_enumeration(distinct, batch_size, rates):
  clients = _clients()
  sampling = moments.RoundSampling(clients, 2, batch_size, not distinct)
  arguments = dict(
      theta=THETA, client_learning_rate=rates, server_learning_rate=0.2
  )
  found = moments.next_moments(
      moments.start_at(START, REFERENCE), sampling, **arguments
  )
  points = np.array(list(
      _enumerate_round([START], clients, batch_size, rates, 0.2, distinct)
  )) - REFERENCE
  np.testing.assert_allclose(
      found.moments.mean, points.mean(axis=0), atol=1e-12
  )
  np.testing.assert_allclose(
      found.moments.second, points.T @ points / len(points), atol=1e-12
  )
  updates = (START - REFERENCE - points) / 0.2
  assert found.update_variance == pytest.approx(updates.var(axis=0).sum())


def test_round_from_random_points():
  """Two equally likely x_t: the recursion mixes their moments."""
  clients = _clients()[:2]
  sampling = moments.RoundSampling(clients, 2, 1)
  starts = np.array([START, [0.0, -2.0]])
  shifted = starts - REFERENCE
  before = moments.IterateMoments(
      REFERENCE, shifted.mean(axis=0), shifted.T @ shifted / 2
  )
  found = moments.next_moments(
      before, sampling, theta=THETA, client_learning_rate=0.3,
      server_learning_rate=0.2,
  ).moments
  points = np.array(list(
      _enumerate_round(starts, clients, 1, (0.3, 0.3), 0.2, False)
  )) - REFERENCE
  np.testing.assert_allclose(found.mean, points.mean(axis=0), atol=1e-12)
  np.testing.assert_allclose(
      found.second, points.T @ points / len(points), atol=1e-12
  )
  np.testing.assert_allclose(
      found.covariance, np.cov(points.T, bias=True), atol=1e-12
  )


def test_full_gradients_of_all_clients_are_certain():
  clients = _clients()
  sampling = moments.RoundSampling(
      clients, 3, clients_with_replacement=False
  )
  result = moments.next_moments(
      moments.start_at(START, REFERENCE), sampling, theta=THETA,
      client_learning_rate=0.3, server_learning_rate=0.2,
  )
  assert result.update_variance == pytest.approx(0.0, abs=1e-14)
  gradient = surrogate.surrogate_gradient(
      quadratics.population_of(clients), START, THETA, 0.3
  )
  np.testing.assert_allclose(
      result.moments.mean + REFERENCE, START - 0.2 * gradient
  )


def test_clients_of_different_sizes():
  """One with its examples twice is the same client, whatever the others are."""
  clients = _clients()
  double = quadratics.QuadraticExamples(
      np.tile(clients[0].hessians, (2, 1, 1)),
      np.tile(clients[0].centers, (2, 1)),
  )
  plain, mixed = (
      moments.next_moments(
          moments.start_at(START, REFERENCE), moments.RoundSampling(some, 2, 1),
          theta=THETA, client_learning_rate=0.3, server_learning_rate=0.2,
      )
      for some in (clients, [double, *clients[1:]])
  )
  np.testing.assert_allclose(
      plain.moments.second, mixed.moments.second, rtol=1e-12
  )
  assert plain.update_variance == pytest.approx(mixed.update_variance)


def test_variance_between_deterministic_clients():
  """The spec's caution on G: Var q = 0.015625 though nothing is noisy."""
  population = quadratics.QuadraticPopulation(
      [[[1.0]], [[2.0]]], [[1.0], [0.5]]
  )
  sampling = moments.RoundSampling(quadratics.examples_of(population))
  result = moments.next_moments(
      moments.start_at([0.0], [0.0]), sampling,
      theta=theta_lib.Theta.ones(2), client_learning_rate=0.25,
      server_learning_rate=1.0,
  )
  assert result.update_variance == pytest.approx(0.015625, abs=1e-15)


def test_stationary_moments_are_what_rounds_lead_to():
  clients = _clients()
  sampling = moments.RoundSampling(clients, 2, 1)
  arguments = dict(
      theta=THETA, client_learning_rate=0.3, server_learning_rate=0.2
  )
  minimizer = surrogate.surrogate_minimizer(
      quadratics.population_of(clients), THETA, 0.3
  )
  fixed = moments.stationary_moments(minimizer, sampling, **arguments)
  np.testing.assert_allclose(fixed.mean, 0.0, atol=1e-12)
  state = moments.start_at(START, minimizer)
  for _ in range(500):
    state = moments.next_moments(state, sampling, **arguments).moments
  np.testing.assert_allclose(state.second, fixed.second, atol=1e-12)
  with pytest.raises(ValueError, match='server_learning_rate must let'):
    moments.stationary_moments(
        minimizer, sampling, theta=THETA, client_learning_rate=0.3,
        server_learning_rate=20.0,
    )


def test_agrees_with_the_exact_fractions_on_a_line():
  population = quadratics.QuadraticPopulation(
      [[[1.0]], [[2.0]]], [[1.0], [0.5]]
  )
  law = reciprocal.update_law(reciprocal.TWO_CLIENTS, THETA, 0.3)
  minimizer = [float(law.minimizer)]
  sampling = moments.RoundSampling(quadratics.examples_of(population), 3)
  fixed = moments.stationary_moments(
      minimizer, sampling, theta=THETA, client_learning_rate=0.3,
      server_learning_rate=0.2,
  )
  assert fixed.second[0, 0] == pytest.approx(
      float(reciprocal.stationary_variance(law, 0.2, 3)), rel=1e-12
  )


def test_refused():
  clients = _clients()
  with pytest.raises(ValueError, match='clients_per_round must be at most 3'):
    moments.RoundSampling(clients, 4, clients_with_replacement=False)
  with pytest.raises(ValueError, match='clients_per_round'):
    moments.RoundSampling(clients, 0)
  with pytest.raises(ValueError, match='batch_size'):
    moments.RoundSampling(clients, 1, 0)
  with pytest.raises(ValueError, match='server_learning_rate'):
    moments.next_moments(
        moments.start_at(START, REFERENCE), moments.RoundSampling(clients),
        theta=THETA, client_learning_rate=0.1, server_learning_rate=-1.0,
    )
