"""Stack Overflow's tags from the words of a post, as TFF's baseline task.

Logistic regression for each tag on its own. With n_w the occurrences of word w
in a sentence and its question's title, and V, T the vocabularies (10,000 words,
500 tags; 5,000,500 parameters),

    x_w     = n_w / sum over V of n,     0 if the sentence has no word of V
    f(x; z) = mean over T of the binary cross-entropy of sigmoid(x W + b)

The model `logistic` takes the mean of f over a batch. `logistic_sum` has the
gradients of TFF's model, whose loss is the sum over the batch: B times those of
the mean. Its losses are still means, so that they can be compared.

What stands for the accuracy is TFF's `recall_at_5`: the part of all tags that
is among the 5 most probable ones of its example.

Source: `tff.simulation.baselines.stackoverflow` 0.87.0, tag prediction.
Departures: an example is stored by its words, not as V numbers, and has room
for 128 different ones: of a longer one the rest is left out. The output is
logits where TFF's model ends with a sigmoid; the loss is the same number.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
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

MAX_WORDS = 128
_TOP = 5
_MAX_COUNT = np.iinfo(np.int16).max


def build(config: Any) -> task.Task:
  """Builds the task; see `registry.build_task`."""
  stackoverflow_data.fetch(config)
  words, tags, digests = stackoverflow_data.load_vocabularies(config)
  splits = stackoverflow_data.open_splits(config, build_encode_fn(words, tags))
  build_model = functools.partial(
      build_logistic, len(words), len(tags), config.model == 'logistic_sum'
  )
  return task.Task(
      name=config.task,
      model_id=config.model,
      build_model=build_model,
      build_plain_model=functools.partial(
          build_model, sums_fn=layers.weighted_sums_by_product
      ),
      train=splits.train,
      test=splits.test,
      example_loss_fn=tag_loss,
      example_accuracy_fn=tag_recall,
      population=splits.lazy,
      digests=digests,
  )


def build_encode_fn(
    words: Sequence[str], tags: Sequence[str]
) -> stackoverflow_data.EncodeFn:
  """Returns a function from n sentences to (x, y).

  x is int16 [n, 128, 2]: the words of V that a sentence has, each with its
  occurrences; (0, 0) fills up. y is uint8 [n, T]: how often a tag is given.
  """
  word_index = {word.encode(): i for i, word in enumerate(words)}
  tag_index = {tag.encode(): i for i, tag in enumerate(tags)}

  def encode(sentences: stackoverflow_data.Sentences) -> clients.Examples:
    num_examples = len(sentences.tokens)
    x = np.zeros((num_examples, MAX_WORDS, 2), np.int16)
    y = np.zeros((num_examples, len(tags)), np.uint8)
    for i, (tokens, title, names) in enumerate(zip(*sentences)):
      found = _count((tokens + b' ' + title).split(), word_index)
      pairs = list(found.items())[:MAX_WORDS]
      if pairs:
        x[i, : len(pairs)] = np.minimum(pairs, _MAX_COUNT)
      for j, number in _count(names.split(b'|'), tag_index).items():
        y[i, j] = number
    return x, y

  return encode


def _count(
    entries: Sequence[bytes], index: Mapping[bytes, int]
) -> Mapping[int, int]:
  return collections.Counter(index[e] for e in entries if e in index)


def build_logistic(
    num_words: int,
    num_tags: int,
    sum_gradients: bool,
    seed: int,
    dtype: str,
    sums_fn: Callable[..., tf.Tensor] = layers.weighted_sums,
) -> tff.learning.models.FunctionalModel:
  """Builds the model with that product; see `task.ModelBuilder`.

  It maps words int16 [B, 128, 2] to logits [B, T]; labels are uint8 [B, T]. If
  `sum_gradients`, gradients are sums over the batch.
  """
  return models.build_functional_model(
      apply_fn=functools.partial(_apply_logistic, sums_fn),
      weight_spec=(
          ('kernel', (num_words, num_tags), models.glorot_uniform),
          ('bias', (num_tags,), models.zeros),
      ),
      example_loss_fn=tag_loss,
      input_spec=(
          tf.TensorSpec((None, MAX_WORDS, 2), tf.int16),
          tf.TensorSpec((None, num_tags), tf.uint8),
      ),
      seed=seed,
      dtype=dtype,
      reduce_fn=mean_with_summed_gradients if sum_gradients else tf.reduce_mean,
  )


def _apply_logistic(
    sums_fn: Callable[..., tf.Tensor],
    weights: Sequence[tf.Tensor],
    x: tf.Tensor,
) -> tf.Tensor:
  kernel, bias = weights
  words, counts = tf.unstack(tf.cast(x, tf.int32), axis=2)
  counts = tf.cast(counts, bias.dtype)
  totals = tf.reduce_sum(counts, axis=1, keepdims=True)
  parts = tf.math.divide_no_nan(counts, totals)
  return sums_fn(kernel, words, parts) + bias


def tag_loss(output: tf.Tensor, label: tf.Tensor) -> tf.Tensor:
  """Returns the mean over the tags, [B], of logits [B, T], labels [B, T]."""
  losses = tf.nn.sigmoid_cross_entropy_with_logits(
      labels=tf.cast(label, output.dtype), logits=output
  )
  return tf.reduce_mean(losses, axis=1)


def tag_recall(
    output: tf.Tensor, label: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the tags among the 5 largest logits, and all tags, [B] each."""
  label = tf.cast(label, output.dtype)
  top = tf.math.top_k(output, min(_TOP, output.shape[-1])).indices
  found = tf.gather(label, top, batch_dims=1)
  return tf.reduce_sum(found, axis=1), tf.reduce_sum(label, axis=1)


def mean_with_summed_gradients(losses: tf.Tensor) -> tf.Tensor:
  """Returns the mean of losses [B] with the gradient of their sum."""
  mean = tf.reduce_mean(losses)
  others = tf.cast(tf.size(losses) - 1, mean.dtype)
  return mean + others * (mean - tf.stop_gradient(mean))
