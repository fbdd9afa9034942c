"""The parts of the network; the whole is compared in cifar100_test."""

import numpy as np
import pytest
import tensorflow as tf

from baselines.tasks import cifar100


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
