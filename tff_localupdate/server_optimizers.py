"""Server optimizers: SGD, Yogi, Adam and Adagrad, in float32 or float64.

LocalUpdate hands q_t to the server optimizer as the gradient, without change
of sign: x_{t+1} = ServerOpt(x_t, q_t, eta_t), Charles and Konecny (2020),
section 7. The optimizers of `tff.learning.optimizers` take the same steps and
may stand in the place of these, but keep their rates (and Yogi its bias
correction) in float32, which limits a float64 run to about 1e-8. These keep
everything in the dtype of the weights.
"""

from collections.abc import Callable
import math
from typing import Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import leafwise_optimizer


def build_sgd(
    learning_rate: float,
    momentum: float = 0.0,
    *,
    dtype: Optional[str] = None,
) -> tff.learning.optimizers.Optimizer:
  """Returns gradient descent, with heavy-ball momentum if that is not 0.

  With rate eta, momentum b and gradient q, from velocity 0:

      velocity <- b velocity + q
      x        <- x - eta velocity

  Args:
    learning_rate: eta, finite and not negative.
    momentum: b in [0, 1). With 0 no velocity is kept.
    dtype: `float32` or `float64`, which the weights must have. None takes the
      dtype of the weights.

  Returns:
    A `tff.learning.optimizers.Optimizer`.

  Raises:
    ValueError: If an argument is out of its range.
  """
  arguments.check_decay('momentum', momentum)

  def descend(rate, weight, gradient):
    return (weight - rate * gradient,)

  def roll(rate, weight, gradient, velocity):
    velocity = momentum * velocity + gradient
    return weight - rate * velocity, velocity

  return leafwise_optimizer.LeafwiseOptimizer(
      learning_rate,
      roll if momentum else descend,
      dtype=dtype,
      initial_slots={'velocity': 0.0} if momentum else None,
  )


def build_yogi(
    learning_rate: float,
    *,
    beta_1: float = 0.9,
    beta_2: float = 0.99,
    epsilon: float = 1e-5,
    initial_accumulator: float = 0.0,
    bias_correction: bool = True,
    dtype: Optional[str] = None,
) -> tff.learning.optimizers.Optimizer:
  """Returns Yogi with the settings of Charles and Konecny (2020).

  With rate eta, gradient q, and t counting the steps from 1:

      m <- b1 m + (1 - b1) q
      v <- v + (1 - b2) sign(q^2 - v) q^2
      x <- x - eta_t m / (sqrt(v) + eps)
      eta_t = eta sqrt(1 - b2^t) / (1 - b1^t), or eta without bias correction

  from m = 0 and v = `initial_accumulator`. Zaheer et al., Adaptive Methods for
  Nonconvex Optimization, NeurIPS 2018.

  Departures: Algorithm 2 of Zaheer et al. corrects no bias; the optimizers of
  the time, `tff.learning.optimizers.build_yogi` among them, do, and so does
  this one unless told otherwise. TFF's defaults are beta_2 0.999, epsilon 1e-3
  and initial value 1e-6.

  Args:
    learning_rate: eta, finite and not negative.
    beta_1: b1 in [0, 1).
    beta_2: b2 in [0, 1).
    epsilon: eps, finite and positive.
    initial_accumulator: v before the first step, finite and not negative.
    bias_correction: Whether eta_t corrects the bias of m and v.
    dtype: `float32` or `float64`, which the weights must have. None takes the
      dtype of the weights.

  Returns:
    A `tff.learning.optimizers.Optimizer`.

  Raises:
    ValueError: If an argument is out of its range.
  """

  def second_moment(accumulator, square):
    return accumulator + (1.0 - beta_2) * tf.sign(square - accumulator) * square

  return _build_adaptive(
      learning_rate,
      second_moment,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
      initial_accumulator=initial_accumulator,
      bias_correction=bias_correction,
      dtype=dtype,
  )


