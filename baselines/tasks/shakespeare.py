"""Next-character prediction on Shakespeare's roles, as TFF's baseline task.

Data: the preprocessing of `tff.simulation.baselines.shakespeare` without its
shuffling. Bytes are looked up in the 86-character vocabulary of TFF's text
tutorial, with one beginning and one end token per speech, padded to a multiple
of 81, cut into sequences of 81; inputs are the first 80, labels the last 80.

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
from baselines.tasks import layers
from baselines.tasks import models
from baselines.tasks import task
from baselines.tasks import tff_sources

SEQUENCE_LENGTH = 80
CHARACTERS = (
    b'dhlptx@DHLPTX'
    b' $(,048cgkoswCGKOSW[_#\'/37;?bfjnrvzBFJNRVZ"&*.26:\n'
    b'aeimquyAEIMQUY]!%)-159\r'
)
PAD = 0
OUT_OF_VOCABULARY = len(CHARACTERS) + 1
BEGIN = len(CHARACTERS) + 2
END = len(CHARACTERS) + 3
VOCABULARY_SIZE = len(CHARACTERS) + 4

_TOKENS = np.full(256, OUT_OF_VOCABULARY, np.int64)
_TOKENS[np.frombuffer(CHARACTERS, np.uint8)] = 1 + np.arange(len(CHARACTERS))


def tokenize(
    snippets: Sequence[bytes], sequence_length: int = SEQUENCE_LENGTH
) -> tuple[np.ndarray, np.ndarray]:
  """Turns speeches into sequences of tokens, L = `sequence_length`.

  Returns:
    int64 [S, L + 1], all sequences in order, and int64 [len(snippets)], the
    number of sequences of each speech (at least 1).
  """
  width = sequence_length + 1
  lengths = np.array([len(s) for s in snippets], np.int64)
  num_sequences = -(-(lengths + 2) // width)
  starts = np.cumsum(num_sequences * width) - num_sequences * width
  tokens = np.full(num_sequences.sum() * width, PAD, np.int64)
  tokens[starts] = BEGIN
  tokens[starts + lengths + 1] = END
  within = np.arange(lengths.sum()) - np.repeat(
      np.cumsum(lengths) - lengths, lengths
  )
  characters = np.frombuffer(b''.join(snippets), np.uint8)
  tokens[np.repeat(starts + 1, lengths) + within] = _TOKENS[characters]
  return tokens.reshape(-1, width), num_sequences


_EMBEDDING = 8
_UNITS = 256


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  train, test = tff_sources.load_splits(
      databases.SHAKESPEARE,
      config,
      load_data=tff.simulation.datasets.shakespeare.load_data,
      make_synthetic=_synthetic_clients,
      read_split=_read_split,
  )
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=build_lstm,
      build_plain_model=functools.partial(
          build_lstm, layer_fn=layers.plain_lstm_layer
      ),
      train=train,
      test=test,
      example_loss_fn=models.sequence_loss,
      example_accuracy_fn=sequence_accuracy,
  )


def build_lstm(
    seed: int,
    dtype: str,
    sequence_length: int = SEQUENCE_LENGTH,
    layer_fn: Callable[..., tf.Tensor] = layers.lstm_layer,
) -> tff.learning.models.FunctionalModel:
  """Builds the network with that LSTM layer; see `task.ModelBuilder`.

  It maps tokens int64 [B, L] to logits [B, L, 90]; labels are int64 [B, L].
  """
  tokens = tf.TensorSpec((None, sequence_length), tf.int64)
  return models.build_functional_model(
      apply_fn=functools.partial(_apply_lstm, layer_fn),
      weight_spec=(
          ('embedding', (VOCABULARY_SIZE, _EMBEDDING),
           models.embedding_uniform),
          *models.lstm_spec('lstm1', _EMBEDDING, _UNITS, models.he_normal),
          *models.lstm_spec('lstm2', _UNITS, _UNITS, models.he_normal),
          *models.layer_spec('dense', (_UNITS, VOCABULARY_SIZE)),
      ),
      example_loss_fn=models.sequence_loss,
      input_spec=(tokens, tokens),
      seed=seed,
      dtype=dtype,
  )


def _apply_lstm(
    layer_fn: Callable[..., tf.Tensor],
    weights: Sequence[tf.Tensor],
    x: tf.Tensor,
) -> tf.Tensor:
  tokens, mask = layers.time_major(x, PAD, weights[0].dtype)
  # A product instead of a gather: its gradient is dense, and summed in a fixed
  # order on every device.
  h = layers.rows_by_product(weights[0], tokens)
  h = layer_fn(h, mask, *weights[1:4])
  h = layer_fn(h, mask, *weights[4:7])
  logits = tf.tensordot(h, weights[7], 1) + weights[8]
  return tf.transpose(logits, [1, 0, 2])


def sequence_accuracy(
    output: tf.Tensor, label: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns right and all predictions [B], of labels that are not padding."""
  return models.sequence_accuracy(output, label, ignored=(PAD,))


def _read_split(path: str, split: str) -> clients.ClientArrays:
  """Reads a split of TFF's database; x and y int64 [N, 80]."""
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
  sequences, num_sequences = tokenize(snippets)
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
    examples = tff_sources.client_examples(client_data, client_id)
    snippets.extend(e['snippets'] for e in examples)
    counts.append(len(examples))
  return _from_snippets(client_data.client_ids, counts, snippets)
