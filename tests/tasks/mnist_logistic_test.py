"""Logistic regression with its penalty, on MNIST and on the stand-in."""

import subprocess
import sys
import types

import numpy as np
import pytest
from sklearn import datasets
import tensorflow as tf

from baselines.tasks import mnist_logistic
from baselines.tasks import registry


def _config(data_source='embedded', data_dir=None, data_seed=0):
  return types.SimpleNamespace(
      task='mnist_logistic', model='logistic', data_source=data_source,
      data_dir=data_dir, data_seed=data_seed,
  )


def _rows(x, y):
  return sorted(map(tuple, np.column_stack([y, x]).tolist()))


def test_stand_in_has_every_digit_once():
  task = registry.build_task(_config())
  images = datasets.load_digits()
  found = [
      np.concatenate(pair)
      for pair in zip(task.train.features, task.test.features)
  ]
  assert _rows(*found) == _rows(images.data / 16.0, images.target)
  assert task.train.sizes.tolist() == [150] * 10
  assert np.bincount(task.train.features[1]).tolist() == [150] * 10
  assert task.test.num_examples(0) == 297
  assert registry.check_data('mnist_logistic', 'embedded') == 10


def test_deal_belongs_to_the_seed_and_the_data_do_not():
  train, _ = mnist_logistic.load_embedded()
  first, again, other = (mnist_logistic.deal(train, s) for s in (3, 3, 4))
  np.testing.assert_array_equal(first.features[0], again.features[0])
  np.testing.assert_array_equal(first.features[1], again.features[1])
  assert not np.array_equal(first.features[1], other.features[1])
  assert _rows(*first.features) == _rows(*other.features) == _rows(*train)
  # At random, not by digit.
  counts = [np.bincount(first.take(i)[1], minlength=10) for i in range(10)]
  assert np.min(counts) >= 4 and np.std(counts) > 1


@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_loss_and_gradient_by_hand(dtype):
  task = registry.build_task(_config())
  model = task.build_model(1, dtype)
  (kernel,), _ = model.initial_weights
  assert kernel.shape == (64, 10) and not kernel.any()
  kernel = np.random.default_rng(0).normal(size=[64, 10]).astype(dtype)
  x, y = (feature[:25] for feature in task.train.features)
  weights = [tf.constant(kernel)]
  with tf.GradientTape() as tape:
    tape.watch(weights)
    output = model.predict_on_batch((weights, ()), x, training=True)
    loss = model.loss(output, y)
  gradient, = tape.gradient(loss, weights)
  tolerance = 1e-12 if dtype == 'float64' else 1e-5
  logits = x.astype(np.float64) @ kernel
  exponentials = np.exp(logits)
  shares = exponentials / exponentials.sum(axis=1, keepdims=True)
  entropies = -np.log(shares[np.arange(25), y])
  penalty = 0.25 * np.sum(kernel.astype(np.float64) ** 2)
  np.testing.assert_allclose(
      task.example_loss_fn(output, y), entropies + penalty, rtol=tolerance
  )
  np.testing.assert_allclose(loss, entropies.mean() + penalty, rtol=tolerance)
  shares[np.arange(25), y] -= 1.0
  np.testing.assert_allclose(
      gradient, x.T @ shares / 25 + 0.5 * kernel, atol=10 * tolerance
  )
  correct, weight = task.example_accuracy_fn(output, y)
  np.testing.assert_array_equal(correct, logits.argmax(axis=1) == y)
  np.testing.assert_array_equal(weight, 1.0)


def test_loss_at_the_start_is_log_10():
  task = registry.build_task(_config())
  model = task.build_model(1, 'float64')
  x, y = task.train.features
  output = model.predict_on_batch(model.initial_weights, x)
  assert float(model.loss(output, y)) == pytest.approx(np.log(10), rel=1e-12)


def test_too_few_images_of_a_digit():
  with pytest.raises(ValueError, match='150 training images .* found 149'):
    mnist_logistic._first_of_each_digit(np.arange(1499) % 10, 150)


def test_real_mnist(shared_data):
  folder = shared_data / 'mnist'
  if not folder.is_dir():
    pytest.skip('needs ../shared/data/mnist')
  assert registry.check_data('mnist_logistic', 'idx', str(folder)) == 10
  task = registry.build_task(_config('idx', str(folder)))
  x, y = task.train.features
  assert x.shape == (50000, 784) and x.dtype == np.float32
  assert x.min() == 0.0 and x.max() == 1.0
  assert np.bincount(y).tolist() == [5000] * 10
  assert task.train.sizes.tolist() == [5000] * 10
  assert task.test.num_examples(0) == 10000
  (kernel,), _ = task.build_model(0, 'float64').initial_weights
  assert kernel.shape == (784, 10)


def test_gradient_at_the_start_on_the_test_images_is_the_one_measured(
    shared_data
):
  folder = shared_data / 'mnist'
  if not folder.is_dir():
    pytest.skip('needs ../shared/data/mnist')
  train, test = mnist_logistic.load_idx(str(folder))
  norms = [
      np.linalg.norm(x.T @ (np.float32(0.1) - np.eye(10)[y]) / len(y))
      for x, y in (test, train)
  ]
  assert norms[0] == pytest.approx(1.07, abs=0.005)
  assert norms[1] == pytest.approx(1.03, abs=0.005)


def test_bad_folders_are_refused_before_tensorflow():
  program = (
      'import sys; from baselines.tasks import registry\n'
      'for folder in (None, "no-such-folder"):\n'
      '  try:\n'
      "    registry.check_data('mnist_logistic', 'idx', folder)\n"
      '  except (ValueError, FileNotFoundError) as error:\n'
      '    print(type(error).__name__, len(str(error).splitlines()))\n'
      "print({'tensorflow', 'tensorflow_federated'} & set(sys.modules))"
  )
  done = subprocess.run(
      [sys.executable, '-c', program], capture_output=True, text=True,
      check=True,
  )
  assert done.stdout.splitlines() == [
      'ValueError 1', 'FileNotFoundError 1', 'set()',
  ]
