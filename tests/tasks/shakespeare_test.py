"""Tokens of speeches, by hand.

The network and the data are those of TFF's Shakespeare task.
"""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import models
from baselines.tasks import shakespeare
from tests import sequences as sequences_lib
from tests.tasks import database_cases
from tests.tasks import references


def test_vocabulary():
  assert len(set(shakespeare.CHARACTERS)) == len(shakespeare.CHARACTERS) == 86
  assert shakespeare.VOCABULARY_SIZE == 90
  assert (
    shakespeare.PAD,
    shakespeare.OUT_OF_VOCABULARY,
    shakespeare.BEGIN,
    shakespeare.END,
  ) == (
    0,
    87,
    88,
    89,
  )


def test_short_speech():
  sequences, counts = shakespeare.tokenize([b'dh\x00'], sequence_length=6)
  np.testing.assert_array_equal(counts, [1])
  np.testing.assert_array_equal(sequences, [[88, 1, 2, 87, 89, 0, 0]])
  assert sequences.dtype == np.int64


def test_lengths_around_the_width():
  # Two marks: 5 characters fill a sequence of 7, 6 need another.
  sequences, counts = shakespeare.tokenize(
      [b'', b'ddddd', b'dddddd', b'd' * 12], sequence_length=6
  )
  np.testing.assert_array_equal(counts, [1, 1, 2, 2])
  np.testing.assert_array_equal(
      sequences,
      [
          [88, 89, 0, 0, 0, 0, 0],
          [88, 1, 1, 1, 1, 1, 89],
          [88, 1, 1, 1, 1, 1, 1],
          [89, 0, 0, 0, 0, 0, 0],
          [88, 1, 1, 1, 1, 1, 1],
          [1, 1, 1, 1, 1, 1, 89],
      ],
  )


def test_no_speech():
  sequences, counts = shakespeare.tokenize([])
  assert sequences.shape == (0, 81)
  assert counts.shape == (0,)


def test_bytes_beyond_ascii_are_out_of_vocabulary():
  sequences, _ = shakespeare.tokenize(['é'.encode()], sequence_length=6)
  np.testing.assert_array_equal(sequences[0][:4], [88, 87, 87, 89])


def _tff_task(**kwargs):
  return tff.simulation.baselines.shakespeare.create_character_prediction_task(
      references.CLIENT_SPEC, **kwargs
  )


def _padded_batch():
  tokens = np.random.default_rng(0).integers(1, 90, (5, 81))
  tokens[0, 30:] = 0
  tokens[1] = 0  # Padded throughout: cuDNN fails here.
  tokens[2, 10:20] = 0
  tokens[3, 80:] = 0
  return tokens[:, :-1], tokens[:, 1:]


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_equals_tffs_model(dtype):
  model = shakespeare.build_lstm(5, 'float32')
  values = model.initial_weights[0]
  assert sum(v.size for v in values) == 820_522
  keras = _tff_task(use_synthetic_data=True).model_fn()
  assert model.input_spec == keras.input_spec
  # Larger than the initial weights, so that no gradient is negligible.
  values = tuple(
      2 * v + 0.02 * np.random.default_rng(1).standard_normal(v.shape)
      for v in values
  )
  values = [v.astype(np.float32) for v in values]
  x, y = _padded_batch()
  found = references.step(
      shakespeare.build_lstm(5, dtype), [v.astype(dtype) for v in values], x, y
  )
  expected = references.tff_step(keras, values, x, y)
  references.assert_close(found, expected, rtol=1e-5)


def test_padding_counts_in_the_loss_and_not_in_the_accuracy():
  label = np.array([[1, 2, 0, 0]])
  logits = np.zeros((1, 4, 3))
  logits[0, 0, 1] = 5.0
  logits[0, 2, 0] = 5.0
  log_sum = [np.log(np.exp(5) + 2), np.log(3), np.log(np.exp(5) + 2), np.log(3)]
  losses = np.array(log_sum) - [5, 0, 5, 0]
  np.testing.assert_allclose(
      models.sequence_loss(logits, label), [losses.mean()]
  )
  correct, weight = shakespeare.sequence_accuracy(tf.constant(logits), label)
  np.testing.assert_array_equal(correct, [1.0])
  np.testing.assert_array_equal(weight, [2.0])


def test_accuracy_equals_tffs_metric():
  task = references.build('shakespeare')
  keras = _tff_task(use_synthetic_data=True).model_fn()
  x, y = task.train.features
  output = keras.forward_pass((x, y), training=False)
  correct, weight = task.example_accuracy_fn(output.predictions, y)
  expected = keras.report_local_unfinalized_metrics()
  np.testing.assert_allclose(expected['num_tokens'], [np.sum(weight)])
  np.testing.assert_allclose(
      expected['accuracy'], [np.sum(correct), np.sum(weight)]
  )


def test_synthetic_data_are_tffs():
  task = references.build('shakespeare')
  assert task.train.num_clients == 3
  references.assert_equal_clients(
      task.train, _tff_task(use_synthetic_data=True)
  )


def test_splits_are_those_of_the_database(tmp_path):
  speeches = {
      ('train', 'a'): [b'to be', b'or'], ('train', 'b'): [b'not'],
      ('test', 'a'): [b'to'], ('test', 'c'): [b'be'],
  }
  database_cases.write(tmp_path / 'shakespeare.sqlite', {
      key: [database_cases.example(snippets=[s]) for s in snippets]
      for key, snippets in speeches.items()
  })
  task = references.build('shakespeare', 'cache', str(tmp_path))
  for arrays, names, expected in (
      (task.train, ('a', 'b'), [b'to be', b'or', b'not']),
      (task.test, ('a', 'c'), [b'to', b'be']),
  ):
    x, y = arrays.features
    assert arrays.client_ids == names
    assert (x[:, 0] == shakespeare.BEGIN).all()
    for tokens, speech in sequences_lib.pairs(y, expected):
      end = len(speech)
      spoken = [shakespeare.CHARACTERS[t - 1] for t in tokens[:end]]
      assert bytes(spoken) == speech and tokens[end] == shakespeare.END


def test_real_data_equal_tffs(shared_data):
  folder = str(shared_data / 'tff_cache')
  task = references.build('shakespeare', 'cache', folder)
  reference = _tff_task(cache_dir=folder)
  assert task.train.num_clients == task.test.num_clients == 1122
  assert len(task.train.features[0]) == 61_355
  references.assert_equal_clients(task.train, reference, step=100)
  references.assert_equal_clients(task.test, reference, train=False, step=250)


def test_features_share_memory():
  x, y = references.build('shakespeare').train.features
  assert np.shares_memory(x, y)
