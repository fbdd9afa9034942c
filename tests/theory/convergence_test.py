"""Section 7: rates and bounds by value, and over exact second moments."""

import math

import numpy as np
import pytest

from tests.theory import cases
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import convergence
from tff_localupdate.theory import moments
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum
from tff_localupdate.theory import surrogate

CONSTANTS = quadratics.PopulationConstants(0.5, 3.0, 1.0, 2.0)
NUM_ROUNDS = 25


def test_g13_lemma_18():
  """-ln(0.8)/40; the specification's 0.0055785788 lacks one digit 8."""
  found = convergence.max_linear_rate(0.2, 10, 4.0)
  assert found == pytest.approx(0.0055785888, abs=1e-10)
  assert math.exp(-40.0 * found) == pytest.approx(0.8, rel=1e-15)


def test_g14_max_server_rate():
  assert convergence.max_server_rate(CONSTANTS, 5, 0.2) == pytest.approx(
      0.0836054734, abs=1e-9
  )


def test_lemma_18_on_random_arguments():
  rng = np.random.default_rng(0)
  for _ in range(200):
    num_steps = int(rng.integers(1, 30))
    eigenvalue = 10.0 ** rng.uniform(-2, 2)
    epsilon = rng.uniform(0.0, -np.expm1(-num_steps))
    limit = convergence.max_linear_rate(epsilon, num_steps, eigenvalue)
    assert limit * eigenvalue <= 1.0 + 1e-12
    rate = limit * rng.uniform()
    phi = spectrum.phi(num_steps, eigenvalue, rate)
    full = num_steps * eigenvalue
    assert (1.0 - epsilon) * full <= phi * (1.0 + 1e-12)
    assert phi <= full * (1.0 + 1e-12)
    assert (
      convergence.min_epsilon(rate, num_steps, eigenvalue) <= epsilon + 1e-12
    )


def test_least_epsilon_and_largest_rate_are_inverse():
  epsilon = convergence.min_epsilon(0.03, 7, 2.0)
  assert convergence.max_linear_rate(epsilon, 7, 2.0) == pytest.approx(0.03)
  assert convergence.min_epsilon(0.0, 7, 2.0) == 0.0


def test_decaying_server_rate_starts_at_the_limit():
  rate = convergence.decaying_server_rate(CONSTANTS, 5, 0.2)
  assert rate.at(1) == pytest.approx(
    convergence.max_server_rate(CONSTANTS, 5, 0.2)
  )
  assert rate.at(1000) < rate.at(2) < rate.at(1)


def test_decaying_rates_stay_within_the_limit():
  client, server = convergence.decaying_rates(CONSTANTS, 5, 0.3)
  assert client.at(1) == pytest.approx(0.3)
  for round_num in (1, 2, 10, 100, 10_000):
    limit = convergence.max_server_rate(CONSTANTS, 5, client.at(round_num))
    assert server.at(round_num) <= limit


def test_rates_out_of_range_are_refused():
  for epsilon in (-0.1, 0.87, 1.0):  # 1 - exp(-2) = 0.8647
    with pytest.raises(ValueError, match='epsilon'):
      convergence.max_linear_rate(epsilon, 2, 1.0)
  with pytest.raises(ValueError, match='epsilon'):
    convergence.max_linear_rate(1.0, 50, 1.0)
  with pytest.raises(ValueError, match='client_learning_rate'):
    convergence.max_server_rate(CONSTANTS, 5, 0.34)


def test_g14_theorem_26():
  bound = convergence.constant_rate_bound(
      CONSTANTS, num_steps=5, client_learning_rate=0.2,
      server_learning_rate=0.01, round_num=11, distance_squared=4.0,
      update_variance=0.3,
  )
  assert bound == pytest.approx(3.2527417393, abs=1e-9)


