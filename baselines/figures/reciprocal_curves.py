"""The curves of Figure 1 and how far their tails are from their limits.

LocalUpdate with Theta_{1:K} and M = 1 on the population of section 4 of
Charles and Konecny (2020): z of density 8 z/15 on [1/2, 2],
f(x; z) = z x^2/2 - x.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import fractions
import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import reciprocal

POPULATION = reciprocal.LINEAR_DENSITY


@dataclasses.dataclass(frozen=True)
class RunSettings:
  """What the curves of a figure have in common.

  Attributes:
    server_learning_rate: eta.
    start: x_1.
    num_rounds: T, at least 2.
    seed: Of the clients; the same ones for each curve.
  """

  server_learning_rate: fractions.Fraction
  start: float
  num_rounds: int
  seed: int

  @property
  def num_averaged(self) -> int:
    """n: the last half of the iterates is averaged."""
    return self.num_rounds // 2


class Curve(NamedTuple):
  """One run of the process.

  Attributes:
    client_learning_rate: gamma.
    num_steps: K.
    law: The exact moments of an update.
    iterates: x_1, ..., x_{T+1}, as simulated.
    expected: E x_1, ..., E x_{T+1}, exact.
    tail_mean: The mean of the last n iterates.
    tail_error: Its standard error, exact.
    deviation: The standard deviation of an iterate once it has settled, exact.
  """

  client_learning_rate: fractions.Fraction
  num_steps: int
  law: reciprocal.UpdateLaw
  iterates: np.ndarray
  expected: np.ndarray
  tail_mean: float
  tail_error: float
  deviation: float

  @property
  def minimizer(self) -> float:
    """x*(gamma, Theta_{1:K})."""
    return float(self.law.minimizer)

  @property
  def z_score(self) -> float:
    """How many standard errors the tail mean is above the minimizer."""
    return (self.tail_mean - self.minimizer) / self.tail_error

  @property
  def start_effect(self) -> float:
    """The part of `z_score` that is due to x_1: near 0 if T is large enough."""
    num_averaged = (len(self.expected) - 1) // 2
    tail_mean = float(np.mean(self.expected[-num_averaged:]))
    return (tail_mean - self.minimizer) / self.tail_error


def run_curve(
    run: RunSettings, client_learning_rate: fractions.Fraction, num_steps: int
) -> Curve:
  """Runs the process once and computes the moments to compare it with.

  Args:
    run: eta, x_1, T and the seed.
    client_learning_rate: gamma.
    num_steps: K.

  Returns:
    The curve.

  Raises:
    ValueError: If the surrogate loss has no minimizer, or the variance of the
      iterates does not settle.
  """
  theta = theta_lib.Theta.ones(num_steps)
  law = reciprocal.update_law(POPULATION, theta, client_learning_rate)
  variance = reciprocal.stationary_variance(
      law, run.server_learning_rate
  )
  iterates = reciprocal.simulate(
      POPULATION,
      theta,
      client_learning_rate=float(client_learning_rate),
      server_learning_rate=float(run.server_learning_rate),
      start=run.start,
      num_rounds=run.num_rounds,
      seed=run.seed,
  )
  return Curve(
      client_learning_rate=client_learning_rate,
      num_steps=num_steps,
      law=law,
      iterates=iterates,
      expected=reciprocal.expected_iterates(
          law, float(run.server_learning_rate), run.start, run.num_rounds
      ),
      tail_mean=float(np.mean(iterates[-run.num_averaged :])),
      tail_error=tail_error(law, run),
      deviation=math.sqrt(variance),
  )


def tail_error(law: reciprocal.UpdateLaw, run: RunSettings) -> float:
  """Returns the standard error of the mean of the last n iterates.

  With v_t = Var x_t from the exact recursion of the second moment, also before
  it has settled, and rho = 1 - eta E a, iterates s rounds apart have the
  covariance rho^s v_t, so

      Var mean = (1/n^2) sum_t v_t (1 + 2 sum_{s=1}^{T+1-t} rho^s)

  over the n last t.

  Args:
    law: The exact moments of an update.
    run: eta, x_1 and T.

  Returns:
    The standard error.
  """
  eta = float(run.server_learning_rate)
  arguments = (law, eta, run.start, run.num_rounds)
  means = reciprocal.expected_iterates(*arguments)
  squares = reciprocal.squared_distances(*arguments)
  variances = squares - (means - float(law.minimizer)) ** 2
  variances = np.maximum(variances[-run.num_averaged :], 0.0)
  rho = 1.0 - eta * float(law.slope)
  shared = np.cumsum(rho ** np.arange(1, run.num_averaged))
  factors = 1.0 + 2.0 * np.append(shared[::-1], 0.0)
  return math.sqrt(np.dot(variances, factors)) / run.num_averaged


def curve_table(panels: Mapping[str, Sequence[Curve]]) -> pd.DataFrame:
  """Returns one row per curve.

  Args:
    panels: The curves by what varies in their panel.

  Returns:
    A table with the columns: varied; client_learning_rate; num_steps;
    minimizer, x*(gamma, Theta); expected_gap, E x_{T+1} - x*(gamma, Theta);
    tail_mean; standard_error; z_score; start_effect; deviation.
  """
  return pd.DataFrame([
      {
          'varied': varied,
          'client_learning_rate': float(curve.client_learning_rate),
          'num_steps': curve.num_steps,
          'minimizer': curve.minimizer,
          'expected_gap': curve.expected[-1] - curve.minimizer,
          'tail_mean': curve.tail_mean,
          'standard_error': curve.tail_error,
          'z_score': curve.z_score,
          'start_effect': curve.start_effect,
          'deviation': curve.deviation,
      }
      for varied, curves in panels.items()
      for curve in curves
  ])
