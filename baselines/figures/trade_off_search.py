"""Which gamma and which K make the bounds of `trade_off` least."""

from collections.abc import Sequence
import math

import numpy as np

from baselines.figures import trade_off

# A K is as good as the best if its bound is at most this much larger.
_ENOUGH = 1.05
# Points of the first search for gamma, and how often its bracket is cut.
_NUM_RATES = 41
_NUM_CUTS = 24
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def client_rate_grid(
    smoothness: float, num_steps: int, num_rates: int
) -> np.ndarray:
  """Returns rates that fill (0, 1/L), the first too small to make a difference.

  At gamma = 1e-4/(K L) phi_{K,L} is within 1e-4 of its value at 0 (Lemma 18).

  Args:
    smoothness: L.
    num_steps: K.
    num_rates: How many.

  Returns:
    The rates, growing by a constant factor.
  """
  return np.geomspace(1e-4 / num_steps, 0.999, num_rates) / smoothness


def best_client_rate(
    bound: trade_off.Bound, question: trade_off.Question, num_steps: int
) -> trade_off.ErrorBound:
  """Returns a bound at the gamma at which it is least, gamma = 0 included.

  Args:
    bound: `constant_rates`, `decaying_server_rate` or `decaying_rates`.
    question: The constants.
    num_steps: K.

  Returns:
    The least one found on a grid, refined between its neighbours.
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
    question: trade_off.Question,
) -> list[trade_off.ErrorBound]:
  """Returns the best constant rates for K = 1 to 10 times the K in question."""
  largest = max(100, 10 * question.num_steps)
  steps = np.rint(np.geomspace(1, largest, 17)).astype(int).tolist()
  return [
      best_client_rate(trade_off.constant_rates, question, num_steps)
      for num_steps in sorted({*steps, question.num_steps})
  ]


def fewest_steps(found: Sequence[trade_off.ErrorBound]) -> trade_off.ErrorBound:
  """Returns the one of least K within 5 percent of the best.

  More steps cost time that the bounds know nothing of.

  Args:
    found: Bounds in the order of K.

  Returns:
    One of them.
  """
  enough = _ENOUGH * min(bound.error for bound in found)
  return next(bound for bound in found if bound.error <= enough)
