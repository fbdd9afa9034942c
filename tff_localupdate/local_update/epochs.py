"""LocalUpdate in epochs: clients go through their data, E times a round."""

import functools
from typing import Optional

import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import local_steps as local_steps_lib
from tff_localupdate.local_update import process


def build_local_update_epochs(
    model: tff.learning.models.FunctionalModel,
    *,
    num_padded_steps: int,
    batch_size: int,
    client_learning_rate: float,
    server_optimizer: tff.learning.optimizers.Optimizer,
    aggregator: Optional[tff.aggregators.UnweightedAggregationFactory] = None,
    loss_before_training: str = 'drawn',
    local_steps: Optional[local_steps_lib.LocalSteps] = None,
) -> process.LocalUpdateProcess:
  """Builds LocalUpdate whose clients go through their data in epochs.

  The round of `process.build_local_update`, but for the batches and their
  number: client i, of n_i examples, takes

      K_i = E ceil(n_i / B) steps,   q_t^i = sum_k g_k,   k = 1, ..., K_i

  over its data in E epochs, each shuffled anew, the last batch of each as short
  as it comes; `epoch_draws.draw_epochs` draws such batches. Its value is a
  `client_work.ClientEpochs`: batches of leaves [K_max, B, ...] and their sizes.
  Steps that a client does not have move nothing, add nothing and cost nothing;
  so do rows beyond the size of a batch. A client of n_i <= B takes exactly E
  steps along full gradients.

  XLA compiles this round anew for other sizes of batches: compile it with
  `execution.compile_process(process, jit='off')`.

  Source: arXiv 2007.00878 names epochs as the alternative to local steps, and
  the public code of its experiments uses them.

  Departures from LocalUpdate: an epoch is drawn without replacement, so that
  E[q] is not the gradient of the surrogate loss (Theorem 3 does not hold;
  `theory.sampling_bias.epoch_bias` is the difference for two steps). And the
  norm of q^i grows with K_i: in a mean with equal weights, clients count by
  their number of steps.

  Takes the arguments of `process.build_local_update`, and raises its errors,
  but for these.

  Args:
    model: The model; its loss is the mean over a batch of any size, which its
      input spec has to leave open.
    num_padded_steps: K_max, at least the K_i of every client.
    loss_before_training: Over which examples a client's loss at x_t is taken:
      `drawn`, those of all batches, which is f_i(x_t) itself, at the cost of a
      forward pass; `first_batch`, those of its first step, which costs nothing.
    local_steps: Other ways to take the local steps; step factors are K_max.
  """
  arguments.check_choice(
      'loss_before_training', loss_before_training, ('drawn', 'first_batch')
  )
  initialize, next_fn = process.build_computations(
      model,
      lambda spec: client_work.epochs_type(spec, num_padded_steps, batch_size),
      functools.partial(
          client_work.epoch_client_work,
          local_steps=local_steps_lib.checked(local_steps, num_padded_steps),
          loss_before_training=loss_before_training,
      ),
      client_learning_rate=client_learning_rate,
      server_optimizer=server_optimizer,
      aggregator=aggregator,
  )
  return process.LocalUpdateProcess(initialize, next_fn, server_optimizer)
