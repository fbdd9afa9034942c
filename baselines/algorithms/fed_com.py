"""FedCOM: quantized sums of local gradients, a rival of CEAL."""

from typing import Optional

import tensorflow_federated as tff

from baselines.algorithms import rival_round
from baselines.algorithms import rivals
from tff_localupdate.compression import codes


def build_fed_com(
    model: tff.learning.models.FunctionalModel,
    *,
    local_steps: int,
    batch_size: int,
    step_size: float,
    quantization_levels: int,
    server_factor: float = 10.0,
    code: Optional[codes.Code] = None,
    horizon: Optional[int] = None,
    seed: int = 0,
    dtype: Optional[str] = None,
) -> rivals.RivalProcess:
  """Builds FedCOM. In a round, with M clients,

      client m: x_m = x; L times: x_m <- x_m - eta g, g queried at x_m;
                sends Delta_m = Q_s((x - x_m) / eta)
      server:   x <- x - a eta (1/M) sum_m Delta_m; broadcasts x

  Q_s is `quantizers.QsgdQuantizer`. Its message has a float, the norm, and d
  integers of magnitude at most s: 32 + d (1 + ceil(log2(s + 1))) bits in
  float32 and fixed width. The broadcast is d floats.
  a = 1 is FedPAQ. LocalUpdate with Theta_{1:L}, gamma = eta, a eta in the place
  of its eta, and a quantized mean.

  Source: Haddadpour et al., AISTATS 2021, arXiv 2007.01154, where a is called
  gamma; a = 10 as in arXiv 2301.08869. How the bits are counted is inferred.

  Args:
    model: The model, see `rivals.build_process`.
    local_steps: L.
    batch_size: B, the examples of a query.
    step_size: The initial eta, above 0.
    quantization_levels: s, a whole number that is at least 1.
    server_factor: The initial a, above 0.
    code: The code whose bits are counted; None is the one of fixed width.
    horizon: T, the queries of each client in all; None if there is no end.
    seed: A whole number; determines all draws.
    dtype: The dtype of the weights, `float32` or `float64`; None takes theirs.

  Returns:
    The `rivals.RivalProcess`, over `rival_round.ClientSteps`.

  Raises:
    TypeError: If `model` or `code` is not of its type.
    ValueError: If any other argument is out of its range.
  """
  rules = rival_round.RoundRules(
      work=rivals.local_sgd(local_steps),
      local_steps=local_steps,
      horizon=horizon,
      hparam_names=('step_size', 'server_factor'),
      **rivals.qsgd_message(quantization_levels, code),
  )
  return rivals.build_process(
      model,
      rules,
      batch_size=batch_size,
      step_size=step_size,
      server_factor=server_factor,
      seed=seed,
      dtype=dtype,
  )
