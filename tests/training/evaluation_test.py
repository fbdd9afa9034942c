"""Population loss is the client-uniform mean; sums match NumPy."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from baselines.tasks import clients
from baselines.tasks import models
from baselines.tasks import task as task_lib
from baselines.training import evaluation

# The two logistic clients of the specification, section 10.
_CLIENTS = [
    ([[1, 0], [0, 1], [1, 1]], [1, 0, 1]),
    ([[2, -1], [-1, 1]], [0, 1]),
]
_WEIGHTS = np.array([0.1, -0.2])


def _log_loss(output, label):
  # log(1 + exp(-s z)) with s = 2 y - 1.
  sign = 2 * tf.cast(label, output.dtype) - 1
  return tf.nn.softplus(-sign * output)


def _sign_accuracy(output, label):
  right = (output > 0) == (label > 0)
  # Unequal weights, as of sequences with padding.
  weight = tf.cast(label + 1, output.dtype)
  return tf.where(right, weight, tf.zeros_like(weight)), weight


def _task(examples, dtype, test=None, accuracy_fn=None):
  def arrays(pairs):
    return clients.from_clients(
        [f'c{i}' for i in range(len(pairs))],
        [
            (np.array(x, np.float64).reshape(-1, 2), np.array(y, np.int32))
            for x, y in pairs
        ],
    )

  def build_model(seed, dtype):
    return models.build_functional_model(
        apply_fn=lambda w, x: tf.linalg.matvec(tf.cast(x, w[0].dtype), w[0]),
        weight_spec=(('w', (2,), models.zeros),),
        example_loss_fn=_log_loss,
        input_spec=(
            tf.TensorSpec((None, 2), tf.float64),
            tf.TensorSpec((None,), tf.int32),
        ),
        seed=seed,
        dtype=dtype,
    )

  task = task_lib.Task(
      name='logistic', model_id='plain', build_model=build_model,
      train=arrays(examples), test=None if test is None else arrays(test),
      example_loss_fn=_log_loss, example_accuracy_fn=accuracy_fn,
      convolutional=False,
  )
  return task, task.build_model(0, dtype)


def _evaluate(*args, batch_size=2, jit=None, dtype='float64', **kwargs):
  task, model = _task(*args, dtype, **kwargs)
  evaluator = evaluation.Evaluator(
      task, model, batch_size=batch_size, jit=jit
  )
  return evaluator.evaluate(((_WEIGHTS.astype(dtype),), ()))


@pytest.mark.parametrize('batch_size', [1, 2, 3, 5, 64])
@pytest.mark.parametrize('jit', [None, True])
@pytest.mark.parametrize(
    'dtype, tolerance', [('float64', 1e-9), ('float32', 1e-5)]
)
def test_g22_client_uniform_and_example_weighted(
    batch_size, jit, dtype, tolerance
):
  result = _evaluate(_CLIENTS, batch_size=batch_size, jit=jit, dtype=dtype)
  assert result.population_loss == pytest.approx(0.7729979891, abs=tolerance)
  assert result.example_weighted_loss == pytest.approx(
      0.7508605373, abs=tolerance
  )
  assert result.test_loss is None and result.test_accuracy is None


def test_empty_clients_do_not_count():
  with_empty = [([], []), _CLIENTS[0], ([], []), _CLIENTS[1], ([], [])]
  result = _evaluate(with_empty)
  assert result.population_loss == pytest.approx(0.7729979891, abs=1e-9)


def test_test_loss_and_weighted_accuracy():
  # Outputs 0.4, -0.3, -0.1 and 0.1; labels have the weights 1, 2, 2 and 1.
  # Of clients of unequal sizes, whose own means would count otherwise.
  test = [([[2, -1], [-1, 1], [1, 1]], [0, 1, 1]), ([[1, 0]], [0])]
  result = _evaluate(_CLIENTS, test=test, accuracy_fn=_sign_accuracy)
  outputs = np.array([0.4, -0.3, -0.1, 0.1])
  signs = np.array([-1, 1, 1, -1])
  assert result.test_loss == pytest.approx(
      np.log1p(np.exp(-signs * outputs)).mean(), abs=1e-12
  )
  assert result.test_accuracy == 0.0
  test[1][1][0] = 1
  result = _evaluate(_CLIENTS, test=test, accuracy_fn=_sign_accuracy)
  assert result.test_accuracy == pytest.approx(2 / 7)


def test_weights_may_be_tff_model_weights():
  task, model = _task(_CLIENTS, 'float64')
  evaluator = evaluation.Evaluator(task, model)
  result = evaluator.evaluate(
      tff.learning.models.ModelWeights([tf.constant(_WEIGHTS)], [])
  )
  assert result.population_loss == pytest.approx(0.7729979891, abs=1e-9)


def test_diverged_weights_give_nan():
  task, model = _task(_CLIENTS, 'float32')
  result = evaluation.Evaluator(task, model).evaluate(
      ((np.array([np.nan, 1], np.float32),), ())
  )
  assert np.isnan(result.population_loss)


def test_one_trace_for_all_batches_and_evaluations():
  traces = []

  def accuracy_fn(output, label):
    traces.append(output.shape)
    return _sign_accuracy(output, label)

  task, model = _task(
      _CLIENTS, 'float32', test=[_CLIENTS[0]], accuracy_fn=accuracy_fn
  )
  evaluator = evaluation.Evaluator(task, model, batch_size=2)
  for factor in range(3):
    evaluator.evaluate(((np.float32(factor) * _WEIGHTS.astype('f4'),), ()))
  other, _ = _task([_CLIENTS[1], _CLIENTS[0], _CLIENTS[0]], 'float32')
  evaluator.with_data_of(other).evaluate(((_WEIGHTS.astype('f4'),), ()))
  assert len(traces) == 1


def test_other_data_by_the_same_function():
  weights = ((_WEIGHTS,), ())
  (task, model), (other, other_model) = (
      _task(clients_, 'float64') for clients_ in (_CLIENTS, _CLIENTS[1:])
  )
  first = evaluation.Evaluator(task, model)
  before = first.evaluate(weights)
  found = first.with_data_of(other).evaluate(weights)
  assert found == evaluation.Evaluator(other, other_model).evaluate(weights)
  assert found != before and first.evaluate(weights) == before
  with pytest.raises(ValueError, match='at least one example'):
    first.with_data_of(_task([([], [])], 'float64')[0])


def test_client_uniform_mean():
  losses = np.array([1.0, 3.0, 10.0])
  found = evaluation.client_uniform_mean(losses, np.array([0, 0, 2, 3, 3]))
  assert found == 6.0


def test_bad_arguments():
  task, model = _task(_CLIENTS, 'float32')
  with pytest.raises(ValueError, match='batch_size must be at least 1, got 0'):
    evaluation.Evaluator(task, model, batch_size=0)
  empty, model = _task([([], [])], 'float32')
  with pytest.raises(ValueError, match='at least one example'):
    evaluation.Evaluator(empty, model)


def _spy_on_sizes(evaluator, sizes):
  """Notes the number of examples of each batch."""
  evaluate_batch = evaluator._evaluate_batch

  def spy(weights, x, y):
    sizes.append(len(x))
    return evaluate_batch(weights, x, y)

  evaluator._evaluate_batch = spy


@pytest.mark.parametrize('convolutional, few_weights, expected', [
    (False, 2, [4096] * 2), (True, 2, [256] * 20), (False, 1, [256] * 20),
])
def test_few_weights_take_large_batches(
    monkeypatch, convolutional, few_weights, expected):
  monkeypatch.setattr(evaluation, '_count_threads', lambda _: 1)
  monkeypatch.setattr(evaluation, '_FEW_WEIGHTS', few_weights)
  task, model = _task([(np.ones((5000, 2)), np.ones(5000))], 'float64')
  task = dataclasses.replace(task, convolutional=convolutional)
  evaluator, sizes = evaluation.Evaluator(task, model), []
  _spy_on_sizes(evaluator, sizes)
  evaluator.evaluate(((_WEIGHTS,), ()))
  assert sizes == expected


def test_threads_change_no_number(monkeypatch):
  generator = np.random.default_rng(0)
  pairs = [
      (generator.standard_normal((n, 2)), generator.integers(0, 2, n))
      for n in (150, 1, 99)
  ]
  results, sizes = [], []
  for threads in (1, 3):
    monkeypatch.setattr(evaluation, '_count_threads', lambda _, n=threads: n)
    task, model = _task(
        pairs, 'float64', test=pairs[:1], accuracy_fn=_sign_accuracy
    )
    evaluator = evaluation.Evaluator(task, model, batch_size=96)
    _spy_on_sizes(evaluator, sizes)
    results.append(evaluator.evaluate(((_WEIGHTS,), ())))
  # 250 and 150 examples by 96, then by 96 / 3.
  assert sizes == [96] * (3 + 2) + [32] * (8 + 5)
  assert results[0] == results[1]


@pytest.mark.parametrize('device, threads, expected', [
    ('/device:CPU:0', 1, 5), ('/device:CPU:0', 2, 1), ('/device:CPU:0', 0, 1),
    ('/device:GPU:0', 1, 1),
])
def test_batches_share_the_cores_where_operations_have_one_thread(
    monkeypatch, device, threads, expected):
  monkeypatch.setattr(
      tf.config.threading, 'get_intra_op_parallelism_threads', lambda: threads
  )
  monkeypatch.setattr(evaluation.os, 'sched_getaffinity', lambda _: range(5))
  assert evaluation._count_threads(device) == expected


@pytest.mark.parametrize('threads', [1, 3])
@pytest.mark.parametrize('jit', [False, True])
@pytest.mark.parametrize('device', ['/device:CPU:0', '/device:CPU:1'])
def test_work_is_done_on_the_device(monkeypatch, device, jit, threads):
  monkeypatch.setattr(evaluation, '_count_threads', lambda _: threads)
  task, model = _task(_CLIENTS, 'float64')
  evaluator = evaluation.Evaluator(
      task, model, batch_size=1, jit=jit, device=device
  )
  evaluate_batch, places = evaluator._evaluate_batch, []

  def spy(*args):
    result = evaluate_batch(*args)
    places.append(result.backing_device[-len(device):])
    return result

  evaluator._evaluate_batch = spy
  with tf.device('/device:CPU:0'):
    evaluator.evaluate(((_WEIGHTS,), ()))
  assert set(places) == {device}
