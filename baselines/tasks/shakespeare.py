"""Next-character prediction on Shakespeare's roles, as TFF's baseline task.

Model: McMahan et al., AISTATS 2017 (https://arxiv.org/abs/1602.05629): an
embedding of 8, two LSTM layers of 256, logits for 90 tokens at each of 80
positions; 820,522 parameters. An example is one sequence of 80 characters.

The loss of an example is the mean over all 80 positions. Padding is masked in
the recurrence (a padded step repeats the output of the last real one) but
counts in the loss, because that is what TFF's task computes: measured on
`model_fn()` of `tff.simulation.baselines.shakespeare` 0.87.0. The accuracy
leaves out positions whose label is padding, as TFF's metric does.
"""

from collections.abc import Callable, Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import databases
from baselines.tasks import functional_models
from baselines.tasks import initializers
from baselines.tasks import lookups
from baselines.tasks import lstm
from baselines.tasks import shakespeare_text
from baselines.tasks import task
from baselines.tasks import tff_sources

_EMBEDDING = 8
_UNITS = 256


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  train, test = tff_sources.load_splits(
      databases.SHAKESPEARE,
      config,
      load_data=tff.simulation.datasets.shakespeare.load_data,
      make_synthetic=_synthetic_clients,
      read_split=read_split,
  )
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=build_lstm,
      build_plain_model=functools.partial(
          build_lstm, layer_fn=lstm.plain_lstm_layer
      ),
      train=train,
      test=test,
      example_loss_fn=functional_models.sequence_loss,
      example_accuracy_fn=sequence_accuracy,
      convolutional=False,
  )


def build_lstm(
    seed: int,
    dtype: str,
    sequence_length: int = shakespeare_text.SEQUENCE_LENGTH,
    layer_fn: Callable[..., tf.Tensor] = lstm.lstm_layer,
) -> tff.learning.models.FunctionalModel:
  """Builds the network.

  Args:
    seed: Seed of the initial weights.
    dtype: Their dtype.
    sequence_length: L, tokens of an example.
    layer_fn: The LSTM layer, as `lstm.lstm_layer`.

  Returns:
    A model from tokens int64 [B, L] to logits [B, L, 90]; labels are int64
    [B, L].
  """
  vocabulary = shakespeare_text.VOCABULARY_SIZE
  glorot, zeros = initializers.glorot_uniform, initializers.zeros
  spec = [
      ('embedding', (vocabulary, _EMBEDDING), initializers.embedding_uniform)
  ]
  for name, width in (('lstm1', _EMBEDDING), ('lstm2', _UNITS)):
    spec += [
        (f'{name}/kernel', (width, 4 * _UNITS), initializers.he_normal),
        (
            f'{name}/recurrent_kernel',
            (_UNITS, 4 * _UNITS),
            initializers.orthogonal,
        ),
        (f'{name}/bias', (4 * _UNITS,), initializers.unit_forget_bias),
    ]
  spec += [
      ('dense/kernel', (_UNITS, vocabulary), glorot),
      ('dense/bias', (vocabulary,), zeros),
  ]
  tokens = tf.TensorSpec((None, sequence_length), tf.int64)
  return functional_models.build_functional_model(
      apply_fn=functools.partial(_apply_lstm, layer_fn),
      weight_spec=spec,
      example_loss_fn=functional_models.sequence_loss,
      input_spec=(tokens, tokens),
      seed=seed,
      dtype=dtype,
  )


def _apply_lstm(
    layer_fn: Callable[..., tf.Tensor],
    weights: Sequence[tf.Tensor],
    x: tf.Tensor,
) -> tf.Tensor:
  tokens = tf.transpose(x)
  # Not `!=`: in the graphs that TFF traces it compares Python objects.
  mask = tf.not_equal(tokens, shakespeare_text.PAD)
  mask = tf.cast(mask, weights[0].dtype)[..., tf.newaxis]
  # A product instead of a gather: its gradient is dense, and summed in a fixed
  # order on every device.
  h = lookups.rows_by_product(weights[0], tokens)
  h = layer_fn(h, mask, *weights[1:4])
  h = layer_fn(h, mask, *weights[4:7])
  logits = tf.tensordot(h, weights[7], 1) + weights[8]
  return tf.transpose(logits, [1, 0, 2])


def sequence_accuracy(
    output: tf.Tensor, label: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns right and all predictions [B], of labels that are not padding."""
  return functional_models.sequence_accuracy(
      output, label, ignored=(shakespeare_text.PAD,)
  )


def read_split(path: str, split: str) -> clients.ClientArrays:
  """Reads a split of TFF's Shakespeare database.

  Args:
    path: The database.
    split: Name of the split.

  Returns:
    The clients; x and y int64 [N, 80].

  Raises:
    ValueError: If the database is damaged.
  """
  client_ids, counts = databases.client_counts(path, split)
  features = {'snippets': tf.io.FixedLenFeature((), tf.string)}
  snippets = []
  for protos in databases.examples(path, split):
    parsed = tf.io.parse_example(protos, features)
    snippets.extend(parsed['snippets'].numpy())
  return _from_snippets(client_ids, counts, snippets)


def _from_snippets(
    client_ids: Sequence[str], counts: Sequence[int], snippets: Sequence[bytes]
) -> clients.ClientArrays:
  """Tokenizes all clients' speeches at once."""
  sequences, num_sequences = shakespeare_text.tokenize(snippets)
  ends = np.cumsum(np.concatenate([[0], num_sequences]))
  offsets = ends[np.cumsum(np.concatenate([[0], counts]))]
  # Both features are views of one array.
  return clients.ClientArrays(
      tuple(client_ids), (sequences[:, :-1], sequences[:, 1:]), offsets
  )


def _synthetic_clients() -> clients.ClientArrays:
  """Returns TFF's three synthetic clients."""
  client_data = tff.simulation.datasets.shakespeare.get_synthetic()
  snippets, counts = [], []
  for client_id in client_data.client_ids:
    dataset = client_data.create_tf_dataset_for_client(client_id)
    examples = list(dataset.as_numpy_iterator())
    snippets.extend(e['snippets'] for e in examples)
    counts.append(len(examples))
  return _from_snippets(client_data.client_ids, counts, snippets)
