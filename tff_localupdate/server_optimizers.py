"""Server optimizers: SGD, Yogi, Adam and Adagrad, in float32 or float64.

LocalUpdate hands q_t to the server optimizer as the gradient, without change
of sign: x_{t+1} = ServerOpt(x_t, q_t, eta_t), Charles and Konecny (2020),
section 7. The optimizers of `tff.learning.optimizers` take the same steps and
may replace these, but keep their rates (and Yogi its bias correction) in
float32, which limits a float64 run to about 1e-8.

All builders take `learning_rate`, eta, finite and not negative, and `dtype`,
`float32` or `float64`, which the weights must have; None takes theirs. They
raise ValueError if an argument is out of its range.
"""

import collections
from collections.abc import Callable, Mapping
import math
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import optimizer_settings

_LEARNING_RATE = tff.learning.optimizers.LEARNING_RATE_KEY
_STEP = 'step'
_SGD, _YOGI, _ADAM, _ADAGRAD = (
    optimizer_settings.defaults(optimizer_settings.SERVER[name])
    for name in ('sgd', 'yogi', 'adam', 'adagrad')
)

_State = collections.OrderedDict[str, Any]


class LeafwiseOptimizer(tff.learning.optimizers.Optimizer):
  """Applies a formula to each weight tensor, in the dtype of the weights.

  The state is an ordered dict of `learning_rate` (a scalar, the one
  hyperparameter that is meant to change during training), `step` (int64, the
  number of steps taken) and the slots, each with the structure of the weights.
  All but `step` have the dtype of the weights.
  """

  def __init__(
      self,
      learning_rate: float,
      leaf_step: Callable[..., tuple[tf.Tensor, ...]],
      *,
      dtype: Optional[str] = None,
      initial_slots: Optional[Mapping[str, float]] = None,
      rate_factor: Optional[Callable[[tf.Tensor], tf.Tensor]] = None,
  ):
    """Describes the optimizer by the step of one weight tensor.

    `leaf_step` maps (rate, weight, gradient, *slots) of one weight tensor to
    (weight, *slots) after the step; `initial_slots` names the slots and their
    constant initial values. `rate_factor` maps the number of the step, counted
    from 1, in the dtype of the rate, to a factor of the rate; None is no
    factor.
    """
    arguments.check_not_negative(_LEARNING_RATE, learning_rate)
    self._learning_rate = learning_rate
    self._leaf_step = leaf_step
    self._dtype = None if dtype is None else arguments.checked_dtype(dtype)
    self._initial_slots = dict(initial_slots or {})
    self._rate_factor = rate_factor

  def initialize(self, specs: Any) -> _State:
    """Returns the state before the first step, for specs of one dtype."""
    dtype = _common_dtype(specs)
    if self._dtype not in (None, dtype):
      raise ValueError(
          'the weights must have the dtype of their optimizer, '
          f'{self._dtype}, found {dtype}.'
      )
    state = collections.OrderedDict([
        (_LEARNING_RATE, tf.constant(self._learning_rate, dtype)),
        (_STEP, tf.constant(0, tf.int64)),
    ])
    for name, value in self._initial_slots.items():
      state[name] = tf.nest.map_structure(
          lambda spec, value=value: tf.fill(
              spec.shape, tf.constant(value, spec.dtype)
          ),
          specs,
      )
    return state

  def next(
      self, state: _State, weights: Any, gradients: Any
  ) -> tuple[_State, Any]:
    """Takes a step; a weight whose gradient is None stays as it is."""
    gradients = tff.learning.optimizers.handle_indexed_slices_gradients(
        gradients
    )
    tff.learning.optimizers.check_weights_gradients_match(weights, gradients)
    step = state[_STEP] + 1
    rate = state[_LEARNING_RATE]
    if self._rate_factor is not None:
      rate *= self._rate_factor(tf.cast(step, rate.dtype))
    slots = [state[name] for name in self._initial_slots]
    columns = [tf.nest.flatten(s) for s in (weights, gradients, *slots)]
    stepped = [
        (w, *s) if g is None else self._leaf_step(rate, w, g, *s)
        for w, g, *s in zip(*columns)
    ]
    new_weights, *new_slots = (
        tf.nest.pack_sequence_as(weights, [leaves[i] for leaves in stepped])
        for i in range(1 + len(slots))
    )
    new_state = collections.OrderedDict(
        [(_LEARNING_RATE, state[_LEARNING_RATE]), (_STEP, step)]
    )
    new_state.update(zip(self._initial_slots, new_slots))
    return new_state, new_weights

  def get_hparams(self, state: _State) -> _State:
    """Returns an ordered dict with the `learning_rate`."""
    return collections.OrderedDict([(_LEARNING_RATE, state[_LEARNING_RATE])])

  def set_hparams(self, state: _State, hparams: _State) -> _State:
    """Returns the state with another `learning_rate`, in the same dtype."""
    dtype = state[_LEARNING_RATE].dtype
    # The hint keeps a Python float in full precision on its way to float64.
    rate = tf.convert_to_tensor(hparams[_LEARNING_RATE], dtype_hint=dtype)
    new_state = collections.OrderedDict(state)
    new_state[_LEARNING_RATE] = tf.cast(rate, dtype)
    return new_state


