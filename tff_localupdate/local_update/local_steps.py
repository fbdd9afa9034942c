"""The local step x - gamma g, and its options.

The paper's step is x_{k+1} = x_k - gamma g_k, which `LocalSteps` takes by
default. The paper names its options as extensions, or leaves them open.
"""

from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate import optimizer_settings
from tff_localupdate import server_optimizers

ScaleFn = Callable[[tf.Tensor], tf.Tensor]

# A model that looks up rows of a large table gets a gradient in
# `tf.IndexedSlices`: a step then reads and writes the rows of its batch, in
# place, and not the whole table. `add` and `subtract` give the sums of the
# dense gradient, taken row by row in the order of the slices.


def _same(gradient: tf.Tensor) -> tf.Tensor:
  return gradient


def add(point: Any, gradient: Any, scale_fn: ScaleFn = _same) -> Any:
  """Returns x + s(g), a structure of tensors.

  g is of tensors, or `tf.IndexedSlices` of rows, whose indices may repeat; s,
  `scale_fn`, multiplies each number by one factor.
  """

  def add_leaf(x, g):
    if not isinstance(g, tf.IndexedSlices):
      return x + scale_fn(g)
    return tf.tensor_scatter_nd_add(
        x, g.indices[:, tf.newaxis], scale_fn(g.values)
    )

  return tf.nest.map_structure(add_leaf, point, gradient)


def subtract(point: Any, gradient: Any, scale_fn: ScaleFn = _same) -> Any:
  """Returns x - s(g); the arguments are those of `add`."""

  def subtract_leaf(x, g):
    if not isinstance(g, tf.IndexedSlices):
      return x - scale_fn(g)
    return tf.tensor_scatter_nd_sub(
        x, g.indices[:, tf.newaxis], scale_fn(g.values)
    )

  return tf.nest.map_structure(subtract_leaf, point, gradient)


