"""K-MAML with true second-order gradients: the client's part, and the process.

Charles and Konecny (2020), section 3: the server steps along the gradient of
the loss that a client reaches after K local steps.
"""

from collections.abc import Callable
import functools
from typing import Any, Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.local_update import inner_loop
from tff_localupdate.local_update import process


def maml_gradient(
    loss_fn: inner_loop.LossFn,
    weights: Any,
    batches: Any,
    client_learning_rate: Union[float, tf.Tensor],
    num_steps: int,
) -> Any:
  """Returns q, the gradient of the loss after K local steps, at their start.

  With x_1 = `weights`, gamma = `client_learning_rate`, S_k the k-th batch and
  f(.; S_k) its mean loss, the gradient of m_K(x) = f(X_K(x); S_{K+1}) where
  X_K are K steps of SGD on S_1, ..., S_K:

      for k = 1..K:
        x_{k+1} = x_k - gamma grad f(x_k; S_k)
      q = grad f(x_{K+1}; S_{K+1})
      for k = K..1:
        q = q - gamma H_k q,    H_k the Hessian of f(.; S_k) at x_k
      return q

  which is the chain rule, from the outside. Each H_k q is one gradient of a
  gradient; no Hessian is formed, and nothing is differentiated through the
  loop. What is kept of it are the K points: K copies of the weights, where
  differentiating the loop would keep the activations of K steps.

  If all batches are all data of client i, f(.; S) = f_i, q is the gradient of
  m_K^i, and on quadratics that of InnerLoop with Theta_{2K+1} (Theorem 4). With
  mini-batches, S_k stands both in a step and in H_k: q is the gradient of the
  loss that these batches give, but E[q] is not grad m_K^i, as E[H_k H_k] is not
  E[H_k] E[H_k]. First-order MAML, which has q = grad f(x_{K+1}; S_{K+1}), is
  InnerLoop with Theta_{K+1}.

  Source: Charles and Konecny (2020), equations (12) to (14); Finn et al.,
  Model-Agnostic Meta-Learning, ICML 2017.

  Args:
    loss_fn: Maps (weights, batch) to the mean loss of the batch, a scalar.
    weights: A structure of tensors of one dtype, float32 or float64.
    batches: A structure of tensors [K + 1, B, ...]; slice k of each is S_k.
    client_learning_rate: gamma, a scalar, in any case used in the dtype of the
      weights.
    num_steps: K.

  Returns:
    q, with structure, shapes and dtype of `weights`.

  Raises:
    ValueError: If `num_steps` is not a whole number above 0, or `batches` does
      not hold exactly K + 1 batches.
  """
  gradient, _ = maml_gradient_and_first_loss(
      loss_fn, weights, batches, client_learning_rate, num_steps
  )
  return gradient


def maml_gradient_and_first_loss(
    loss_fn: inner_loop.LossFn,
    weights: Any,
    batches: Any,
    client_learning_rate: Union[float, tf.Tensor],
    num_steps: int,
) -> tuple[Any, tf.Tensor]:
  """Returns q as `maml_gradient` does, and the loss of S_1 at x_1.

  Takes the arguments of `maml_gradient`. The loss, a scalar, comes with the
  first gradient and costs nothing.
  """
  arguments.check_count('num_steps', num_steps)
  inner_loop.check_num_batches(batches, num_steps + 1, 'K + 1')
  weights = tf.nest.map_structure(tf.convert_to_tensor, weights)
  dtype = tf.nest.flatten(weights)[0].dtype
  gamma = inner_loop.as_rate(client_learning_rate, dtype)
  end, points, loss = _take_steps(loss_fn, weights, batches, gamma, num_steps)

  _, gradient = inner_loop.loss_and_gradient(
      loss_fn, end, inner_loop.batch_at(batches, num_steps)
  )

  # The chain rule from the outside in: m_K = f(X_K(x)) and each step has the
  # Jacobian I - gamma H_k, which is symmetric. So the gradient at x_{K+1} is
  # carried back through the steps, last one first, by Hessian-vector products
  # at the points that the way out has kept.
  def go_back(step, gradient):
    step -= 1
    product = hessian_product(
        loss_fn, points(step), inner_loop.batch_at(batches, step), gradient
    )
    return step, tf.nest.map_structure(
        lambda q, h: q - gamma * h, gradient, product
    )

  _, gradient = tf.while_loop(
      lambda step, _: step > 0,
      go_back,
      (tf.constant(num_steps), gradient),
      parallel_iterations=1,
  )
  return gradient, loss


