"""Tokens and network are those of TFF's next-word prediction."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import stackoverflow_data
from baselines.tasks import stackoverflow_word
from tests import sequences
from tests.tasks import database_cases
from tests.tasks import references

_tff = tff.simulation.datasets.stackoverflow


def _tff_task(**kwargs):
  return tff.simulation.baselines.stackoverflow.create_word_prediction_task(
      references.CLIENT_SPEC, **kwargs
  )


def _assert_equal_examples(found, reference, client_id):
  for a, b in sequences.pairs(
      references.examples(reference, client_id), found
  ):
    assert b.dtype == np.int32
    np.testing.assert_array_equal(b, a)


def test_synthetic_data_are_tffs():
  task = references.build('stackoverflow_word')
  reference = _tff_task(use_synthetic_data=True)
  assert task.train.sizes.tolist() == [3, 3, 2]
  for i, name in enumerate(task.train.client_ids):
    _assert_equal_examples(task.train.take(i), reference, name)


def test_splits_are_those_of_the_database(tmp_path):
  database_cases.write_posts(tmp_path)
  task = references.build('stackoverflow_word', 'cache_counted', str(tmp_path))
  assert task.population.client_ids == ('a', 'b')
  # 0 is padding, 1 to 3 are cat, the and dog, 5 and 6 are around a sentence.
  for arrays, names, expected in (
      (task.train, ('a', 'b'), [[5, 2, 1, 6], [5, 2, 6], [5, 2, 3, 1, 6]]),
      (task.test, ('c',), [[5, 3, 3, 6]]),
  ):
    x, _ = arrays.features
    assert arrays.client_ids == names
    assert [row[row > 0].tolist() for row in x] == expected


def test_real_data_equal_tffs(shared_data, monkeypatch):
  folder = str(shared_data / 'tff_cache')
  task = references.build('stackoverflow_word', 'cache', folder)
  with open(f'{folder}/datasets/stackoverflow.word_count') as file:
    words = [line.split()[0] for line in file][:10_000]
  # TFF takes no file but its own.
  monkeypatch.setattr(
      _tff, 'load_word_counts', lambda **_: dict.fromkeys(words)
  )
  reference = _tff_task(cache_dir=folder)
  assert task.population.num_clients == 89
  assert list(task.digests) == ['stackoverflow.word_count']
  for i in range(0, 89, 11):
    arrays = task.population.load(np.array([i]))
    _assert_equal_examples(arrays.features, reference, arrays.client_ids[0])


def test_odd_sentences_are_encoded_as_by_tff(monkeypatch):
  tokens = [
      b'', b' the  a ', b'zzz the\ta', b'a ' * 19 + b'a', b'a ' * 20,
      b'a ' * 18 + b'a', b'the ' * 500,
  ]
  number = len(tokens)
  data = tff.simulation.datasets.TestClientData({
      'a': collections.OrderedDict(
          creation_date=[b''] * number, score=[0] * number, tags=[b''] * number,
          title=[b''] * number, tokens=tokens, type=[b''] * number,
      )
  })
  monkeypatch.setattr(_tff, 'get_synthetic', lambda: data)
  reference = _tff_task(use_synthetic_data=True)
  task = references.build('stackoverflow_word')
  _assert_equal_examples(task.train.take(0), reference, 'a')


def test_tokens():
  encode = stackoverflow_word.build_encode_fn(['the', 'a'])
  sentence = stackoverflow_data.Sentences([b'a cat the'], [b''], [b''])
  x, y = encode(sentence)
  assert x[0].tolist() == [4, 2, 3, 1, 5] + [0] * 15
  assert y[0].tolist() == [2, 3, 1, 5] + [0] * 16
  assert np.shares_memory(x, y)


def test_10000_words_have_4050748_parameters():
  model = stackoverflow_word.build_lstm(10_000, 1, 'float32')
  assert sum(w.size for w in model.initial_weights[0]) == 4_050_748


def _padded_batch():
  tokens = np.random.default_rng(0).integers(1, 64, (5, 21))
  tokens[0, 10:] = 0
  tokens[1] = 0  # Padded throughout: cuDNN fails here.
  tokens[2, 5:9] = 0
  tokens[3, 20:] = 0
  return tokens[:, :-1].astype(np.int32), tokens[:, 1:].astype(np.int32)


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_equals_tffs_model(dtype):
  task = references.build('stackoverflow_word')
  keras = _tff_task(use_synthetic_data=True).model_fn()
  # Larger than the initial weights, so that no gradient is negligible.
  generator = np.random.default_rng(1)
  values = tuple(
      (2 * v + 0.02 * generator.standard_normal(v.shape)).astype(np.float32)
      for v in task.build_model(5, 'float32').initial_weights[0]
  )
  x, y = _padded_batch()
  found = references.step(
      task.build_model(5, dtype), [v.astype(dtype) for v in values], x, y
  )
  expected = references.tff_step(
      keras, values, x.astype(np.int64), y.astype(np.int64)
  )
  references.assert_close(found, expected, rtol=1e-5)


def test_accuracy_equals_tffs_metric():
  task = references.build('stackoverflow_word')
  keras = _tff_task(use_synthetic_data=True).model_fn()
  x, y = task.train.features
  output = keras.forward_pass(
      (x.astype(np.int64), y.astype(np.int64)), training=False
  )
  # Right predictions for every third position, of all kinds of labels.
  logits = output.predictions.numpy()
  logits[:, ::3] += 10 * np.eye(64, dtype=np.float32)[y[:, ::3]]
  correct, weight = task.example_accuracy_fn(tf.constant(logits), y)
  counted = (y != 0) & (y != 61) & (y != 63)
  assert 0 < counted.sum() < (y != 0).sum()
  np.testing.assert_array_equal(weight, counted.sum(axis=1))
  right = counted & (logits.argmax(axis=-1) == y)
  np.testing.assert_array_equal(correct, right.sum(axis=1))
  # And TFF leaves out the same positions.
  name = 'accuracy_without_out_of_vocab_or_end_of_sentence'
  found = task.example_accuracy_fn(output.predictions, y)
  np.testing.assert_allclose(
      keras.report_local_unfinalized_metrics()[name],
      [np.sum(values) for values in found],
  )