def test_theorem_26_is_lemma_25_repeated():
  arguments = dict(
      num_steps=5, client_learning_rate=0.2, server_learning_rate=0.05,
      update_variance=0.3,
  )
  distance = 4.0
  for round_num in range(2, 8):
    distance = convergence.one_round_bound(
        CONSTANTS, distance_squared=distance, **arguments
    )
    assert distance == pytest.approx(
        convergence.constant_rate_bound(
            CONSTANTS, distance_squared=4.0, round_num=round_num, **arguments
        )
    )


def _case(case):
  """A population of examples, M and B, and mild or hard constants."""
  rng = np.random.default_rng([4, case])
  population = quadratics.QuadraticPopulation(
      *(getattr(cases.random_population(case), name)
        for name in ('hessians', 'centers'))
  )
  clients = quadratics.random_examples(
      case, population, num_examples=3, hessian_noise=rng.uniform(0, 0.9),
      offset_noise=rng.uniform(0, 2),
  )
  sampling = moments.RoundSampling(
      clients, int(rng.integers(1, 4)), int(rng.integers(1, 4))
  )
  num_steps = int(rng.integers(1, 6))
  rate = rng.uniform(0, 0.9) / population.constants.smoothness
  start = population.minimizer + rng.normal(size=population.dimension)
  return population, sampling, num_steps, rate, start


def _run(sampling, num_steps, start, reference, client_rate, server_rate,
         num_rounds=NUM_ROUNDS):
  """Returns the moments of x_t for t = 1.., and the largest variance."""
  found = [moments.start_at(start, reference)]
  variance = 0.0
  for round_num in range(1, num_rounds):
    result = moments.next_moments(
        found[-1], sampling, theta=theta_lib.Theta.ones(num_steps),
        client_learning_rate=client_rate(round_num),
        server_learning_rate=server_rate(round_num),
    )
    found.append(result.moments)
    variance = max(variance, result.update_variance)
  return found, variance


def _distances(found, point):
  """E||x_t - point||^2, from moments about any reference."""
  return [
      m.distance_squared + 2.0 * m.mean @ (m.reference - point)
      + np.sum((m.reference - point) ** 2)
      for m in found
  ]


def test_theorems_26_27_28_over_exact_moments():
  for case in range(cases.NUM_CASES):
    _check_theorems_26_27_28(case)


def _check_theorems_26_27_28(case):
  population, sampling, num_steps, rate, start = _case(case)
  constants = population.constants
  minimizer = surrogate.surrogate_minimizer(
      population, theta_lib.Theta.ones(num_steps), rate
  )
  initial = np.sum((start - minimizer) ** 2)
  shared = dict(
      num_steps=num_steps, client_learning_rate=rate, distance_squared=initial
  )
  limit = convergence.max_server_rate(constants, num_steps, rate)
  for eta in (limit, 0.3 * limit):
    found, variance = _run(
        sampling, num_steps, start, minimizer, lambda t: rate,
        lambda t, eta=eta: eta,
    )
    for t, distance in enumerate(_distances(found, minimizer), 1):
      bound = convergence.constant_rate_bound(
          constants, server_learning_rate=eta, round_num=t,
          update_variance=variance, **shared
      )
      assert distance <= bound * (1 + 1e-9)
  decaying = convergence.decaying_server_rate(constants, num_steps, rate)
  found, variance = _run(
      sampling, num_steps, start, minimizer, lambda t: rate, decaying.at
  )
  for point, bound_fn in (
      (minimizer, convergence.decaying_rate_bound),
      (population.minimizer, convergence.true_minimizer_bound),
  ):
    for t, distance in enumerate(_distances(found, point), 1):
      bound = bound_fn(
          constants, round_num=t, update_variance=variance, **shared
      )
      assert distance <= bound * (1 + 1e-9)


def test_theorem_29_over_exact_moments():
  for case in range(cases.NUM_CASES):
    _check_theorem_29(case)


