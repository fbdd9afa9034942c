"""Rules for the rates: values, and what they are rules for."""

import math

import numpy as np
import pytest

from tff_localupdate.theory import convergence
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum

CONSTANTS = quadratics.PopulationConstants(0.5, 3.0)


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


def test_refused():
  for epsilon in (-0.1, 0.87, 1.0):  # 1 - exp(-2) = 0.8647
    with pytest.raises(ValueError, match='epsilon'):
      convergence.max_linear_rate(epsilon, 2, 1.0)
  with pytest.raises(ValueError, match='epsilon'):
    convergence.max_linear_rate(1.0, 50, 1.0)
  with pytest.raises(ValueError, match='client_learning_rate'):
    convergence.max_server_rate(CONSTANTS, 5, 0.34)
