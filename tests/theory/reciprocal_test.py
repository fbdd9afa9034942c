"""Section 4: exact minimizers and moments, against quadrature and runs."""

from fractions import Fraction

import numpy as np
import pytest

from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import reciprocal

Theta = theta_lib.Theta
FIGURE_1 = reciprocal.LINEAR_DENSITY
TWO_CLIENTS = reciprocal.TWO_CLIENTS


def _integrate(fn):
  """The mean of `fn` under the density 8 z/15 on [1/2, 2], by quadrature."""
  nodes, weights = np.polynomial.legendre.leggauss(60)
  z = 1.25 + 0.75 * nodes
  return np.sum(0.75 * weights * 8.0 * z / 15.0 * fn(z))


@pytest.mark.parametrize(
    'rate, expected',
    [
        (Fraction(1, 4), 0.7829627662),
        (Fraction(1, 2), 0.7979469807),
        (1, 0.8284934081),
        (Fraction(11, 10), 1.2607462097),
    ],
)
def test_g26_minimizers_of_figure_1(rate, expected):
  found = reciprocal.surrogate_minimizer(FIGURE_1, Theta.ones(10), rate)
  assert isinstance(found, Fraction)
  assert float(found) == pytest.approx(expected, abs=1e-9)


def test_limits_of_figure_1():
  assert FIGURE_1.minimizer == Fraction(5, 7)
  assert FIGURE_1.mean_center == Fraction(4, 5)
  assert FIGURE_1.moment(0) == 1
  assert reciprocal.surrogate_minimizer(
      FIGURE_1, Theta.ones(10), 0) == Fraction(5, 7)
  assert reciprocal.surrogate_minimizer(
      FIGURE_1, Theta.ones(1), Fraction(1, 3)) == Fraction(5, 7)
  assert float(reciprocal.surrogate_minimizer(
      FIGURE_1, Theta.ones(120), Fraction(1, 4))) == pytest.approx(
          0.8, abs=1e-8)


def test_moments_of_figure_1_by_quadrature():
  for power in (-1, 1, 2, 5, 20):
    assert float(FIGURE_1.moment(power)) == pytest.approx(
        _integrate(lambda z, power=power: z**power), rel=1e-12
    )


def test_sampler_of_figure_1_has_its_moments():
  u = (np.arange(200_000) + 0.5) / 200_000
  z = FIGURE_1.quantile(u)
  assert z.min() >= 0.5 and z.max() <= 2.0
  for power in (-1, 1, 3):
    assert np.mean(z**power) == pytest.approx(
        float(FIGURE_1.moment(power)), rel=1e-6
    )


def test_two_clients_in_closed_form():
  for rate in (Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(11, 10)):
    found = reciprocal.surrogate_minimizer(TWO_CLIENTS, Theta.ones(2), rate)
    assert found == (4 - 3 * rate) / (6 - 5 * rate)
    assert found - TWO_CLIENTS.minimizer == rate / (3 * (6 - 5 * rate))
  assert TWO_CLIENTS.minimizer == Fraction(2, 3)
  assert TWO_CLIENTS.mean_center == Fraction(3, 4)


def test_two_clients_at_one_half_for_any_number_of_steps():
  gaps = []
  for num_steps in range(1, 12):
    found = reciprocal.surrogate_minimizer(
        TWO_CLIENTS, Theta.ones(num_steps), Fraction(1, 2)
    )
    power = Fraction(2) ** (1 - num_steps)
    assert found == (3 - power) / (4 - power)
    gaps.append(found - Fraction(2, 3))
  assert gaps[0] == 0 and gaps == sorted(gaps) and gaps[-1] < Fraction(1, 12)


def test_two_clients_may_disagree_in_sign():
  """A rate in (1, 6/5): client 2 is concave, the surrogate still convex."""
  law = reciprocal.update_law(TWO_CLIENTS, Theta.ones(2), Fraction(11, 10))
  assert law.slope == 3 - Fraction(5, 2) * Fraction(11, 10) > 0
  assert 2 - 2 * Fraction(11, 10) < 0
  with pytest.raises(ValueError, match='strictly convex'):
    reciprocal.update_law(TWO_CLIENTS, Theta.ones(2), Fraction(6, 5))
  with pytest.raises(ValueError, match='client_learning_rate'):
    reciprocal.update_law(TWO_CLIENTS, Theta.ones(2), -1)