def _check_theorem_29(case):
  population, sampling, num_steps, rate, start = _case(case)
  constants = population.constants
  client, server = convergence.decaying_rates(constants, num_steps, rate)
  first = surrogate.surrogate_minimizer(
      population, theta_lib.Theta.ones(num_steps), rate
  )
  found, variance = _run(
      sampling, num_steps, start, population.minimizer, client.at, server.at
  )
  for t, distance in enumerate(_distances(found, population.minimizer), 1):
    bound = convergence.decaying_rates_bound(
        constants, num_steps=num_steps, client_learning_rate=rate, round_num=t,
        distance_squared=np.sum((start - first) ** 2),
        update_variance=variance,
    )
    assert distance <= bound * (1 + 1e-9)


def test_decaying_rates_reach_the_minimizer_a_constant_client_rate_does_not():
  """Theorem 27 stops at x*_gamma, Theorem 29 goes to x*, both as O(1/t)."""
  population = quadratics.QuadraticPopulation(
      [[[1.0]], [[2.0]]], [[1.0], [0.5]]
  )
  constants = population.constants
  sampling = moments.RoundSampling(quadratics.examples_of(population))
  rate, num_steps, num_rounds = 0.3, 2, 2_000
  theta = theta_lib.Theta.ones(num_steps)
  gap = np.sum(surrogate.minimizer_shift(population, theta, rate) ** 2)
  decaying = convergence.decaying_server_rate(constants, num_steps, rate)
  client, server = convergence.decaying_rates(constants, num_steps, rate)
  kept, _ = _run(sampling, num_steps, [3.0], population.minimizer,
                 lambda t: rate, decaying.at, num_rounds)
  decayed, _ = _run(sampling, num_steps, [3.0], population.minimizer,
                    client.at, server.at, num_rounds)
  kept, decayed = (
      _distances(found, population.minimizer) for found in (kept, decayed)
  )
  assert gap < kept[-1] < 1.1 * gap
  assert decayed[-1] < 0.2 * gap
  # O(1/t): ten times the rounds, a tenth of the distance, or less.
  assert decayed[-1] < 0.11 * decayed[num_rounds // 10]


def test_same_centers_leave_nothing_behind():
  same = quadratics.PopulationConstants(0.5, 3.0, 1.0, 0.0)
  bound = convergence.true_minimizer_bound(
      same, num_steps=3000, client_learning_rate=0.3, round_num=10**9,
      distance_squared=1.0, update_variance=0.0,
  )
  assert 0.0 < bound < 1e-6


def test_refused():
  arguments = dict(
      num_steps=5, client_learning_rate=0.2, server_learning_rate=0.05,
      round_num=1, distance_squared=1.0, update_variance=0.0,
  )
  for name, value in (
      ('client_learning_rate', 0.4), ('server_learning_rate', 0.09),
      ('round_num', 0), ('distance_squared', -1.0), ('update_variance', -1.0),
      ('num_steps', 0),
  ):
    with pytest.raises(ValueError, match=name):
      convergence.constant_rate_bound(CONSTANTS, **{**arguments, name: value})


@pytest.mark.parametrize('num_steps', [400, 500, 780, 790])
def test_gaps_beyond_all_numbers_are_infinite(num_steps):
  constants = quadratics.PopulationConstants(1.0, 1.0, 0.0, 1.0)
  arguments = dict(
      num_steps=num_steps, client_learning_rate=0.9, round_num=1,
      distance_squared=1.0, update_variance=0.0,
  )
  assert convergence.true_minimizer_bound(constants, **arguments) == np.inf


def test_squares_that_underflow_divide_nothing():
  constants = quadratics.PopulationConstants(1e-170, 1e-170, 0.0, 0.0)
  arguments = dict(
      num_steps=1, client_learning_rate=0.0, round_num=2,
      distance_squared=1.0, update_variance=1.0,
  )
  assert convergence.decaying_rate_bound(constants, **arguments) == np.inf
  assert convergence.decaying_rates_bound(constants, **arguments) == np.inf