def hessian_product(
    loss_fn: inner_loop.LossFn, weights: Any, batch: Any, vector: Any
) -> Any:
  """Returns H v, with H the Hessian of the loss of a batch.

  `weights`, where the Hessian is taken, v = `vector` and the result have one
  structure; the result is 0 where the gradient does not depend on a weight.
  """
  # The derivative of <gradient, v> with v held fixed is H v: one backward pass
  # over the gradient's own graph, of the cost of a few gradients.
  with tf.GradientTape(watch_accessed_variables=False) as tape:
    tape.watch(weights)
    _, gradient = inner_loop.loss_and_gradient(loss_fn, weights, batch)
  product = tape.gradient(
      gradient,
      weights,
      output_gradients=vector,
      unconnected_gradients=tf.UnconnectedGradients.ZERO,
  )
  return inner_loop.densify(product, weights)


def _take_steps(
    loss_fn: inner_loop.LossFn,
    weights: Any,
    batches: Any,
    gamma: tf.Tensor,
    num_steps: int,
) -> tuple[Any, Callable[[tf.Tensor], Any], tf.Tensor]:
  """Returns x_{K+1}, a function from k - 1 to x_k, the loss of S_1 at x_1."""

  def empty(leaf):
    return tf.TensorArray(
        leaf.dtype,
        num_steps,
        element_shape=leaf.shape,
        clear_after_read=False,
    )


  def take_step(step, point, points, first_loss):
    batch = inner_loop.batch_at(batches, step)
    points = tf.nest.map_structure(
        lambda array, leaf: array.write(step, leaf), points, point
    )
    loss, gradient = inner_loop.loss_and_gradient(loss_fn, point, batch)
    (loss,) = inner_loop.first_loss(step, batch, loss)
    point = tf.nest.map_structure(lambda x, g: x - gamma * g, point, gradient)
    return step + 1, point, points, first_loss + loss

  _, end, points, loss = tf.while_loop(
      lambda step, *_: step < num_steps,
      take_step,
      (
          tf.constant(0),
          weights,
          tf.nest.map_structure(empty, weights),
          tf.zeros_like(gamma),
      ),
      parallel_iterations=1,
  )

  def point_of(step):
    return tf.nest.map_structure(lambda array: array.read(step), points)

  return end, point_of, loss


def build_maml(
    model: tff.learning.models.FunctionalModel,
    *,
    num_steps: int,
    batch_size: int,
    client_learning_rate: float,
    server_optimizer: tff.learning.optimizers.Optimizer,
    aggregator: Optional[tff.aggregators.UnweightedAggregationFactory] = None,
    loss_before_training: str = 'drawn',
    example_loss_fn: Optional[Callable[[Any, Any], tf.Tensor]] = None,
    num_padded_examples: Optional[int] = None,
) -> process.LocalUpdateProcess:
  """Builds K-MAML over client data given as tensors.

  LocalUpdate with another work of the client: q_t^i is the gradient of
  m_K(x_t), the loss of client i after K local steps of rate gamma_t that start
  at x_t, differentiated through these steps; see `surrogate.maml_gradient`.
  Everything else, state and metrics included, is that of
  `process.build_local_update`, with batches of leaves [K + 1, B, ...]: K for
  the steps, and the last for the loss at their end. For full-gradient steps
  each of them holds all data of the client.

  The loss before training is that at x_t, as for LocalUpdate, and not m_K(x_t).

  Source: Charles and Konecny, On the Outsized Importance of Learning Rates in
  Local Update Methods, arXiv 2007.00878, section 3, equations (12) to (14).

  Departures: the paper has full-gradient local steps in Theorem 4 and says no
  more of batches; here steps and the gradients through them share theirs, as
  automatic differentiation has it, which biases E[q] (see there). For
  first-order MAML build LocalUpdate with Theta_{K+1}.

  Takes the arguments of `process.build_local_update`, and raises its errors,
  but for `num_steps`, which is K, at least 1. The operations of `model` need
  second derivatives. With a `client_learning_rate` of 0 it is distributed
  mini-batch SGD. `loss_before_training='drawn'` is over all (K + 1) B examples
  drawn.
  """
  arguments.check_count('num_steps', num_steps)
  return process.build_tensor_process(
      model,
      functools.partial(maml_gradient_and_first_loss, num_steps=num_steps),
      num_batches=num_steps + 1,
      batch_size=batch_size,
      client_learning_rate=client_learning_rate,
      server_optimizer=server_optimizer,
      aggregator=aggregator,
      loss_before_training=loss_before_training,
      example_loss_fn=example_loss_fn,
      num_padded_examples=num_padded_examples,
  )
