"""TFF's baseline tasks, next to those of this repository."""

import types

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import registry
from tests import sequences

# One batch per client: TFF shuffles the batches of a client.
CLIENT_SPEC = tff.simulation.baselines.ClientSpec(
    num_epochs=1, batch_size=5000, shuffle_buffer_size=1
)


def build(name, data_source='synthetic', data_dir=None, model=None,
          data_seed=None):
  """Builds a task of this repository, with its first model by default."""
  return registry.build_task(types.SimpleNamespace(
      task=name,
      model=model or registry.task_entry(name).models[0],
      data_source=data_source,
      data_dir=data_dir,
      data_seed=data_seed,
  ))


def examples(reference, client_id, train=True):
  """Returns a client's (x, y) as TFF's task preprocesses them."""
  datasets = reference.datasets
  client_data = datasets.train_data if train else datasets.test_data
  dataset = datasets.train_preprocess_fn(
      client_data.create_tf_dataset_for_client(client_id)
  )
  return next(dataset.as_numpy_iterator())


def assert_equal_clients(arrays, reference, train=True, step=1):
  """Compares the names of all clients, and the data of each `step`-th."""
  datasets = reference.datasets
  client_data = datasets.train_data if train else datasets.test_data
  assert sorted(arrays.client_ids) == sorted(client_data.client_ids)
  for i in range(0, arrays.num_clients, step):
    for found, expected in sequences.pairs(
        arrays.take(i), examples(reference, arrays.client_ids[i], train)
    ):
      assert found.dtype == expected.dtype
      np.testing.assert_array_equal(found, expected)


def tff_step(keras, values, x, y):
  """Returns output, loss and gradients of TFF's model at these weights."""
  for variable, value in sequences.pairs(keras.trainable_variables, values):
    variable.assign(value)  # Also compares the shapes.

  @tf.function
  def step():
    with tf.GradientTape() as tape:
      output = keras.forward_pass((x, y), training=True)
    gradients = tape.gradient(output.loss, keras.trainable_variables)
    return output.predictions, output.loss, [
        tf.convert_to_tensor(g) for g in gradients
    ]

  return step()


def step(model, values, x, y):
  """Returns output, loss and gradients of a functional model."""
  weights = tuple(map(tf.constant, values))

  @tf.function
  def traced():
    with tf.GradientTape() as tape:
      tape.watch(weights)
      output = model.predict_on_batch((weights, ()), x, training=True)
      loss = model.loss(output, y)
    return output, loss, [
        tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)
    ]

  return traced()


def assert_close(found, expected, rtol):
  """Compares structures, each tensor relative to its largest number."""
  for b, a in sequences.pairs(
      tf.nest.flatten(found), tf.nest.flatten(expected)
  ):
    assert np.isfinite(b).all()
    np.testing.assert_allclose(b, a, atol=rtol * np.abs(a).max())