@pytest.mark.parametrize('rate', [0.0, 0.3, 1.0])
def test_law_by_quadrature(rate):
  theta = Theta((1.0, 0.5, 2.0))
  law = reciprocal.update_law(FIGURE_1, theta, rate)

  def factor(z):
    return 1.0 + 0.5 * (1 - rate * z) + 2.0 * (1 - rate * z) ** 2

  slope = _integrate(lambda z: z * factor(z))
  minimizer = _integrate(factor) / slope

  def residual(z):
    return factor(z) * (z * minimizer - 1.0)

  expected = (
      minimizer,
      slope,
      _integrate(lambda z: (z * factor(z) - slope) ** 2),
      _integrate(lambda z: z * factor(z) * residual(z)),
      _integrate(lambda z: residual(z) ** 2),
  )
  assert [float(value) for value in law] == pytest.approx(expected)


@pytest.mark.parametrize('rate', [float('inf'), float('nan'), -1])
def test_rates_that_are_none(rate):
  with pytest.raises(ValueError, match='client_learning_rate must be a finite'):
    reciprocal.update_law(FIGURE_1, Theta.ones(2), rate)


SETTINGS = [
    (Theta.ones(10), 0.0),
    (Theta.ones(10), 0.25),
    (Theta.ones(10), 0.5),
    (Theta.ones(10), 1.0),
    (Theta.ones(1), 0.5),
    (Theta.ones(40), 0.25),
    (Theta.single(4), 0.3),
]


@pytest.mark.parametrize('theta, rate', SETTINGS, ids=str)
def test_expectation_converges_to_the_minimizer(theta, rate):
  law = reciprocal.update_law(FIGURE_1, theta, rate)
  means = reciprocal.expected_iterates(law, 0.02, 3.0, 20_000)
  assert means[0] == 3.0 and len(means) == 20_001
  assert means[-1] == pytest.approx(float(law.minimizer), abs=1e-9)


def test_expected_step_by_quadrature():
  nodes, weights = np.polynomial.legendre.leggauss(60)
  z = 1.25 + 0.75 * nodes
  probabilities = 0.75 * weights * 8.0 * z / 15.0
  point, update = np.full_like(z, 3.0), 0.0
  for _ in range(10):
    gradient = z * point - 1.0
    update = update + gradient
    point = point - 0.5 * gradient
  law = reciprocal.update_law(FIGURE_1, Theta.ones(10), 0.5)
  mean = reciprocal.expected_iterates(law, 0.1, 3.0, 1)[1]
  assert mean == pytest.approx(3.0 - 0.1 * np.dot(probabilities, update))
  square = np.dot(
      probabilities, (3.0 - 0.1 * update - float(law.minimizer)) ** 2
  )
  found = reciprocal.squared_distances(law, 0.1, 3.0, 1)
  assert found == pytest.approx([(3.0 - float(law.minimizer)) ** 2, square])


def test_variance_settles_where_the_recursion_leads():
  for clients_per_round in (1, 4):
    law = reciprocal.update_law(FIGURE_1, Theta.ones(10), 0.25)
    squares = reciprocal.squared_distances(
      law, 0.05, 3.0, 3000, clients_per_round
    )
    variance = reciprocal.stationary_variance(law, 0.05, clients_per_round)
    assert squares[-1] == pytest.approx(float(variance), rel=1e-9)


