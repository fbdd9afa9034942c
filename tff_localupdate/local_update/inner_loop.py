"""Algorithm 2 of Charles and Konecny (2020): InnerLoop, in pure TensorFlow."""

from collections.abc import Callable
from typing import Any, Union

import tensorflow as tf

from tff_localupdate import theta as theta_lib
from tff_localupdate.local_update import local_steps as local_steps_lib

# Maps (weights, batch) to the scalar mean loss of the batch.
LossFn = Callable[[Any, Any], tf.Tensor]


def inner_loop(
    loss_fn: LossFn,
    weights: Any,
    batches: Any,
    client_learning_rate: Union[float, tf.Tensor],
    theta: theta_lib.Theta,
    local_steps: local_steps_lib.LocalSteps = local_steps_lib.PLAIN,
) -> Any:
  """Returns q = sum_k theta_k g_k, a client's sum of weighted gradients.

  With x_1 = `weights`, gamma = `client_learning_rate`, and S_k the k-th batch:

      for k = 1..K(Theta):
        g_k     = gradient of the mean loss of S_k at x_k
        x_{k+1} = x_k - gamma g_k
      return q = sum_k theta_k g_k

  q is a sum of gradients, not a difference of weights: nothing divides by
  gamma, and gamma = 0 is mini-batch SGD. A weight theta_k = 0 leaves g_k out of
  q, but the step is taken.

  The loop is one `tf.while_loop` over pure functions: it runs eagerly, in a
  `tf.function` and under XLA. The result has structure, shapes and dtype of
  `weights`.

  Args:
    loss_fn: Maps (weights, batch) to the mean loss of the batch, a scalar.
    weights: A structure of tensors of one dtype, float32 or float64.
    batches: A structure of tensors [K, B, ...]; slice k of each is S_k.
    client_learning_rate: gamma, a scalar, used in the dtype of the weights.
    theta: The Theta weights.
    local_steps: Options of the steps; the defaults are the loop above.

  Raises ValueError unless `batches`, and the factors of `local_steps` if given,
  are exactly K(Theta).
  """
  total, _ = inner_loop_and_first_loss(
      loss_fn, weights, batches, client_learning_rate, theta, local_steps
  )
  return total


def inner_loop_and_first_loss(
    loss_fn: LossFn,
    weights: Any,
    batches: Any,
    client_learning_rate: Union[float, tf.Tensor],
    theta: theta_lib.Theta,
    local_steps: local_steps_lib.LocalSteps = local_steps_lib.PLAIN,
) -> tuple[Any, tf.Tensor]:
  """Returns q of `inner_loop`, and the loss of S_1 at x_1, at no extra cost."""
  check_num_batches(batches, theta.num_steps, 'K(Theta)')
  local_steps.check_num_steps(theta.num_steps)

  def batch_of_step(step):
    return batch_at(batches, step)

  if theta.num_steps == 1:  # One gradient: no step is needed, nor a loop.
    loss, gradient = loss_and_gradient(loss_fn, weights, batch_of_step(0))
    return _scale(gradient, theta.weights[0]), loss

  dtype = tf.convert_to_tensor(tf.nest.flatten(weights)[0]).dtype
  total, (loss,) = sum_gradients(
      loss_fn,
      weights,
      batch_of_step,
      client_learning_rate,
      theta,
      theta.num_steps,
      observe=first_loss,
      observed=(tf.constant(0.0, dtype),),
      local_steps=local_steps,
  )
  return total, loss


def first_loss(
    step: tf.Tensor, batch: Any, loss: tf.Tensor
) -> tuple[tf.Tensor]:
  """Returns the loss if it is that of the first step, else 0."""
  del batch
  # A later loss may not be finite, so no plain product; and no `==`, which
  # compares identities in the graphs that TFF traces in.
  is_first = tf.cast(tf.equal(step, 0), loss.dtype)
  return (tf.math.multiply_no_nan(loss, is_first),)


