"""Section 7: with which rates LocalUpdate comes near a minimizer, how fast.

Source: Charles and Konecny (2020), section 7, for Theta_{1:K} on quadratic
losses. Written mu_gamma = phi_{K,mu}(gamma), L_gamma = phi_{K,L}(gamma) (Lemma
11), kappa_gamma = L_gamma/mu_gamma, x*_gamma = x*(gamma, Theta_{1:K}). Rounds
are t = 1, 2, ..., from x_1.

Every theorem here unrolls one step. LocalUpdate is stochastic gradient descent
on the surrogate loss, which is mu_gamma-convex and L_gamma-smooth, so for eta
<= mu_gamma/L_gamma^2 (22) one round takes E||x_t - x*_gamma||^2 times 1 - eta
mu_gamma and adds eta^2 V (Lemma 25). V is any number with

    V >= E||q_t - grad ftilde(x_t)||^2        along the iterates.

The paper's V = K G^2/(M B) follows from its Assumption 4, which is lost. Mind
that differences between clients are part of V, and that B does not reduce them.

All functions raise ValueError if one of these is out of its range:

    constants             mu, L, sigma_A, sigma_c of the population
    num_steps             K
    client_learning_rate  gamma, 0 <= gamma < 1/L; where it decays, gamma_1
    server_learning_rate  eta, within (22)
    round_num             t, a whole number that is at least 1
    distance_squared      ||x_1 - x*_gamma||^2, not negative, or its expectation
    update_variance       V, not negative

Departures: the printed constants of Theorems 27 to 29 are lost. Those marked
"house" were chosen here such that the theorem holds, which the tests compare
with exact moments.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from tff_localupdate import arguments
from tff_localupdate.theory import bounds
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import spectrum


class InverseTimeRate(NamedTuple):
  """A rate that is `scale`/(t + xi) in round t = 1, 2, ...; xi = `offset`."""

  scale: float
  offset: float

  def at(self, round_num: int) -> float:
    """Returns the rate in round t = `round_num`."""
    return self.scale / (round_num + self.offset)


# The client rate: up to where phi is nearly linear in lam.


def max_linear_rate(
    epsilon: float, num_steps: int, eigenvalue: float
) -> float:
  """Returns the largest gamma at which phi is nearly what it is at 0.

  If 0 <= eps <= 1 - e^{-K}, eps < 1, and gamma <= ln(1/(1 - eps))/(K lam), the
  value returned, then (1 - eps) K lam <= phi_{K,lam}(gamma) <= K lam (Lemma
  18). It is at most 1/lam; lam = `eigenvalue` is positive.
  """
  arguments.check_count('num_steps', num_steps)
  arguments.check_positive('eigenvalue', eigenvalue)
  arguments.check_not_negative('epsilon', epsilon)
  if epsilon > -math.expm1(-num_steps) or epsilon >= 1.0:
    raise ValueError(
        f'epsilon must be at most 1 - exp(-{num_steps}) and below 1, found '
        f'{epsilon}.'
    )
  return -math.log1p(-epsilon) / (num_steps * eigenvalue)


def min_epsilon(
    client_learning_rate: float, num_steps: int, eigenvalue: float
) -> float:
  """Returns the least eps of Lemma 18 for gamma: 1 - exp(-gamma K lam).

  The inverse of `max_linear_rate`; the lemma admits it if gamma <= 1/lam.
  """
  arguments.check_count('num_steps', num_steps)
  arguments.check_positive('eigenvalue', eigenvalue)
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  return -math.expm1(-client_learning_rate * num_steps * eigenvalue)


# The server rate, which the curvature of the surrogate loss limits.


def surrogate_constants(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> tuple[float, float]:
  """Returns mu_gamma and L_gamma, bounds on the surrogate's Hessian."""
  quadratics.check_below_inverse(
      client_learning_rate, constants.smoothness
  )
  arguments.check_count('num_steps', num_steps)
  return _phi_at_ends(
      num_steps,
      constants.strong_convexity,
      constants.smoothness,
      client_learning_rate,
  )


