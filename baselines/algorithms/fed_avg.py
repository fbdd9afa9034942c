"""FedAvg: the mean of the points that clients reach, a rival of CEAL."""

from typing import Optional

import tensorflow_federated as tff

from baselines.algorithms import rival_round
from baselines.algorithms import rivals


def build_fed_avg(
    model: tff.learning.models.FunctionalModel,
    *,
    local_steps: int,
    batch_size: int,
    step_size: float,
    horizon: Optional[int] = None,
    seed: int = 0,
    dtype: Optional[str] = None,
) -> rivals.RivalProcess:
  """Builds FedAvg. In a round, with M clients,

      client m: x_m = x; L times: x_m <- x_m - eta g, g queried at x_m;
                sends x_m
      server:   x <- (1/M) sum_m x_m; broadcasts x

  Both messages are floats, d of them: 32 d bits in float32, 64 d in float64.
  LocalUpdate with Theta_{1:L} and gamma = eta.

  Source: McMahan et al., AISTATS 2017, arXiv 1602.05629; as compared with CEAL
  in arXiv 2301.08869.

  Departures: clients of different sizes count alike.

  Args:
    model: The model, see `rivals.build_process`.
    local_steps: L.
    batch_size: B, the examples of a query.
    step_size: The initial eta, above 0.
    horizon: T, the queries of each client in all; None if there is no end.
    seed: A whole number; nothing is drawn here, but loops set it for all.
    dtype: The dtype of the weights, `float32` or `float64`; None takes theirs.

  Returns:
    The `rivals.RivalProcess`, over `rival_round.ClientSteps`.

  Raises:
    TypeError: If `model` is not of its type.
    ValueError: If any other argument is out of its range.
  """
  rules = rival_round.RoundRules(
      work=rivals.local_sgd(local_steps),
      local_steps=local_steps,
      horizon=horizon,
      **rivals.float_message(),
  )
  return rivals.build_process(
      model,
      rules,
      batch_size=batch_size,
      step_size=step_size,
      seed=seed,
      dtype=dtype,
  )
