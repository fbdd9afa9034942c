"""Distance of the surrogate minimizer against speed, for given constants.

For Theta_{1:K}, by the bounds of sections 6 and 7 of Charles and Konecny
(2020). A larger gamma makes the surrogate loss better conditioned, so that the
iterates come near its minimizer x*_gamma sooner, and takes x*_gamma away from
x*. With D_gamma a bound on ||x*_gamma - x*||, both count alike:

    sqrt(E||x_{T+1} - x*||^2) <= sqrt(E||x_{T+1} - x*_gamma||^2) + D_gamma
    ||x_1 - x*_gamma|| <= ||x_1 - x*|| + D_gamma

Which gamma and which K make these bounds least. All functions take a
`Question`, K as `num_steps` and a gamma below 1/L as `client_learning_rate`;
else they raise ValueError.
"""

from collections.abc import Callable, Sequence
import dataclasses
import math
from typing import Any, NamedTuple, Optional

import numpy as np

from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import bounds
from tff_localupdate.theory import convergence
from tff_localupdate.theory import quadratics

# How V grows with K: powers of K.
NOISE_GROWTHS = {'linear': 1, 'square': 2}


@dataclasses.dataclass(frozen=True)
class Question:
  """The numbers to which the bounds are applied.

  Attributes:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    update_variance: V >= E||q_t - grad ftilde(x_t)||^2 for this K and every
      gamma.
    horizon: T, the number of rounds.
    distance: ||x_1 - x*||.
    noise_growth: For another K' steps V is taken times K'/K if `linear`, as in
      the paper's V = K G^2/(M B), or times its `square`, which is how
      differences between clients grow.
  """

  constants: quadratics.PopulationConstants
  num_steps: int
  update_variance: float
  horizon: int
  distance: float
  noise_growth: str = 'linear'

  def variance_of(self, num_steps: int) -> float:
    """Returns V for this many steps."""
    power = NOISE_GROWTHS[self.noise_growth]
    return self.update_variance * (num_steps / self.num_steps) ** power


class ErrorBound(NamedTuple):
  """A bound on sqrt(E||x_{T+1} - x*||^2), and the rates that it is for.

  Attributes:
    num_steps: K.
    client_learning_rate: gamma of round 1.
    server_learning_rate: eta of round 1.
    error: The bound.
    surrogate_distance: D_gamma, which stays for all T; None if gamma decays.
    optimisation: The rest of the bound.
    offset: xi, if a rate in round t is (1 + xi)/(t + xi) times that of round 1.
  """

  num_steps: int
  client_learning_rate: float
  server_learning_rate: float
  error: float
  surrogate_distance: Optional[float] = None
  optimisation: Optional[float] = None
  offset: Optional[float] = None


Bound = Callable[[Question, int, float], ErrorBound]