def _common_dtype(specs: Any) -> str:
  dtypes = sorted({spec.dtype.name for spec in tf.nest.flatten(specs)})
  if len(dtypes) != 1 or dtypes[0] not in arguments.FLOAT_DTYPES:
    raise ValueError(
        'the weights must have one dtype, float32 or float64, found '
        f'{", ".join(dtypes) or "no weights"}.'
    )
  return dtypes[0]


def build_sgd(
    learning_rate: float,
    momentum: float = _SGD['momentum'],
    *,
    dtype: Optional[str] = None,
) -> tff.learning.optimizers.Optimizer:
  """Returns gradient descent, with heavy-ball momentum if that is not 0.

  With rate eta, momentum b and gradient q, from velocity 0:

      velocity <- b velocity + q
      x        <- x - eta velocity

  b is `momentum`, in [0, 1); with 0 no velocity is kept.
  """
  arguments.check_decay('momentum', momentum)

  def descend(rate, weight, gradient):
    return (weight - rate * gradient,)

  def roll(rate, weight, gradient, velocity):
    velocity = momentum * velocity + gradient
    return weight - rate * velocity, velocity

  return LeafwiseOptimizer(
      learning_rate,
      roll if momentum else descend,
      dtype=dtype,
      initial_slots={'velocity': 0.0} if momentum else None,
  )


def build_yogi(
    learning_rate: float,
    *,
    beta_1: float = _YOGI['beta_1'],
    beta_2: float = _YOGI['beta_2'],
    epsilon: float = _YOGI['epsilon'],
    initial_accumulator: float = _YOGI['initial_accumulator'],
    bias_correction: bool = _YOGI['bias_correction'],
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
    learning_rate: eta.
    beta_1: b1 in [0, 1).
    beta_2: b2 in [0, 1).
    epsilon: eps, finite and positive.
    initial_accumulator: v before the first step, finite and not negative.
    bias_correction: Whether eta_t corrects the bias of m and v.
    dtype: See the module.
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
    beta_1: float = _ADAM['beta_1'],
    beta_2: float = _ADAM['beta_2'],
    epsilon: float = _ADAM['epsilon'],
    initial_accumulator: float = _ADAM['initial_accumulator'],
    bias_correction: bool = _ADAM['bias_correction'],
    dtype: Optional[str] = None,
) -> tff.learning.optimizers.Optimizer:
  """Returns Adam, with the defaults of `tff.learning.optimizers.build_adam`.

  Takes the arguments of `build_yogi`, from which it differs in the rule

      v <- b2 v + (1 - b2) q^2

  Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015.
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
    initial_accumulator: float = _ADAGRAD['initial_accumulator'],
    epsilon: float = _ADAGRAD['epsilon'],
    dtype: Optional[str] = None,
) -> tff.learning.optimizers.Optimizer:
  """Returns Adagrad, with the defaults of TFF's `build_adagrad`.

  With rate eta and gradient q, from v = `initial_accumulator`:

      v <- v + q^2
      x <- x - eta q / sqrt(v + eps)

  Duchi et al., Adaptive Subgradient Methods for Online Learning and Stochastic
  Optimization, JMLR 2011.

  v before the first step is not negative, eps, `epsilon`, is positive; both are
  finite.
  """
  arguments.check_not_negative('initial_accumulator', initial_accumulator)
  arguments.check_positive('epsilon', epsilon)

  def leaf_step(rate, weight, gradient, accumulator):
    accumulator += tf.square(gradient)
    weight -= rate * gradient / tf.sqrt(accumulator + epsilon)
    return weight, accumulator

  return LeafwiseOptimizer(
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

  return LeafwiseOptimizer(
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
