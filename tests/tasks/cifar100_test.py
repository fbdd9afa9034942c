"""The network, by parts and whole, and the data are those of TFF's task."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import cifar100
from tests.tasks import database_cases
from tests.tasks import references


def test_18_layers_with_11227812_parameters():
  spec = cifar100.weight_spec(100)
  assert sum(int(np.prod(shape)) for _, shape, _ in spec) == 11_227_812
  kernels = [
      name for name, shape, _ in spec
      if len(shape) > 1 and 'shortcut' not in name
  ]
  assert len(kernels) == 18
  assert len({name for name, _, _ in spec}) == len(spec)


def test_standardize_is_tensorflows():
  images = np.random.default_rng(0).integers(0, 256, (3, 24, 24, 3), np.uint8)
  images[1] = 7  # No deviation,
  images[2] = 7
  images[2, 3, 4, 1] = 8  # and one below 1 / sqrt(24 x 24 x 3).
  found = cifar100.standardize(images, tf.float32)
  expected = tf.image.per_image_standardization(images.astype(np.float32))
  np.testing.assert_allclose(found, expected, atol=1e-5)
  assert (found[1].numpy() == 0).all()


def test_group_normalization_is_kerass():
  generator = np.random.default_rng(1)
  x = generator.standard_normal((3, 5, 4, 64)).astype(np.float32) + 1
  scale, offset = generator.standard_normal((2, 64)).astype(np.float32)
  layer = tf.keras.layers.GroupNormalization()
  layer.build((None, 5, 4, 64))
  layer.set_weights([scale, offset])
  found = cifar100._normalize(tf.constant(x), iter([scale, offset]))
  np.testing.assert_allclose(found, layer(x), atol=1e-5)


def test_squares_of_kernels_and_of_the_last_bias_only():
  shapes = ((1, 1, 2, 3), (3,), (3, 2), (2,))
  weights = [tf.fill(shape, 2.0) for shape in shapes]
  assert float(cifar100.sum_of_squares(weights)) == pytest.approx(
    4 * (6 + 6 + 2)
  )


@functools.lru_cache(maxsize=None)  # TFF builds the network each time.
def _tff_task(**kwargs):
  return tff.simulation.baselines.cifar100.create_image_classification_task(
      references.CLIENT_SPEC, **kwargs
  )


_build = functools.lru_cache(maxsize=None)(
    functools.partial(references.build, 'cifar100')
)


@functools.lru_cache(maxsize=None)
def _model(name='resnet18', dtype='float32'):
  return _build(model=name).build_model(5, dtype)


@pytest.fixture(name='perturbed', scope='module')
def _perturbed():
  """The initial weights, moved so that no scale is 1 and no offset 0."""
  generator = np.random.default_rng(2)
  return tuple(
      w + (0.05 * generator.standard_normal(w.shape)).astype(np.float32)
      if w.ndim == 1 else w
      for w in _model().initial_weights[0]
  )


def test_equals_tffs_model_with_its_penalty(perturbed):
  task = _build()
  keras = _tff_task(use_synthetic_data=True).model_fn()
  x, y = (feature[:4] for feature in task.train.features)
  standardized = tf.image.per_image_standardization(x.astype(np.float32))
  output, loss, gradients = references.step(_model(), perturbed, x, y)
  expected_output, expected_loss, expected = references.tff_step(
      keras, perturbed, standardized, y.astype(np.int64)
  )
  # Softmax undoes the shift by the penalty.
  np.testing.assert_allclose(tf.nn.softmax(output), expected_output, atol=1e-6)
  np.testing.assert_allclose(loss, expected_loss, rtol=1e-6)
  references.assert_close(gradients, expected, rtol=2e-5)


def test_penalty_is_a_ten_thousandth_of_the_squares(perturbed):
  x, y = (feature[:2] for feature in _build().train.features)
  (_, with_penalty, gradients), (_, without, other_gradients) = (
      references.step(_model(name), perturbed, x, y)
      for name in ('resnet18', 'resnet18_unpenalized')
  )
  penalized = [w for w in perturbed if w.ndim > 1] + [perturbed[-1]]
  squares = sum(np.sum(np.square(w, dtype=np.float64)) for w in penalized)
  assert squares > 5000
  assert float(with_penalty - without) == pytest.approx(
      1e-4 * squares, rel=1e-5
  )
  for w, a, b in zip(perturbed, gradients, other_gradients):
    is_penalized = any(w is p for p in penalized)
    np.testing.assert_allclose(
        a - b, 2e-4 * w if is_penalized else np.zeros_like(w), atol=1e-6
    )


def test_float64_is_the_same_network():
  x, y = (feature[:2] for feature in _build().train.features)
  losses = []
  for dtype in ('float32', 'float64'):
    model = _model(dtype=dtype)
    output = model.predict_on_batch(model.initial_weights, x, training=True)
    losses.append(float(model.loss(output, y)))
  assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def _assert_equal_clients(arrays, reference, train=True):
  datasets = reference.datasets
  client_data = datasets.train_data if train else datasets.test_data
  assert list(arrays.client_ids) == sorted(client_data.client_ids)
  for i in range(0, arrays.num_clients, 4):
    expected_x, expected_y = references.examples(
        reference, arrays.client_ids[i], train
    )
    x, y = arrays.take(i)
    assert x.shape == expected_x.shape and x.dtype == np.uint8
    standardized = tf.image.per_image_standardization(x.astype(np.float32))
    np.testing.assert_allclose(standardized, expected_x, atol=1e-6)
    np.testing.assert_array_equal(y, expected_y)


def test_synthetic_data_are_tffs():
  task = _build()
  assert task.train.sizes.tolist() == [5, 5]
  _assert_equal_clients(task.train, _tff_task(use_synthetic_data=True))


def test_splits_are_those_of_the_database(tmp_path):
  labels = {('train', 'a'): [1, 2], ('train', 'b'): [3], ('test', 'c'): [4]}
  database_cases.write(tmp_path / 'cifar100.sqlite', {
      key: [
          database_cases.example(image=[10 * n] * 3072, label=[n])
          for n in numbers
      ]
      for key, numbers in labels.items()
  })
  task = references.build('cifar100', 'cache', str(tmp_path))
  for arrays, names, expected in (
      (task.train, ('a', 'b'), [1, 2, 3]), (task.test, ('c',), [4]),
  ):
    x, y = arrays.features
    assert arrays.client_ids == names
    assert y.tolist() == (x[:, 5, 7, 0] // 10).tolist() == expected


def test_real_data_equal_tffs(shared_data):
  folder = str(shared_data / 'tff_cache')
  task = references.build('cifar100', 'cache', folder)
  assert task.train.sizes.tolist() == [100] * 13
  assert task.test.sizes.tolist() == [100] * 3
  reference = _tff_task(cache_dir=folder)
  _assert_equal_clients(task.train, reference)
  _assert_equal_clients(task.test, reference, train=False)