def sum_gradients(
    loss_fn: LossFn,
    weights: Any,
    batch_of_step: Callable[[tf.Tensor], Any],
    client_learning_rate: Union[float, tf.Tensor],
    theta: theta_lib.Theta,
    num_steps: Union[int, tf.Tensor],
    observe: Callable[[tf.Tensor, Any, tf.Tensor], tuple[tf.Tensor, ...]],
    observed: tuple[tf.Tensor, ...],
    local_steps: local_steps_lib.LocalSteps = local_steps_lib.PLAIN,
) -> tuple[Any, tuple[tf.Tensor, ...]]:
  """Runs the loop of `inner_loop` over batches that a function supplies.

  Arguments not named here are those of `inner_loop`. Returns q and the sums of
  `observe`.

  Args:
    batch_of_step: Maps k = 0, ..., K-1 (an int32 scalar) to the batch of that
      step. Called in this order, once for each step taken.
    num_steps: K(Theta), or 0 to take no step and return zeros.
    observe: Maps k-1, the batch S_k, and its loss at x_k to tensors that are
      summed over the steps.
    observed: Where the sums of `observe` start.
  """
  weights = tf.nest.map_structure(tf.convert_to_tensor, weights)
  dtype = tf.nest.flatten(weights)[0].dtype
  mover = local_steps.start(weights, as_rate(client_learning_rate, dtype))
  add_gradient, factor = _weighting(theta, dtype)

  def take_step(step, point, state, total, observed):
    batch = batch_of_step(step)
    loss, gradient = loss_and_gradient(
        loss_fn, point, batch, dense=not local_steps.takes_slices
    )
    gradient, point, state = mover.move(step, point, gradient, state)
    total = add_gradient(step, total, gradient)
    observed = tf.nest.map_structure(
        tf.add, observed, observe(step, batch, loss)
    )
    return step + 1, point, state, total, observed

  zeros = tf.nest.map_structure(tf.zeros_like, weights)
  *_, total, observed = tf.while_loop(
      lambda step, *_: step < num_steps,
      take_step,
      (tf.constant(0), weights, mover.initial_state, zeros, observed),
      parallel_iterations=1,
  )
  return _scale(total, factor), observed


def as_rate(value: Union[float, tf.Tensor], dtype: tf.DType) -> tf.Tensor:
  """Returns a rate as a scalar of `dtype`, which takes no way by float32."""
  return tf.cast(tf.convert_to_tensor(value, dtype_hint=dtype), dtype)


def batch_at(batches: Any, step: Union[int, tf.Tensor]) -> Any:
  """Returns slice `step` of each tensor of `batches`."""
  # Not leaf[step], which XLA turns into a padded copy of all batches.
  return tf.nest.map_structure(lambda leaf: tf.gather(leaf, step), batches)


def loss_and_gradient(
    loss_fn: LossFn, weights: Any, batch: Any, dense: bool = True
) -> tuple[tf.Tensor, Any]:
  """Returns the loss and its gradient, 0 where a weight is not used.

  `loss_fn` is that of `inner_loop`. Unless `dense`, the gradient may hold
  `tf.IndexedSlices` for weights of which the batch uses some rows only.
  """
  weights = tf.nest.map_structure(tf.convert_to_tensor, weights)
  with tf.GradientTape(watch_accessed_variables=False) as tape:
    tape.watch(weights)
    loss = loss_fn(weights, batch)
  gradient = tape.gradient(
      loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO
  )
  return loss, densify(gradient, weights) if dense else gradient


def densify(gradient: Any, weights: Any) -> Any:
  """Returns the gradient as tensors of the static shapes of the weights.

  Embeddings give `tf.IndexedSlices` of unknown shape, which no loop can carry.
  """

  def as_tensor(leaf, weight):
    leaf = tf.convert_to_tensor(leaf)
    leaf.set_shape(weight.shape)
    return leaf

  return tf.nest.map_structure(as_tensor, gradient, weights)


def check_num_batches(batches: Any, num_batches: int, symbol: str) -> None:
  """Raises ValueError unless the first axis has that many, K for `symbol`."""
  for leaf in tf.nest.flatten(batches):
    found = tf.convert_to_tensor(leaf).shape[0]
    if found not in (None, num_batches):
      raise ValueError(
          f'batches must hold {symbol} = {num_batches} batches, found {found}.'
      )


def _weighting(
    theta: theta_lib.Theta, dtype: tf.DType
) -> tuple[Callable[[tf.Tensor, Any, Any], Any], float]:
  """Returns how to add a gradient to the sum, and a factor for the result.

  The two usual kinds of Theta need no multiplication in each step, which is
  felt with large models.
  """
  *earlier, last = theta.weights
  if all(weight == last for weight in earlier):
    return (
        lambda step, total, gradient: local_steps_lib.add(total, gradient),
        last,
    )
  if not any(earlier):
    return lambda step, total, gradient: densify(gradient, total), last
  theta_k = tf.constant(theta.weights, dtype)

  def add_weighted(step, total, gradient):
    # 0 times a gradient is 0 here even if the gradient is not finite.
    return local_steps_lib.add(
        total,
        gradient,
        lambda g: tf.math.multiply_no_nan(g, theta_k[step]),
    )

  return add_weighted, 1.0


def _scale(structure: Any, factor: float) -> Any:
  if factor == 1.0:
    return structure
  return tf.nest.map_structure(lambda leaf: factor * leaf, structure)