def test_exact_variance_is_a_fraction_and_falls_with_the_rate():
  """For a fixed eta the iterates shake less as gamma grows, as in Figure 1."""
  variances = [
      reciprocal.stationary_variance(
          reciprocal.update_law(FIGURE_1, Theta.ones(10), rate),
          Fraction(1, 20),
      )
      for rate in (0, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
  ]
  assert all(isinstance(variance, Fraction) for variance in variances)
  assert variances == sorted(variances, reverse=True)


@pytest.mark.parametrize('theta, rate', SETTINGS, ids=str)
def test_tail_of_a_run_lies_at_the_minimizer(theta, rate):
  """Within 3 computed standard errors; seed 1."""
  law = reciprocal.update_law(FIGURE_1, theta, rate)
  run = reciprocal.simulate(
      FIGURE_1, theta, client_learning_rate=rate, server_learning_rate=0.02,
      start=1.0, num_rounds=20_000, seed=1,
  )
  assert len(run) == 20_001
  tail = run[-15_000:]
  error = reciprocal.tail_mean_error(law, 0.02, 15_000)
  assert abs(tail.mean() - float(law.minimizer)) <= 3.0 * error
  assert 0.0 < error < 0.01
  assert tail.var() == pytest.approx(
      float(reciprocal.stationary_variance(law, 0.02)), rel=0.25
  )


def test_standard_error_by_the_sum_of_covariances():
  law = reciprocal.update_law(FIGURE_1, Theta.ones(3), 0.25)
  variance = float(reciprocal.stationary_variance(law, 0.1, 2))
  rho = 1.0 - 0.1 * float(law.slope)
  lags = np.abs(np.subtract.outer(np.arange(50), np.arange(50)))
  expected = np.sqrt(variance * np.mean(rho**lags))
  assert reciprocal.tail_mean_error(law, 0.1, 50, 2) == pytest.approx(expected)


def test_run_is_that_of_the_listings():
  theta, gamma, eta = Theta((1.0, 0.0, 0.5)), 0.3, 0.2
  run = reciprocal.simulate(
      FIGURE_1, theta, client_learning_rate=gamma, server_learning_rate=eta,
      start=2.0, num_rounds=5, clients_per_round=3, seed=4,
  )
  x, expected = 2.0, [2.0]
  for clients in FIGURE_1.quantile(np.random.default_rng(4).random((5, 3))):
    updates = []
    for z in clients:
      point, update = x, 0.0
      for weight in theta.weights:
        gradient = z * point - 1.0
        update += weight * gradient
        point -= gamma * gradient
      updates.append(update)
    x -= eta * np.mean(updates)
    expected.append(x)
  np.testing.assert_allclose(run, expected, rtol=1e-13)


def test_runs_are_repeatable_and_share_their_clients():
  arguments = dict(
      client_learning_rate=0.0, start=1.0, num_rounds=3, clients_per_round=2
  )
  runs = [
      reciprocal.simulate(
          FIGURE_1, Theta.ones(1), server_learning_rate=eta, seed=seed,
          **arguments
      )
      for eta, seed in ((0.1, 5), (0.1, 5), (0.2, 5), (0.1, 6))
  ]
  assert np.array_equal(runs[0], runs[1])
  assert not np.array_equal(runs[0], runs[3])
  # The same first clients: the first step is twice as long.
  assert runs[2][1] - 1.0 == pytest.approx(2.0 * (runs[0][1] - 1.0))


def test_process_out_of_range_is_refused():
  law = reciprocal.update_law(FIGURE_1, Theta.ones(10), 0.25)
  for rate in (0.0, 10.0):
    with pytest.raises(ValueError, match='server_learning_rate must let'):
      reciprocal.stationary_variance(law, rate)
  with pytest.raises(ValueError, match='clients_per_round'):
    reciprocal.stationary_variance(law, 0.1, 0)
  with pytest.raises(ValueError, match='server_learning_rate'):
    reciprocal.expected_iterates(law, -0.1, 1.0, 2)


@pytest.mark.parametrize('rate', ['1e-7', '1e-9', '1e-10', '1e-17'])
@pytest.mark.parametrize('number', [1, 2, 10])
def test_standard_error_of_tiny_rates_keeps_its_digits(rate, number):
  law = reciprocal.update_law(FIGURE_1, Theta.ones(3), Fraction(1, 10))
  variance = reciprocal.stationary_variance(law, Fraction(rate))
  rho = 1 - Fraction(rate) * law.slope
  shared = sum(rho ** abs(i - j) for i in range(number) for j in range(number))
  expected = float(variance * shared / number**2) ** 0.5
  found = reciprocal.tail_mean_error(law, Fraction(rate), number)
  assert found == pytest.approx(expected, rel=1e-12)