def surrogate_distance(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> float:
  """Returns D_gamma, a bound on ||x*_gamma - x*||.

  The smaller one of Theorem 17 and of Theorem 21 for the rates 0 and gamma;
  Theorem 16 and Corollary 19 are never below Theorem 17.
  """
  return min(
      bounds.fed_avg_distance_bound(constants, num_steps, client_learning_rate),
      bounds.path_bound(constants, num_steps, 0.0, client_learning_rate),
  )


def distance_bounds(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> dict[str, float]:
  """Returns the bounds of Theorems 16, 17 and 21 and Corollary 19, by name."""
  epsilon = convergence.min_epsilon(
      client_learning_rate, num_steps, constants.smoothness
  )
  # 1 - exp(-gamma K L) is 1 to all digits if gamma K L is large.
  linear = math.inf if constants.heterogeneity else 0.0
  if epsilon < 1.0:
    linear = bounds.linear_rate_distance_bound(constants, epsilon)
  weights = theta_lib.Theta.ones(num_steps)
  return {
      # At gamma = 0 it is -0.
      'theorem_16': abs(
          bounds.distance_bound(constants, weights, client_learning_rate)
      ),
      'theorem_17': bounds.fed_avg_distance_bound(
          constants, num_steps, client_learning_rate
      ),
      'theorem_21': bounds.path_bound(
          constants, num_steps, 0.0, client_learning_rate
      ),
      'corollary_19': linear,
  }


def constant_rates(
    question: Question, num_steps: int, client_learning_rate: float
) -> ErrorBound:
  """Returns the least bound for constant rates: Theorem 26 and D_gamma."""
  gap, arguments = _bound_arguments(question, num_steps, client_learning_rate)
  eta = best_server_rate(
      convergence.surrogate_constants(
          question.constants, num_steps, client_learning_rate
      ),
      question.horizon,
      arguments['distance_squared'],
      arguments['update_variance'],
  )
  rest_squared = convergence.constant_rate_bound(
      question.constants, server_learning_rate=eta, **arguments
  )
  # Below 0 if eta mu_gamma is 1 but for rounding.
  rest = math.sqrt(max(rest_squared, 0.0))
  return ErrorBound(
      num_steps, client_learning_rate, eta, gap + rest, gap, rest
  )


def decaying_server_rate(
    question: Question, num_steps: int, client_learning_rate: float
) -> ErrorBound:
  """Returns the bound if eta decays as 1/t: Theorem 27 (house) and D_gamma."""
  gap, arguments = _bound_arguments(question, num_steps, client_learning_rate)
  eta = convergence.decaying_server_rate(
      question.constants, num_steps, client_learning_rate
  )
  rest = math.sqrt(
      convergence.decaying_rate_bound(question.constants, **arguments)
  )
  return ErrorBound(
      num_steps, client_learning_rate, eta.at(1), gap + rest, gap, rest,
      eta.offset,
  )


def decaying_rates(
    question: Question, num_steps: int, client_learning_rate: float
) -> ErrorBound:
  """Returns the bound if both rates decay as 1/t: Theorem 29 (house)."""
  _, arguments = _bound_arguments(question, num_steps, client_learning_rate)
  _, eta = convergence.decaying_rates(
      question.constants, num_steps, client_learning_rate
  )
  error = math.sqrt(
      convergence.decaying_rates_bound(question.constants, **arguments)
  )
  return ErrorBound(
      num_steps, client_learning_rate, eta.at(1), error, offset=eta.offset
  )


def _bound_arguments(
    question: Question, num_steps: int, client_learning_rate: float
) -> tuple[float, dict[str, Any]]:
  """Returns D_gamma, and what all bounds on x_{T+1} take."""
  gap = surrogate_distance(
      question.constants, num_steps, client_learning_rate
  )
  return gap, dict(
      num_steps=num_steps,
      client_learning_rate=client_learning_rate,
      round_num=question.horizon + 1,
      distance_squared=(question.distance + gap) ** 2,
      update_variance=question.variance_of(num_steps),
  )


def best_server_rate(
    surrogate_constants: tuple[float, float],
    horizon: int,
    distance_squared: float,
    update_variance: float,
) -> float:
  """Returns the eta within (22) at which Theorem 26 is least after T rounds.

  With e = eta mu_gamma and D = ||x_1 - x*_gamma||, the bound's derivative is

      (V/mu_gamma^2) (1 - (1 - e)^T)
          - T (1 - e)^{T-1} (D^2 - e V/mu_gamma^2)

  which changes its sign once: the first term grows with e, the second falls
  until it is negative. `distance_squared`, positive, is D^2, `update_variance`
  V, `horizon` T.
  """
  mu, smoothness = surrogate_constants
  limit = (mu / smoothness) ** 2
  noise = update_variance / mu**2

  def grows(e):
    reached = -math.expm1(horizon * math.log1p(-e)) if e < 1.0 else 1.0
    speed = horizon * (1.0 - e) ** (horizon - 1)
    return noise * reached > speed * (distance_squared - e * noise)

  if not grows(limit):
    return mu / smoothness**2
  low, high = limit * 1e-150, limit
  for _ in range(80):
    middle = math.sqrt(low) * math.sqrt(high)
    low, high = (low, middle) if grows(middle) else (middle, high)
  return low / mu


# A K is as good as the best if its bound is at most this much larger.
_ENOUGH = 1.05
# Points of the first search for gamma, and how often its bracket is cut.
_NUM_RATES = 41
_NUM_CUTS = 24
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def client_rate_grid(
    smoothness: float, num_steps: int, num_rates: int
) -> np.ndarray:
  """Returns rates that grow by a constant factor and fill (0, 1/L).

  At the first, 1e-4/(K L), phi_{K,L} is within 1e-4 of its value at 0 (Lemma
  18).
  """
  return np.geomspace(1e-4 / num_steps, 0.999, num_rates) / smoothness


def best_client_rate(
    bound: Bound, question: Question, num_steps: int
) -> ErrorBound:
  """Returns a bound at the gamma at which it is least, gamma = 0 included.

  It is the least one on a grid, refined between its neighbours. `bound` is
  `constant_rates`, `decaying_server_rate` or `decaying_rates`.
  """
  smoothness = question.constants.smoothness
  grid = client_rate_grid(smoothness, num_steps, _NUM_RATES)
  tried = [
      bound(question, num_steps, gamma) for gamma in [0.0, *grid.tolist()]
  ]
  # Of equal ones the first: gamma = 0, whose minimizer is x*.
  best = int(np.argmin([found.error for found in tried]))
  if best == 0:
    return tried[0]
  # Golden section on the logarithm, between the neighbours of grid[best - 1].
  low, high = np.log(grid[[max(best - 2, 0), min(best, len(grid) - 1)]])

  def try_at(position):
    tried.append(bound(question, num_steps, math.exp(position)))
    return tried[-1].error

  left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
  at_left, at_right = try_at(left), try_at(right)
  for _ in range(_NUM_CUTS):
    if at_left <= at_right:
      high, right, at_right = right, left, at_left
      left = high - _GOLDEN * (high - low)
      at_left = try_at(left)
    else:
      low, left, at_left = left, right, at_right
      right = low + _GOLDEN * (high - low)
      at_right = try_at(right)
  return min(tried, key=lambda found: found.error)


def best_of_each_num_steps(
    question: Question,
) -> list[ErrorBound]:
  """Returns the best constant rates for K = 1 to 10 times the K in question."""
  largest = max(100, 10 * question.num_steps)
  steps = np.rint(np.geomspace(1, largest, 17)).astype(int).tolist()
  return [
      best_client_rate(constant_rates, question, num_steps)
      for num_steps in sorted({*steps, question.num_steps})
  ]


def fewest_steps(found: Sequence[ErrorBound]) -> ErrorBound:
  """Returns the one of least K within 5 percent of the best, in order of K.

  More steps cost time that the bounds know nothing of.
  """
  enough = _ENOUGH * min(bound.error for bound in found)
  return next(bound for bound in found if bound.error <= enough)


def recommendations(
    question: Question,
    best_of_each: Sequence[ErrorBound],
    client_learning_rate: Optional[float] = None,
) -> dict[str, ErrorBound]:
  """Returns the rates and steps that the bounds recommend, by what is chosen.

  Constant rates with gamma = 0, which is mini-batch SGD; with the best gamma;
  the best gamma if eta decays, and if both rates decay; constant rates with
  the best gamma and the fewest steps that do; the given gamma, if any, which
  has to be below 1/L.
  """
  steps = question.num_steps
  schedules = {
      'best gamma': constant_rates,
      'best gamma, eta decays': decaying_server_rate,
      'best gamma, both decay': decaying_rates,
  }
  choices = {'gamma = 0': constant_rates(question, steps, 0.0)}
  for choice, bound in schedules.items():
    choices[choice] = best_client_rate(bound, question, steps)
  choices['best gamma and K'] = fewest_steps(best_of_each)
  if client_learning_rate is not None:
    choices['given gamma'] = constant_rates(
        question, steps, client_learning_rate
    )
  return choices
