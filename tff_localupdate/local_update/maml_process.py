"""K-MAML as an iterative process over client data given as tensors."""

from collections.abc import Callable
import functools
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.local_update import maml
from tff_localupdate.local_update import process


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
  at x_t, differentiated through these steps; `maml.maml_gradient` defines it.
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

  Args:
    model: The model; its loss is the mean over a batch, and its operations have
      second derivatives.
    num_steps: K, at least 1.
    batch_size: B.
    client_learning_rate: The initial gamma, finite and not negative. With 0 it
      is distributed mini-batch SGD.
    server_optimizer: The server optimizer, with the initial eta.
    aggregator: How the mean over the clients is taken; None is
      `tff.aggregators.UnweightedMeanFactory()`.
    loss_before_training: `drawn`, over all (K + 1) B examples drawn;
      `first_batch`, over the B ones of the first step, which costs nothing;
      `full`, over all that the client has.
    example_loss_fn: Maps (output, labels) of n examples to their losses [n];
      with `full` only, where it is needed.
    num_padded_examples: N, the rows of the tensors that hold all examples of a
      client; with `full` only. None leaves N open.

  Returns:
    The process.

  Raises:
    TypeError: If `model`, `server_optimizer` or `aggregator` is not of its
      type.
    ValueError: If any other argument is out of its range, or given although it
      would not be used.
  """
  arguments.check_count('num_steps', num_steps)
  return process.build_tensor_process(
      model,
      functools.partial(
          maml.maml_gradient_and_first_loss, num_steps=num_steps
      ),
      num_batches=num_steps + 1,
      batch_size=batch_size,
      client_learning_rate=client_learning_rate,
      server_optimizer=server_optimizer,
      aggregator=aggregator,
      loss_before_training=loss_before_training,
      example_loss_fn=example_loss_fn,
      num_padded_examples=num_padded_examples,
  )