# Kept, because a bound asks for the same numbers in every round.
@functools.lru_cache(maxsize=256)
def _phi_at_ends(num_steps, strong_convexity, smoothness, rate):
  at_ends = spectrum.phi(num_steps, [strong_convexity, smoothness], rate)
  return tuple(at_ends.tolist())


def max_server_rate(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> float:
  """Returns mu_gamma/L_gamma^2, the largest eta of the theorems (22)."""
  mu, smoothness = surrogate_constants(
      constants, num_steps, client_learning_rate
  )
  return mu / smoothness**2


def decaying_server_rate(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> InverseTimeRate:
  """Returns eta_t = 2/(mu_gamma (t + xi)) of Theorem 27.

  With xi = 2 kappa_gamma^2 - 1 (house), so that eta_1 is the largest of (22).
  """
  mu, smoothness = surrogate_constants(
      constants, num_steps, client_learning_rate
  )
  return InverseTimeRate(2.0 / mu, 2.0 * (smoothness / mu) ** 2 - 1.0)


def decaying_rates(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> tuple[InverseTimeRate, InverseTimeRate]:
  """Returns gamma_t and eta_t of Theorem 29, with which x_t reaches x*.

      gamma_t = gamma_1 (1 + xi)/(t + xi),   eta_t = 4/(m (t + xi))
      m = phi_{K,mu}(gamma_1),               xi = 4 (K L/m)^2 - 1      (house)
  """
  # As gamma falls, mu_gamma grows from m and L_gamma grows to K L at most. So
  # m and K L serve for all rounds, and eta_1 = 4/(m (1 + xi)) = m/(K L)^2 is
  # within (22) in each of them.
  mu, _ = surrogate_constants(constants, num_steps, client_learning_rate)
  xi = 4.0 * (num_steps * constants.smoothness / mu) ** 2 - 1.0
  return (
      InverseTimeRate(client_learning_rate * (1.0 + xi), xi),
      InverseTimeRate(4.0 / mu, xi),
  )


# The theorems.


def one_round_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    server_learning_rate: float,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_{t+1} - x*_gamma||^2 (Lemma 25).

      (1 - eta mu_gamma) E||x_t - x*_gamma||^2 + eta^2 V

  Here `distance_squared` is E||x_t - x*_gamma||^2.
  """
  return constant_rate_bound(
      constants,
      num_steps=num_steps,
      client_learning_rate=client_learning_rate,
      server_learning_rate=server_learning_rate,
      round_num=2,
      distance_squared=distance_squared,
      update_variance=update_variance,
  )


def constant_rate_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    server_learning_rate: float,
    round_num: int,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_t - x*_gamma||^2 for constant rates (Theorem 26).

      r^{t-1} ||x_1 - x*_gamma||^2 + (eta V/mu_gamma) (1 - r^{t-1})
      r = 1 - eta mu_gamma

  Derived: Lemma 25 applied t - 1 times.
  """
  _check_round(round_num, distance_squared, update_variance)
  arguments.check_not_negative('server_learning_rate', server_learning_rate)
  limit = max_server_rate(constants, num_steps, client_learning_rate)
  # Room for rounding: who asks for the limit itself must get it.
  if server_learning_rate > limit * (1.0 + 1e-12):
    raise ValueError(
        f'server_learning_rate must be at most {limit}, mu_gamma/L_gamma^2, '
        f'found {server_learning_rate}.'
    )
  mu, _ = surrogate_constants(constants, num_steps, client_learning_rate)
  power = (1.0 - server_learning_rate * mu) ** (round_num - 1)
  # eta^2 V times the geometric sum 1 + r + ... + r^{t-2}.
  noise = server_learning_rate * update_variance / mu
  return power * distance_squared + noise * (1.0 - power)


def decaying_rate_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    round_num: int,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_t - x*_gamma||^2 for a decaying eta (Theorem 27).

      max{4 V/mu_gamma^2, (1 + xi) ||x_1 - x*_gamma||^2} / (t + xi)

  with eta_t and xi of `decaying_server_rate`. House: of the printed form only
  the rate O(1/t) is sure.
  """
  _check_round(round_num, distance_squared, update_variance)
  mu, _ = surrogate_constants(constants, num_steps, client_learning_rate)
  xi = decaying_server_rate(
      constants, num_steps, client_learning_rate
  ).offset
  # With nu for the maximum, D_t <= nu/(t + xi) by induction: it holds at t = 1,
  # and Lemma 25 with eta_t mu_gamma = 2/(t + xi) gives, for s = t + xi,
  #   D_{t+1} <= (1 - 2/s) nu/s + 4 V/(mu_gamma s)^2
  #           <= (s - 1) nu/s^2 <= nu/(s + 1).
  start = (1.0 + xi) * distance_squared
  return max(4.0 * update_variance / mu / mu, start) / (round_num + xi)


def true_minimizer_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    round_num: int,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_t - x*||^2 for a decaying eta (Theorem 28).

      2 (bound of Theorem 27) + 2 ((eps/(1 - eps)) (L/mu) sigma_c
                                   (1 + sigma_A/mu))^2

  for gamma <= ln(1/(1 - eps))/(K L), by Corollary 19. Taken at the least such
  eps, where eps/(1 - eps) = exp(gamma K L) - 1. The first term tends to 0, the
  second stays: with a constant gamma > 0 the process does not reach x*, unless
  sigma_c = 0. House. `distance_squared` is taken from x*_gamma here too.
  """
  to_surrogate = decaying_rate_bound(
      constants,
      num_steps=num_steps,
      client_learning_rate=client_learning_rate,
      round_num=round_num,
      distance_squared=distance_squared,
      update_variance=update_variance,
  )
  gap = constants.condition_number * constants.heterogeneity
  if gap > 0.0:  # Else it stays 0, however large the exponential.
    exponent = client_learning_rate * num_steps * constants.smoothness
    with np.errstate(over='ignore'):
      gap *= float(np.expm1(exponent))
  # Not gap**2, which raises where the product is infinite.
  return 2.0 * to_surrogate + 2.0 * gap * gap


def decaying_rates_bound(
    constants: quadratics.PopulationConstants,
    *,
    num_steps: int,
    client_learning_rate: float,
    round_num: int,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns a bound on E||x_t - x*||^2 if both rates decay (Theorem 29).

      2 nu/(t + xi) + 2 (C gamma_t)^2
      nu = max{(1 + xi) ||x_1 - x*_{gamma_1}||^2,
               32 V/m^2 + C^2 gamma_1^2 (1 + xi)}

  with gamma_t, eta_t, m, xi of `decaying_rates` and C of Corollary 22
  (`bounds.path_constant`). House: of the printed form only the rate O(1/t) and
  its dependence on ||x_1 - x*_1|| and kappa are sure.
  """
  _check_round(round_num, distance_squared, update_variance)
  mu, _ = surrogate_constants(constants, num_steps, client_learning_rate)
  client_rate, _ = decaying_rates(
      constants, num_steps, client_learning_rate
  )
  xi = client_rate.offset
  # The iterates follow x*_{gamma_t}, itself on its way to x*. The first term
  # bounds how far they are behind, as for Theorem 27 but with the target's step
  # in each round, at most C (gamma_t - gamma_{t+1}), in nu. The second bounds
  # how far the target is from x*, its place at gamma = 0.
  path = bounds.path_constant(constants, num_steps)
  noise = 32.0 * update_variance / mu / mu
  start_gap = path * client_learning_rate
  noise += start_gap * start_gap * (1.0 + xi)
  nu = max((1.0 + xi) * distance_squared, noise)
  gap = path * client_rate.at(round_num)
  return 2.0 * nu / (round_num + xi) + 2.0 * gap * gap


def _check_round(
    round_num: int, distance_squared: float, update_variance: float
) -> None:
  arguments.check_count('round_num', round_num)
  arguments.check_not_negative('distance_squared', distance_squared)
  arguments.check_not_negative('update_variance', update_variance)
