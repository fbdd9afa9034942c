"""The clients of the specification, as models and as NumPy formulas.

Quadratics: f(x; (A, c)) = 1/2 (x-c)' A (x-c), an example being the pair (A, c).
Logistic: mean log loss without bias, an example being a row and its label.
"""

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.local_update import client_work

# Two quadratic clients of one example each, and the point x.
A_1, C_1 = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 0.0])
A_2, C_2 = np.diag([1.0, 3.0]), np.array([0.0, 2.0])
QUADRATICS = ((A_1[None], C_1[None]), (A_2[None], C_2[None]))
QUADRATICS_START = (1.0, 1.0)

# One quadratic client of two examples, in one dimension; it starts from 1.
SCALAR_QUADRATICS = (np.array([[[1.0]], [[3.0]]]), np.array([[0.0], [2.0]]))

# Two logistic clients, and the point w.
LOGISTIC = (
    (np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 0.0, 1.0])),
    (np.array([[2.0, -1.0], [-1.0, 1.0]]), np.array([0.0, 1.0])),
)
LOGISTIC_START = (0.1, -0.2)


def quadratic_loss(x, batch):
  """Mean loss in TensorFlow; batch of A [B, d, d] and c [B, d]."""
  return tf.reduce_mean(_quadratic_losses(x, *batch))


def logistic_loss(w, batch):
  """Mean loss in TensorFlow; batch of rows [B, d] and labels [B]."""
  features, labels = batch
  return tf.reduce_mean(
      tf.nn.sigmoid_cross_entropy_with_logits(
          labels, tf.linalg.matvec(features, w)
      )
  )


def quadratic_gradient(x, matrices, centres):
  """Mean gradient in NumPy."""
  return np.mean(matrices @ (x - centres)[..., None], axis=0)[:, 0]


def logistic_gradient(w, features, labels):
  """Mean gradient in NumPy."""
  errors = 1.0 / (1.0 + np.exp(-features @ w)) - labels
  return features.T @ errors / len(labels)


def quadratic_value(x, matrices, centres):
  """Mean loss in NumPy."""
  difference = x - centres
  return 0.5 * np.mean(
      np.einsum('ni,nij,nj->n', difference, matrices, difference)
  )


def logistic_value(w, features, labels):
  """Mean loss in NumPy."""
  margins = (2.0 * labels - 1.0) * (features @ w)
  return np.mean(np.log1p(np.exp(-margins)))


def transcribe_inner_loop(gradient_fn, x, batches, gamma, weights):
  """Algorithm 2 in NumPy: q for one list of batches, each a tuple of arrays."""
  q = np.zeros_like(x)
  for theta_k, batch in zip(weights, batches):
    g = gradient_fn(x, *batch)
    q = q + theta_k * g
    x = x - gamma * g
  return q


def quadratic_model(dtype, start=QUADRATICS_START):
  """The quadratics as a model: input (A, c), output losses, no label."""
  dimension = len(start)

  @tf.function
  def predict(weights, x, training=True):
    del training
    (trainable,), _ = weights
    return _quadratic_losses(trainable, *x)

  return tff.learning.models.FunctionalModel(
      initial_weights=((np.array(start, dtype),), ()),
      predict_on_batch_fn=predict,
      loss_fn=lambda output, label, sample_weight=None: tf.reduce_mean(output),
      input_spec=(
          (
              tf.TensorSpec([None, dimension, dimension], dtype),
              tf.TensorSpec([None, dimension], dtype),
          ),
          tf.TensorSpec([None], dtype),
      ),
  )


def logistic_model(dtype, start=LOGISTIC_START):
  """Logistic regression without bias as a model."""

  @tf.function
  def predict(weights, x, training=True):
    del training
    (trainable,), _ = weights
    return tf.linalg.matvec(x, trainable)

  def loss(output, label, sample_weight=None):
    del sample_weight
    return tf.reduce_mean(logistic_example_loss(output, label))

  return tff.learning.models.FunctionalModel(
      initial_weights=((np.array(start, dtype),), ()),
      predict_on_batch_fn=predict,
      loss_fn=loss,
      input_spec=(
          tf.TensorSpec([None, len(start)], dtype),
          tf.TensorSpec([None], dtype),
      ),
  )


def linear_model(dtype, start):
  """The loss x'z of weights x, so that each example z is its own gradient."""

  @tf.function
  def predict(weights, x, training=True):
    del training
    (trainable,), _ = weights
    return tf.linalg.matvec(x, trainable)

  return tff.learning.models.FunctionalModel(
      initial_weights=((np.array(start, dtype),), ()),
      predict_on_batch_fn=predict,
      loss_fn=lambda output, label, sample_weight=None: tf.reduce_mean(output),
      input_spec=(
          tf.TensorSpec([None, len(start)], dtype),
          tf.TensorSpec([None], dtype),
      ),
  )


def linear_batches(gradients, dtype):
  """A client of the linear model, given its gradients [K, d]; B is 1."""
  gradients = np.asarray(gradients, dtype)[:, None]
  return client_work.ClientBatches(
      batches=(gradients, np.zeros(gradients.shape[:2], dtype)),
      num_examples=np.int32(len(gradients)),
  )


def logistic_example_loss(output, label):
  """The loss of each example of the logistic model."""
  return tf.nn.sigmoid_cross_entropy_with_logits(label, output)


def quadratic_batches(client, indices, dtype):
  """The `ClientBatches` of a quadratic client; indices [K, B] of examples."""
  matrices, centres = client
  indices = np.asarray(indices)
  return client_work.ClientBatches(
      batches=(
          (matrices[indices].astype(dtype), centres[indices].astype(dtype)),
          np.zeros(indices.shape, dtype),
      ),
      num_examples=np.int32(len(matrices)),
  )


def logistic_batches(client, indices, dtype):
  """The `ClientBatches` of a logistic client; indices [K, B] of examples."""
  features, labels = client
  indices = np.asarray(indices)
  return client_work.ClientBatches(
      batches=(features[indices].astype(dtype), labels[indices].astype(dtype)),
      num_examples=np.int32(len(features)),
  )


def emptied(client, value=0.0):
  """The same client without examples, its tensors filled with a value."""
  return client._replace(
      batches=tf.nest.map_structure(
          lambda leaf: np.full_like(leaf, value), client.batches
      ),
      num_examples=np.int32(0),
  )


def _quadratic_losses(x, matrices, centres):
  difference = x - centres
  product = tf.linalg.matvec(matrices, difference)
  return 0.5 * tf.reduce_sum(difference * product, axis=-1)


def assert_map_reduce_form(process):
  """Asserts that TFF can run the process outside of this machine, too."""
  config = tf.compat.v1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  form = tff.backends.mapreduce.get_map_reduce_form_for_computation(
      process.next, grappler_config=config
  )
  assert isinstance(form, tff.backends.mapreduce.MapReduceForm)
