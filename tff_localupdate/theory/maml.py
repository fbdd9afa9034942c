"""K-MAML on quadratic losses: LocalUpdate of 2K + 1 steps (Theorem 4)."""

import numpy as np

from tff_localupdate import arguments
from tff_localupdate import theta as theta_lib
from tff_localupdate.theory import surrogate


def maml_theta(num_steps: int) -> theta_lib.Theta:
  """Returns Theta_{2K+1}, which K-MAML is on quadratics (Theorem 4).

  Args:
    num_steps: K, the local steps of MAML.

  Returns:
    The weights.

  Raises:
    ValueError: If `num_steps` is not a whole number that is at least 1.
  """
  arguments.check_count('num_steps', num_steps)
  return theta_lib.Theta.single(2 * num_steps + 1)


def maml_gradient(
    hessian: np.ndarray,
    center: np.ndarray,
    x: np.ndarray,
    client_learning_rate: float,
    num_steps: int,
) -> np.ndarray:
  """Returns the gradient of m_K^i(x) = f_i(X_K^i(x)), K-MAML's objective.

  X_K^i(x) is where K full-gradient steps of rate gamma lead from x. The
  gradient, through these steps, is (I - gamma A_i)^{2K} A_i (x - c_i)
  (Theorem 4).

  Args:
    hessian: A_i, [d, d].
    center: c_i, [d].
    x: The point, [d].
    client_learning_rate: gamma.
    num_steps: K.

  Returns:
    The gradient, [d].

  Raises:
    ValueError: If an argument is out of its range.
  """
  hessian = surrogate.surrogate_hessians(
      hessian, maml_theta(num_steps), client_learning_rate
  )
  return hessian @ (np.asarray(x) - center)
