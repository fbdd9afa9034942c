"""Bags of words, tags and model are those of TFF's tag prediction."""

import collections
import types

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import stackoverflow_data
from baselines.tasks import stackoverflow_tag
from tests.tasks import database_cases
from tests.tasks import references

_tff = tff.simulation.datasets.stackoverflow


def _tff_task(**kwargs):
  return tff.simulation.baselines.stackoverflow.create_tag_prediction_task(
      references.CLIENT_SPEC, **kwargs
  )


def _bag(x, num_words):
  """Returns the bags of words by NumPy alone."""
  bag = np.zeros((len(x), num_words))
  for i, row in enumerate(x):
    for word, number in row:
      bag[i, word] += number
  return bag / np.maximum(bag.sum(axis=1, keepdims=True), 1)


def _assert_equal_examples(found, expected):
  (x, y), (expected_x, expected_y) = found, expected
  assert x.dtype == np.int16 and y.dtype == np.uint8
  bag = _bag(x, expected_x.shape[1])
  np.testing.assert_allclose(bag, expected_x, rtol=1e-6)
  np.testing.assert_array_equal(y, expected_y)


def test_synthetic_data_are_tffs():
  task = references.build('stackoverflow_tag')
  reference = _tff_task(use_synthetic_data=True)
  assert task.train.num_clients == 3
  for i, name in enumerate(task.train.client_ids):
    _assert_equal_examples(
        task.train.take(i), references.examples(reference, name)
    )


def test_splits_are_those_of_the_database(tmp_path):
  database_cases.write_posts(tmp_path)
  task = references.build('stackoverflow_tag', 'cache_counted', str(tmp_path))
  assert task.population.client_ids == ('a', 'b')
  # Words are cat, the and dog, tags are java and sql.
  for arrays, names, words, tags in (
      (
          task.train, ('a', 'b'),
          [[2, 1, 0], [0, 1, 0], [1, 1, 1]], [[1, 1], [1, 0], [1, 0]],
      ),
      (task.test, ('c',), [[0, 1, 2]], [[0, 1]]),
  ):
    x, y = arrays.features
    assert arrays.client_ids == names and y.tolist() == tags
    totals = np.sum(words, axis=1, keepdims=True)
    np.testing.assert_allclose(_bag(x, 3), words / totals, rtol=1e-15)


def test_real_data_equal_tffs(shared_data, monkeypatch):
  folder = str(shared_data / 'tff_cache')
  task = references.build('stackoverflow_tag', 'cache', folder)
  words, tags, digests = stackoverflow_data.load_vocabularies(
      types.SimpleNamespace(
          task='stackoverflow_tag', data_source='cache', data_dir=folder
      )
  )
  assert task.digests == digests and len(digests) == 2
  # TFF takes no files but its own.
  monkeypatch.setattr(
      _tff, 'load_word_counts', lambda **_: dict.fromkeys(words)
  )
  monkeypatch.setattr(_tff, 'load_tag_counts', lambda: dict.fromkeys(tags))
  reference = _tff_task(cache_dir=folder)
  assert task.population.num_clients == task.train.num_clients == 89
  for i in range(0, 89, 11):
    arrays = task.population.load(np.array([i]))
    expected = references.examples(reference, arrays.client_ids[0])
    _assert_equal_examples(arrays.features, expected)
    np.testing.assert_array_equal(arrays.features[0], task.train.take(i)[0])


def test_odd_sentences_are_encoded_as_by_tff(monkeypatch):
  tokens = [b'', b'  the\tthe\ncss  ', b'zzz', b'it is it', b'a ' * 400]
  titles = [b'', b'using', b'', b'is unknown', b'to']
  tags = [b'', b'css|css|nothing', b'sql', b'|git|', b'css3']
  data = tff.simulation.datasets.TestClientData({
      'a': collections.OrderedDict(
          creation_date=[b''] * 5, score=[0] * 5, tags=tags, title=titles,
          tokens=tokens, type=[b''] * 5,
      )
  })
  monkeypatch.setattr(_tff, 'get_synthetic', lambda: data)
  expected = references.examples(_tff_task(use_synthetic_data=True), 'a')
  assert not expected[0][0].any() and not expected[0][2].any()
  assert expected[1].max() == 2
  task = references.build('stackoverflow_tag')
  _assert_equal_examples(task.train.take(0), expected)