def build_adam(
    learning_rate: float,
    *,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-7,
    initial_accumulator: float = 0.0,
    bias_correction: bool = True,
    dtype: Optional[str] = None,
) -> tff.learning.optimizers.Optimizer:
  """Returns Adam, with the defaults of `tff.learning.optimizers.build_adam`.

  As `build_yogi`, where all arguments are explained, but for the rule

      v <- b2 v + (1 - b2) q^2

  Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015.

  Args:
    learning_rate: eta.
    beta_1: b1.
    beta_2: b2.
    epsilon: eps.
    initial_accumulator: v before the first step.
    bias_correction: Whether eta_t corrects the bias of m and v.
    dtype: The dtype that the weights must have, or None.

  Returns:
    A `tff.learning.optimizers.Optimizer`.

  Raises:
    ValueError: If an argument is out of its range.
  """

  def second_moment(accumulator, square):
    return accumulator + (1.0 - beta_2) * (square - accumulator)

  return _build_adaptive(
      learning_rate,
      second_moment,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
      initial_accumulator=initial_accumulator,
      bias_correction=bias_correction,
      dtype=dtype,
  )


def build_adagrad(
    learning_rate: float,
    *,
    initial_accumulator: float = 0.1,
    epsilon: float = 1e-7,
    dtype: Optional[str] = None,
) -> tff.learning.optimizers.Optimizer:
  """Returns Adagrad, with the defaults of TFF's `build_adagrad`.

  With rate eta and gradient q, from v = `initial_accumulator`:

      v <- v + q^2
      x <- x - eta q / sqrt(v + eps)

  Duchi et al., Adaptive Subgradient Methods for Online Learning and Stochastic
  Optimization, JMLR 2011.

  Args:
    learning_rate: eta, finite and not negative.
    initial_accumulator: v before the first step, finite and not negative.
    epsilon: eps, finite and positive.
    dtype: `float32` or `float64`, which the weights must have. None takes the
      dtype of the weights.

  Returns:
    A `tff.learning.optimizers.Optimizer`.

  Raises:
    ValueError: If an argument is out of its range.
  """
  arguments.check_not_negative('initial_accumulator', initial_accumulator)
  arguments.check_positive('epsilon', epsilon)

  def leaf_step(rate, weight, gradient, accumulator):
    accumulator += tf.square(gradient)
    weight -= rate * gradient / tf.sqrt(accumulator + epsilon)
    return weight, accumulator

  return leafwise_optimizer.LeafwiseOptimizer(
      learning_rate,
      leaf_step,
      dtype=dtype,
      initial_slots={'accumulator': initial_accumulator},
  )


def _build_adaptive(
    learning_rate: float,
    second_moment: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    *,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    initial_accumulator: float,
    bias_correction: bool,
    dtype: Optional[str],
) -> tff.learning.optimizers.Optimizer:
  """Returns what Adam and Yogi share, given the rule for v."""
  arguments.check_decay('beta_1', beta_1)
  arguments.check_decay('beta_2', beta_2)
  arguments.check_positive('epsilon', epsilon)
  arguments.check_not_negative('initial_accumulator', initial_accumulator)

  def leaf_step(rate, weight, gradient, momentum, accumulator):
    momentum += (1.0 - beta_1) * (gradient - momentum)
    accumulator = second_moment(accumulator, tf.square(gradient))
    weight -= rate * momentum / (tf.sqrt(accumulator) + epsilon)
    return weight, momentum, accumulator

  def rate_factor(step):
    second = tf.sqrt(_one_minus_power(beta_2, step))
    return second / _one_minus_power(beta_1, step)

  return leafwise_optimizer.LeafwiseOptimizer(
      learning_rate,
      leaf_step,
      dtype=dtype,
      initial_slots={'momentum': 0.0, 'accumulator': initial_accumulator},
      rate_factor=rate_factor if bias_correction else None,
  )


def _one_minus_power(base: float, exponent: tf.Tensor) -> tf.Tensor:
  """Returns 1 - base^exponent without the cancellation of that formula."""
  log_base = math.log(base) if base > 0.0 else -math.inf
  return -tf.math.expm1(exponent * log_base)
