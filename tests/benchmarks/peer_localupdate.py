"""This package on the work of a harness that times simulators side by side.

`scripts/compare_peers.sh` copies this file into a copy of the harness, whose
module `workloads` gives data, starting weights and the clock, and prints one
JSON line. Rounds are those of `build_local_update`: the same local steps, the
mean of the clients' sums of gradients, a server step of the same rate.

  program: `execution.compile_process`, fed with the stacked cohort as NumPy;
  process: `process.next` under the in-process context, fed with a list.
"""

import time

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
import workloads as harness

from baselines.tasks import cifar100
from baselines.tasks import femnist
from baselines.tasks import layers
from baselines.tasks import models
from baselines.tasks import shakespeare
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process as process_lib

_WORDS = 30  # of a generated post, at most


def build_model(name, apply_fn, example_loss_fn, features, label):
  """A model of the harness's shapes, on any function of its weights."""
  return models.build_functional_model(
      apply_fn=apply_fn,
      weight_spec=[
          (key, shape, models.zeros)
          for key, shape in harness.weight_shapes(name)
      ],
      example_loss_fn=example_loss_fn,
      input_spec=(features, label),
      seed=0,
      dtype='float32',
  )


def linear():
  return build_model(
      'linreg',
      lambda w, x: tf.matmul(x, w[0]) + w[1],
      lambda output, label: tf.reduce_mean((output - label) ** 2, axis=1),
      tf.TensorSpec([None, 30]),
      tf.TensorSpec([None, 1]),
  )


def tags():
  """Logistic regression on the words that a post has, not on all 10,000."""
  return build_model(
      'so_tag_lr',
      lambda w, x: layers.weighted_sums(w[0], *x) + w[1],
      lambda output, label: tf.reduce_sum(
          tf.nn.sigmoid_cross_entropy_with_logits(
              tf.cast(label, output.dtype), output), axis=1),
      (tf.TensorSpec([None, _WORDS], tf.int32),
       tf.TensorSpec([None, _WORDS])),
      tf.TensorSpec([None, 500], tf.uint8),
  )


def resnet18():
  return build_model(
      'cifar_resnet18_gn',
      cifar100.logits,
      models.classification_loss,
      tf.TensorSpec([None, 24, 24, 3]),
      tf.TensorSpec([None], tf.int32),
  )


MODELS = {
    'linreg': linear,
    'so_tag_lr': tags,
    'emnist_cnn': lambda: femnist.build_cnn(62, 0, 'float32'),
    'shakespeare_lstm': lambda: shakespeare.build_lstm(0, 'float32'),
    'cifar_resnet18_gn': resnet18,
}


def sparse(x):
  """Positions and values of what is not zero in rows of `x`."""
  positions = np.zeros((len(x), _WORDS), np.int32)
  values = np.zeros((len(x), _WORDS), np.float32)
  for i, row in enumerate(x):
    found, = np.nonzero(row)
    positions[i, :len(found)], values[i, :len(found)] = found, row[found]
  return positions, values


def read_client(name, client_id, spec):
  """The client's data as the model takes it, leaves [K, B, ...]."""
  x, y = harness.client_data(name, client_id, spec)
  if name == 'so_tag_lr':
    x, y = sparse(x), y.astype(np.uint8)
  if name == 'shakespeare_lstm':
    x, y = x.astype(np.int64), y.astype(np.int64)
  return tf.nest.map_structure(
      lambda leaf: leaf.reshape(spec['k'], spec['b'], *leaf.shape[1:]), (x, y)
  )


def main():
  arguments = harness.parse_args(('program', 'process'))
  name, spec = arguments.workload, arguments.spec
  if name not in MODELS:
    raise SystemExit(f'workload must be one of {list(MODELS)}, found {name}.')
  execution.configure()  # Before the harness's data are used.
  clock = harness.Clock(
      arguments, 'localupdate',
      {'tensorflow': tf.__version__, 'tff': tff.__version__},
  )
  process = process_lib.build_local_update(
      MODELS[name](),
      theta=theta.Theta.ones(spec['k']),
      batch_size=spec['b'],
      client_learning_rate=spec['lr'],
      server_optimizer=server_optimizers.build_sgd(spec['lr']),
      loss_before_training='first_batch',
  )
  started = time.time()
  # Client by client: dense words of all clients would be most of the memory.
  data = [read_client(name, i, spec) for i in range(spec['m'])]
  clock.t_data = time.time() - started
  run_round, state, report = _rounds(
      process, data, arguments.variant == 'process')
  del data
  # As tensors, which a round takes as they are, and no arrays beside them.
  state = process.set_model_weights(
      state,
      tff.learning.models.ModelWeights(
          tuple(map(tf.constant, harness.initial_weights(name).values())), ()),
  )
  keys = [key for key, _ in harness.weight_shapes(name)]

  def weights():
    trainable = process.get_model_weights(state).trainable
    # No copies: what the harness does with them is part of the peak already.
    return dict(zip(keys, map(np.asarray, map(memoryview, trainable))))

  clock.start()
  while clock.more():
    state, metrics = run_round(state)
    np.asarray(state.model_weights.trainable[0])  # Weights are there.
    clock.tick(weights)
  clock.finish(
      weights(), loss=float(metrics.loss_before_training),
      runs_on=report(), convert_s=clock.t_data,
  )


def _rounds(process, data, by_process):
  """A function that runs a round, the first state, and where rounds run."""
  counts = np.full(len(data), data[0][1].shape[0] * data[0][1].shape[1],
                   np.int32)
  if by_process:
    execution.set_default_context()
    clients = [
        client_work.ClientBatches(*pair) for pair in zip(data, counts)
    ]
    return (lambda state: process.next(state, clients), process.initialize(),
            lambda: 'the in-process context')
  program = execution.compile_process(process)
  batches = tf.nest.map_structure(lambda *leaves: np.stack(leaves), *data)
  cohort = client_work.ClientBatches(batches, counts)
  return (lambda state: program.next(state, cohort), program.initialize(),
          lambda: program.device_report)


if __name__ == '__main__':
  main()