def test_words_beyond_128_different_ones_are_left_out():
  words = [f'w{i}' for i in range(200)]
  encode = stackoverflow_tag.build_encode_fn(words, ['t'])
  tokens = ' '.join(words[:130] + words[:2] + words[129:]).encode()
  x, y = encode(stackoverflow_data.Sentences([tokens], [b''], [b't']))
  assert x[0, :, 0].tolist() == list(range(128))
  assert x[0, :, 1].tolist() == [2, 2] + [1] * 126
  assert y.tolist() == [[1]]


def test_10000_words_and_500_tags_have_5000500_parameters():
  model = stackoverflow_tag.build_logistic(10_000, 500, False, 1, 'float32')
  assert sum(w.size for w in model.initial_weights[0]) == 5_000_500


def _weights(num_words, num_tags):
  generator = np.random.default_rng(3)
  return (
      generator.standard_normal((num_words, num_tags)).astype(np.float32),
      generator.standard_normal(num_tags).astype(np.float32),
  )


@pytest.mark.parametrize('model_id, factor', [('logistic', 8),
                                              ('logistic_sum', 1)])
def test_equals_tffs_model_whose_loss_is_a_sum(model_id, factor):
  task = references.build('stackoverflow_tag', model=model_id)
  keras = _tff_task(use_synthetic_data=True).model_fn()
  values = _weights(60, 20)
  x, y = task.train.features  # 8 examples.
  output, loss, gradients = references.step(
      task.build_model(1, 'float32'), values, x, y
  )
  expected_output, expected_loss, expected = references.tff_step(
      keras, values, _bag(x, 60).astype(np.float32), y.astype(np.float32)
  )
  np.testing.assert_allclose(tf.sigmoid(output), expected_output, atol=1e-6)
  # The loss is a mean over the batch whatever the gradients are.
  np.testing.assert_allclose(8 * loss, expected_loss, rtol=1e-6)
  references.assert_close([factor * g for g in gradients], expected, rtol=1e-5)


def test_sum_of_gradients_is_exact_also_for_short_batches():
  losses = tf.constant([1.0, 4.0, 2.5], tf.float64)
  for size in (1, 2, 3):
    part = losses[:size]
    with tf.GradientTape() as tape:
      tape.watch(part)
      value = stackoverflow_tag.mean_with_summed_gradients(part * part)
    assert float(value) == float(tf.reduce_mean(part * part))
    np.testing.assert_array_equal(tape.gradient(value, part), 2 * part)


def test_recall_equals_tffs_metric():
  task = references.build('stackoverflow_tag')
  keras = _tff_task(use_synthetic_data=True).model_fn()
  values = _weights(60, 20)
  for variable, value in zip(keras.trainable_variables, values):
    variable.assign(value)
  x, y = task.train.features
  keras.forward_pass(
      (_bag(x, 60).astype(np.float32), y.astype(np.float32)), training=False
  )
  model = task.build_model(1, 'float32')
  output = model.predict_on_batch((values, ()), x, training=False)
  found, total = task.example_accuracy_fn(output, y)
  true_positives, false_negatives = (
      keras.report_local_unfinalized_metrics()['recall_at_5']
  )
  assert 0 < np.sum(found) < np.sum(total)
  np.testing.assert_allclose(true_positives, [np.sum(found)])
  np.testing.assert_allclose(false_negatives, [np.sum(total) - np.sum(found)])


def test_example_without_words_gives_the_bias_and_no_nan():
  task = references.build('stackoverflow_tag')
  values = _weights(60, 20)
  x, y = np.zeros((2, 128, 2), np.int16), task.train.features[1][:2]
  output, _, gradients = references.step(
      task.build_model(1, 'float32'), values, x, y
  )
  np.testing.assert_array_equal(output, [values[1]] * 2)
  assert not gradients[0].numpy().any()
  assert np.isfinite(gradients[1]).all()
