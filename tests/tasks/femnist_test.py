"""The network and the data are those of TFF's EMNIST task."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tasks import database_cases
from tests.tasks import references


def _tff_task(only_digits, **kwargs):
  return tff.simulation.baselines.emnist.create_character_recognition_task(
      references.CLIENT_SPEC, model_id='cnn', only_digits=only_digits, **kwargs
  )


@pytest.mark.parametrize(
    'name, num_classes, size',
    [('emnist_digits', 10, 1_663_370), ('femnist', 62, 1_690_046)],
)
def test_equals_tffs_model(name, num_classes, size):
  task = references.build(name, 'synthetic')
  model = task.build_model(5, 'float32')
  values = model.initial_weights[0]
  assert sum(v.size for v in values) == size
  reference = _tff_task(name == 'emnist_digits', use_synthetic_data=True)
  keras = reference.model_fn()
  assert model.input_spec == keras.input_spec
  generator = np.random.default_rng(0)
  x = generator.random((20, 28, 28, 1), np.float32)
  y = generator.integers(0, num_classes, 20).astype(np.int32)
  logits, loss, gradients = references.step(model, values, x, y)
  expected_output, expected_loss, expected = references.tff_step(
      keras, values, x, y
  )
  np.testing.assert_allclose(tf.nn.softmax(logits), expected_output, atol=1e-6)
  np.testing.assert_allclose(loss, expected_loss, rtol=1e-6)
  references.assert_close(gradients, expected, rtol=1e-5)


def test_float64_is_the_same_network():
  task = references.build('emnist_digits', 'synthetic')
  x, y = task.train.features
  losses = []
  for dtype in ('float32', 'float64'):
    model = task.build_model(5, dtype)
    output = model.predict_on_batch(model.initial_weights, x, training=True)
    losses.append(float(model.loss(output, y)))
  assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_synthetic_data_are_tffs():
  task = references.build('femnist', 'synthetic')
  client_data = tff.simulation.datasets.emnist.get_synthetic()
  assert list(task.train.client_ids) == client_data.client_ids
  assert task.train.sizes.tolist() == [10, 10]
  references.assert_equal_clients(
      task.train, _tff_task(False, use_synthetic_data=True)
  )


@pytest.mark.parametrize(
    'name, train_size, test_size',
    [('emnist_digits', 2485, 294), ('femnist', 649, 76)],
)
def test_real_data_equal_tffs(shared_data, name, train_size, test_size):
  folder = str(shared_data / 'tff_cache')
  task = references.build(name, 'cache', folder)
  reference = _tff_task(name == 'emnist_digits', cache_dir=folder)
  assert task.train.sizes.sum() == train_size
  assert task.test.sizes.sum() == test_size
  references.assert_equal_clients(task.train, reference, step=5)
  references.assert_equal_clients(task.test, reference, train=False, step=5)


@pytest.mark.parametrize('name, train, test', [
    ('emnist_digits', [1, 2], [3]), ('femnist', [40, 41, 42], [50]),
])
def test_splits_are_those_of_the_database(tmp_path, name, train, test):
  labels = {
      ('digits_only_train', 'a'): [1, 2], ('digits_only_test', 'b'): [3],
      ('all_train', 'c'): [40, 41, 42], ('all_test', 'd'): [50],
  }
  database_cases.write(tmp_path / 'emnist_all.sqlite', {
      key: [
          database_cases.example(pixels=[n / 64] * 784, label=[n])
          for n in numbers
      ]
      for key, numbers in labels.items()
  })
  task = references.build(name, 'cache', str(tmp_path))
  for arrays, expected in ((task.train, train), (task.test, test)):
    x, y = arrays.features
    assert y.tolist() == (64 * x[:, 5, 7, 0]).tolist() == expected
    assert arrays.client_ids == tuple(
        client for (_, client), found in labels.items() if found == expected
    )


def test_paper_is_one_and_ink_is_zero(shared_data):
  x, _ = references.build(
      'emnist_digits', 'cache', str(shared_data / 'tff_cache')
  ).train.features
  assert x.min() == 0.0 and x.max() == 1.0
  assert (x[:, 0] > 0.9).all()  # The border is paper.


def test_download_of_a_present_file_needs_no_network(shared_data, tmp_path):
  for file in (shared_data / 'tff_cache').glob('emnist_all.sqlite'):
    (tmp_path / file.name).symlink_to(file)
  task = references.build('femnist', 'download', str(tmp_path))
  assert task.train.num_clients == 9
