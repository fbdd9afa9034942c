"""Next word of Stack Overflow's sentences, as TFF's baseline task.

Tokens: 0 is padding, then come the words of the vocabulary (10,000), one token
for all other words, begin and end of a sentence. An example is one sentence of
at most 20 words: begin, its words, and end if there is room; x is all but the
last of 21 tokens, y all but the first.

Model: an embedding of 96, an LSTM of 670, a dense layer of 96, logits for the
10,004 tokens at each of 20 positions; 4,050,748 parameters.

The loss of an example is the mean over all 20 positions. Padding is masked in
the recurrence but counts in the loss, because that is what TFF's task computes:
measured on `model_fn()` of TFF 0.87.0. The accuracy is TFF's
`accuracy_without_out_of_vocab_or_end_of_sentence`: it leaves out padding, too.

Source: `tff.simulation.baselines.stackoverflow` 0.87.0, word prediction.
Departure: tokens are int32. All sentences of a user count, also where the
authors' trainers take 1,000 at most.
"""

from collections.abc import Callable, Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import layers
from baselines.tasks import models
from baselines.tasks import stackoverflow_data
from baselines.tasks import task

SEQUENCE_LENGTH = 20
PAD = 0

_EMBEDDING = 96
_UNITS = 670
_SPECIAL_TOKENS = 4  # Padding, other words, begin and end.


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  stackoverflow_data.fetch(config)
  words, _, digests = stackoverflow_data.load_vocabularies(config)
  splits = stackoverflow_data.open_splits(config, build_encode_fn(words))
  other, _, end = special_tokens(len(words))
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=functools.partial(build_lstm, len(words)),
      build_plain_model=functools.partial(
          build_lstm,
          len(words),
          rows_fn=layers.rows_by_product,
          layer_fn=layers.plain_lstm_layer,
      ),
      train=splits.train,
      test=splits.test,
      example_loss_fn=models.sequence_loss,
      example_accuracy_fn=functools.partial(
          models.sequence_accuracy, ignored=(PAD, other, end)
      ),
      population=splits.lazy,
      digests=digests,
  )


def special_tokens(num_words: int) -> tuple[int, int, int]:
  """Returns the tokens of other words, begin and end of a sentence."""
  return num_words + 1, num_words + 2, num_words + 3


def build_encode_fn(words: Sequence[str]) -> stackoverflow_data.EncodeFn:
  """Returns a function from n sentences to (x, y), int32 [n, 20] each."""
  index = {word.encode(): i for i, word in enumerate(words, start=1)}
  other, begin, end = special_tokens(len(words))

  def encode(sentences: stackoverflow_data.Sentences) -> clients.Examples:
    tokens = np.full(
        (len(sentences.tokens), SEQUENCE_LENGTH + 1), PAD, np.int32
    )
    tokens[:, 0] = begin
    for row, sentence in zip(tokens, sentences.tokens):
      # The last piece may be many words; it is cut off.
      pieces = sentence.split(b' ', SEQUENCE_LENGTH)[:SEQUENCE_LENGTH]
      row[1 : 1 + len(pieces)] = [index.get(word, other) for word in pieces]
      if len(pieces) < SEQUENCE_LENGTH:
        row[1 + len(pieces)] = end
    # Both features are views of one array.
    return tokens[:, :-1], tokens[:, 1:]

  return encode


def build_lstm(
    num_words: int,
    seed: int,
    dtype: str,
    rows_fn: Callable[..., tf.Tensor] = layers.rows_of,
    layer_fn: Callable[..., tf.Tensor] = layers.lstm_layer,
) -> tff.learning.models.FunctionalModel:
  """Builds the network with that lookup and LSTM layer.

  It maps tokens int32 [B, 20] to logits [B, 20, V + 4], of a vocabulary of V
  words; labels are int32 [B, 20]. See `task.ModelBuilder`.
  """
  num_tokens = num_words + _SPECIAL_TOKENS
  tokens = tf.TensorSpec((None, SEQUENCE_LENGTH), tf.int32)
  return models.build_functional_model(
      apply_fn=functools.partial(_apply_lstm, rows_fn, layer_fn),
      weight_spec=(
          ('embedding', (num_tokens, _EMBEDDING),
           models.embedding_uniform),
          *models.lstm_spec('lstm', _EMBEDDING, _UNITS, models.glorot_uniform),
          *models.layer_spec('dense1', (_UNITS, _EMBEDDING)),
          *models.layer_spec('dense2', (_EMBEDDING, num_tokens)),
      ),
      example_loss_fn=models.sequence_loss,
      input_spec=(tokens, tokens),
      seed=seed,
      dtype=dtype,
  )


def _apply_lstm(
    rows_fn: Callable[..., tf.Tensor],
    layer_fn: Callable[..., tf.Tensor],
    weights: Sequence[tf.Tensor],
    x: tf.Tensor,
) -> tf.Tensor:
  tokens, mask = layers.time_major(x, PAD, weights[0].dtype)
  h = rows_fn(weights[0], tokens)
  h = layer_fn(h, mask, *weights[1:4])
  h = tf.tensordot(h, weights[4], 1) + weights[5]
  logits = tf.tensordot(h, weights[6], 1) + weights[7]
  return tf.transpose(logits, [1, 0, 2])