@dataclasses.dataclass(frozen=True)
class LocalSteps:
  """How a client moves between the points where it takes gradients.

  With x_1 the weights received, gamma_k = `step_factors[k-1]` gamma, and mu =
  `proximal_strength`:

      g_k     = gradient of f(x; S_k) + mu/2 |x - x_1|^2 at x_k
      x_{k+1} = x_k - gamma_k d_k
      q       = sum_k theta_k g_k

  where d_k is g_k by `sgd`, and as the optimizer makes it of g_1, ..., g_k by
  the others, which start anew each round:

      momentum:  v_k = b v_{k-1} + g_k,   d_k = v_k,                 v_0 = 0
      adagrad:   a_k = a_{k-1} + g_k^2,   d_k = g_k / sqrt(a_k + eps)

  q stays a sum of gradients whatever the optimizer. It contains those of the
  proximal term, as the model delta of FedProx does: by `sgd`, Theta_{1:K} and
  gamma > 0, q = (x_1 - x_{K+1}) / gamma is exactly that delta over gamma.

  The defaults are the algorithm of the paper, down to the graph. Source:
  Charles and Konecny (2020) name client rates that change within the loop and
  client optimizers other than SGD; the proximal term is of Li et al., Federated
  Optimization in Heterogeneous Networks, MLSys 2020. The surrogate losses of
  the paper's section 3 hold for `step_factors` too (`theory.surrogate`), but
  not for the other options.

  Departures: the FedProx of `tff.learning` 0.87.0 has the sign of the proximal
  term reversed: it steps along the gradient of f minus mu (x - x_1), away from
  x_1. Here it is that of Li et al.

  Attributes:
    optimizer: `sgd`, `momentum` (heavy ball) or `adagrad`.
    momentum: b in [0, 1); of `momentum`, by default 0.9.
    initial_accumulator: a_0, not negative; of `adagrad`, by default 0.1.
    epsilon: eps, positive; of `adagrad`, by default 1e-7.
    step_factors: One finite number >= 0 for each of the K(Theta) steps; None is
      all 1. (The last one moves no point that q depends on.)
    proximal_strength: mu, finite and not negative.

  Raises ValueError if a setting is out of its range, or is one of an optimizer
  that is not chosen.
  """

  optimizer: str = 'sgd'
  momentum: Optional[float] = None
  initial_accumulator: Optional[float] = None
  epsilon: Optional[float] = None
  step_factors: Optional[tuple[float, ...]] = None
  proximal_strength: float = 0.0

  def __post_init__(self) -> None:
    arguments.check_choice(
        'optimizer', self.optimizer, tuple(optimizer_settings.CLIENT)
    )
    chosen = optimizer_settings.CLIENT[self.optimizer]
    for optimizer, settings in optimizer_settings.CLIENT.items():
      for name, own in settings.items():
        found = getattr(self, name)
        if name not in chosen and found is not None:
          raise ValueError(
              f'{name} must be given with optimizer={optimizer!r} only, found '
              f'{found!r} with {self.optimizer!r}.'
          )
        if optimizer == self.optimizer and found is None:
          object.__setattr__(self, name, own.default)
    arguments.check_not_negative('proximal_strength', self.proximal_strength)
    if self.step_factors is not None:
      for factor in self.step_factors:
        arguments.check_not_negative('step_factors', factor)
      factors = tuple(float(factor) for factor in self.step_factors)
      object.__setattr__(self, 'step_factors', factors)
    self._build_optimizer()  # It checks its settings.

  def check_num_steps(self, num_steps: Optional[int]) -> None:
    """Raises ValueError unless the factors are that many, or None."""
    factors = self.step_factors
    if factors is not None and len(factors) != num_steps:
      raise ValueError(
          f'step_factors must be {num_steps} numbers, one for each local step, '
          f'found {len(factors)}.'
      )

  @property
  def takes_slices(self) -> bool:
    """Whether gradients may hold `tf.IndexedSlices`, as absent rows stay."""
    return self.optimizer == 'sgd' and not self.proximal_strength

  def start(self, weights: Any, client_learning_rate: tf.Tensor) -> 'Mover':
    """Returns what takes one client's steps from x_1 in one round."""
    factors = None
    if self.step_factors is not None:
      factors = tf.constant(self.step_factors, client_learning_rate.dtype)

    def rate_of(step):
      if factors is None:
        return client_learning_rate
      return client_learning_rate * tf.gather(factors, step)

    def add_proximal_term(point, gradient):
      if not self.proximal_strength:
        return gradient
      return tf.nest.map_structure(
          lambda g, x, x_1: g + self.proximal_strength * (x - x_1),
          gradient,
          point,
          weights,
      )

    initial_state, descend = self._build_descent(weights)

    def move(step, point, gradient, state):
      gradient = add_proximal_term(point, gradient)
      point, state = descend(rate_of(step), point, gradient, state)
      return gradient, point, state

    return Mover(initial_state, move)

  def _build_descent(self, weights: Any) -> tuple[Any, Callable[..., Any]]:
    """Returns the optimizer's initial state, and its step at a given rate."""
    optimizer = self._build_optimizer()
    if optimizer is None:
      return (), lambda rate, point, gradient, state: (
          subtract(point, gradient, lambda g: rate * g),
          state,
      )

    def descend(rate, point, gradient, state):
      hparams = {tff.learning.optimizers.LEARNING_RATE_KEY: rate}
      state = optimizer.set_hparams(state, hparams)
      state, point = optimizer.next(state, point, gradient)
      return point, state

    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), weights
    )
    return optimizer.initialize(specs), descend

  def _build_optimizer(self) -> Optional[tff.learning.optimizers.Optimizer]:
    """Returns the optimizer, its rate yet to be set; None for `sgd`."""
    if self.optimizer == 'momentum':
      return server_optimizers.build_sgd(0.0, self.momentum)
    if self.optimizer == 'adagrad':
      return server_optimizers.build_adagrad(
          0.0,
          initial_accumulator=self.initial_accumulator,
          epsilon=self.epsilon,
      )
    return None


class Mover(NamedTuple):
  """Takes the local steps of one client in one round.

  Attributes:
    initial_state: What it carries from step to step, before the first.
    move: Maps (k - 1, x_k, gradient of f(x; S_k) at x_k, state) to (g_k,
      x_{k+1}, state).
  """

  initial_state: Any
  move: Callable[[tf.Tensor, Any, Any, Any], tuple[Any, Any, Any]]


PLAIN = LocalSteps()


def checked(
    local_steps: Optional[LocalSteps], num_steps: Optional[int]
) -> LocalSteps:
  """Returns the argument `local_steps` of a builder; None is `PLAIN`.

  Raises TypeError for another type, and ValueError unless there are as many
  factors as `num_steps`, if that is known.
  """
  if local_steps is None:
    return PLAIN
  arguments.check_type('local_steps', local_steps, LocalSteps)
  local_steps.check_num_steps(num_steps)
  return local_steps
