"""Section 4's numbers: minimizers and the density of Figure 1."""

import types

import numpy as np
import pytest
import tensorflow as tf

from baselines.tasks import quadratics


def _build(model):
  return quadratics.build(types.SimpleNamespace(
      task='quadratics', model=model, data_source='synthetic', data_dir=None,
      data_seed=0,
  ))


def _population_gradient(task, x):
  model = task.build_model(0, 'float64')
  weight = tf.constant([x], tf.float64)
  z, y = task.train.features
  with tf.GradientTape() as tape:
    tape.watch(weight)
    output = model.predict_on_batch(((weight,), ()), z, training=True)
    loss = model.loss(output, y)
  return float(loss), float(tape.gradient(loss, weight)[0])


def test_two_clients_have_their_minimizer():
  task = _build('two_clients')
  assert task.population is task.train
  loss, gradient = _population_gradient(task, 2 / 3)
  assert gradient == pytest.approx(0, abs=1e-15)
  # Mean of 1/2 (1/3)^2 and (1/6)^2.
  assert loss == pytest.approx(1 / 24, abs=1e-15)


def test_interval_has_its_minimizer():
  task = _build('interval')
  loss, gradient = _population_gradient(task, 5 / 7)
  assert gradient == pytest.approx(0, abs=1e-6)
  # 7/10 x^2 - x at 5/7.
  assert loss == pytest.approx(-5 / 14, abs=1e-6)


@pytest.mark.parametrize(
    'rate, minimizer',
    [(0.25, 0.7829627662), (0.5, 0.7979469807), (1.0, 0.8284934081)],
)
def test_g26_surrogate_minimizers(rate, minimizer):
  # x* = E[Q] / E[Q z] with Q = sum_{k < 10} (1 - rate z)^k.
  z, _ = _build('interval').train.features
  q = sum((1 - rate * z) ** k for k in range(10))
  assert q.mean() / (q * z).mean() == pytest.approx(minimizer, abs=1e-6)


def test_generated_clients_follow_the_density():
  generate = _build('interval').population.generate
  generator = np.random.default_rng(0)
  drawn = [generate(generator) for _ in range(20_000)]
  z = np.array([x[0] for x, _ in drawn])
  assert all(x.shape == y.shape == (1,) and y[0] == 0 for x, y in drawn[:10])
  assert z.min() >= 0.5 and z.max() <= 2
  assert z.mean() == pytest.approx(1.4, abs=0.01)
  assert (1 / z).mean() == pytest.approx(0.8, abs=0.01)


def test_starts_at_zero_in_the_dtype():
  for dtype in ('float32', 'float64'):
    (x,), _ = _build('interval').build_model(5, dtype).initial_weights
    assert x.dtype == dtype and x.tolist() == [0.0]
