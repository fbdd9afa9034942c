"""Which gamma, eta and K the bounds of `trade_off` recommend, as a table."""

from collections.abc import Sequence
import math
from typing import Any, Optional

import pandas as pd

from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import bounds
from tff_localupdate.theory import convergence
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import trade_off

NOTES = (
    'error bounds sqrt(E||x_{T+1} - x*||^2); surrogate_distance bounds '
    '||x*_gamma - x*||, the part of it that more rounds do not mend.',
    'With an offset xi the rates of round t are (1 + xi)/(t + xi) times those '
    'listed: eta alone under Theorem 27, both under Theorem 29.',
    'V is taken for every gamma. K: the least of those tried, up to ten times '
    'the K given or 100, within 5 percent of the best.',
    'max_server_learning_rate is mu_gamma/L_gamma^2 (22); condition_number is '
    'the bound of Corollary 13.',
    'derived: worked out anew along the surviving proofs, the printed '
    'constants may differ. house: constants chosen here, only the rate in t '
    'is the paper\'s.',
)

# The columns that answer which rates and steps, and those that say how far the
# surrogate minimizer is.
ADVICE = (
    'choice', 'num_steps', 'client_learning_rate', 'server_learning_rate',
    'offset', 'error', 'optimisation', 'surrogate_distance', 'bounds', 'form',
)
DISTANCES = (
    'choice', 'num_steps', 'client_learning_rate', 'condition_number',
    'max_server_learning_rate', 'theorem_16', 'theorem_17', 'theorem_21',
    'corollary_19',
)


def advice_table(
    question: trade_off.Question,
    best_of_each: Sequence[trade_off.ErrorBound],
    client_learning_rate: Optional[float] = None,
) -> pd.DataFrame:
  """Returns what the bounds recommend.

  Args:
    question: The constants.
    best_of_each: The best constant rates for each K.
    client_learning_rate: A gamma to add to those that are recommended.

  Returns:
    A table with the columns `ADVICE` and `DISTANCES`, one row per choice:
    constant rates with gamma = 0, which is mini-batch SGD; with the best gamma;
    the best gamma if eta decays, and if both rates decay; constant rates with
    the best gamma and the fewest steps that do; the gamma that was given.

  Raises:
    ValueError: If `client_learning_rate` is not below 1/L.
  """
  steps = question.num_steps
  schedules = {
      'best gamma': trade_off.constant_rates,
      'best gamma, eta decays': trade_off.decaying_server_rate,
      'best gamma, both decay': trade_off.decaying_rates,
  }
  choices = {'gamma = 0': trade_off.constant_rates(question, steps, 0.0)}
  for choice, bound in schedules.items():
    choices[choice] = trade_off.best_client_rate(bound, question, steps)
  choices['best gamma and K'] = trade_off.fewest_steps(best_of_each)
  if client_learning_rate is not None:
    choices['given gamma'] = trade_off.constant_rates(
        question, steps, client_learning_rate
    )
  return pd.DataFrame([
      {'choice': choice, **_row(question, found)}
      for choice, found in choices.items()
  ])


def distance_bounds(
    constants: quadratics.PopulationConstants,
    num_steps: int,
    client_learning_rate: float,
) -> dict[str, float]:
  """Returns every bound on ||x*_gamma - x*||, by its name.

  Args:
    constants: mu, L, sigma_A, sigma_c.
    num_steps: K.
    client_learning_rate: gamma < 1/L.

  Returns:
    The bounds of Theorems 16, 17 and 21 and of Corollary 19.
  """
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


def _row(
    question: trade_off.Question, found: trade_off.ErrorBound
) -> dict[str, Any]:
  where = (question.constants, found.num_steps, found.client_learning_rate)
  mu, smoothness = convergence.surrogate_constants(*where)
  distances = distance_bounds(*where)
  return {
      **found._asdict(),
      **_origin(found, distances),
      'condition_number': smoothness / mu,
      'max_server_learning_rate': mu / smoothness**2,
      **distances,
  }


def _origin(
    found: trade_off.ErrorBound, distances: dict[str, float]
) -> dict[str, str]:
  """Names the theorems behind a bound on the error."""
  if found.surrogate_distance is None:
    return {'bounds': 'Theorem 29', 'form': 'house'}
  theorems = ['26' if found.offset is None else '27']
  if found.surrogate_distance > 0.0:
    is_17 = found.surrogate_distance == distances['theorem_17']
    theorems.append('17' if is_17 else '21')
  return {
      'bounds': f'Theorem {" and ".join(theorems)}',
      'form': 'derived' if found.offset is None else 'house',
  }
