"""What every task must do, for each of its models."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from baselines.tasks import clients
from baselines.tasks import registry
from tests.tasks import references
from tff_localupdate import execution
from tff_localupdate import server_optimizers
from tff_localupdate import theta
from tff_localupdate.local_update import client_work
from tff_localupdate.local_update import process

_CASES = [
    (name, model)
    for name, entry in registry.TASKS.items()
    for model in entry.models
]
_LINEAR = ('linear_regression', 'logistic', 'logistic_sum')
# Start at one point whatever the seed, and not all can halve the loss.
_FIXED_START = ('mnist_logistic', 'quadratics', 'scaled_regression')
# Differs from another model of its task by one term, and takes long.
_VARIANTS = ('resnet18_unpenalized',)
_NETWORKS = [
    case for case in _CASES
    if case[0] not in _FIXED_START and case[1] not in _VARIANTS
]
_RATES = {
    'cifar100': 0.01, 'stackoverflow_tag': 5.0, 'stackoverflow_word': 0.5,
}


@functools.lru_cache(maxsize=None)
def _task(name, model):
  """Builds each task once: it is only read."""
  source = registry.task_entry(name).data_sources[0]
  return references.build(name, source, model=model, data_seed=0)


@functools.lru_cache(maxsize=None)
def _model(name, model, dtype='float32'):
  """Builds each model once: it holds no variables."""
  return _task(name, model).build_model(1, dtype)


def _batch(task, size):
  # 20 examples that differ; TFF's synthetic Shakespeare has 13.
  return tuple(feature[:size] for feature in task.train.features)


@pytest.mark.parametrize('name, model_id', _CASES)
def test_entry_is_true(name, model_id):
  task, entry = _task(name, model_id), registry.task_entry(name)
  assert (task.name, task.model_id) == (name, model_id)
  assert (task.example_accuracy_fn is not None) == entry.has_accuracy
  source = entry.data_sources[0]
  known = registry.check_data(name, source, None, model_id)
  assert known in (None, task.train.num_clients)
  assert len(set(task.train.client_keys.tolist())) == task.train.num_clients


@pytest.mark.parametrize('name, model_id', _CASES)
@pytest.mark.parametrize('dtype', ['float32', 'float64'])
def test_model_takes_the_data_and_gives_the_dtype(name, model_id, dtype):
  task = _task(name, model_id)
  model = _model(name, model_id, dtype)
  for arrays in filter(None, (task.train, task.test)):
    for feature, spec in zip(arrays.features, model.input_spec):
      found = tf.TensorSpec(feature.shape, feature.dtype)
      assert spec.is_compatible_with(found)
  x, y = _batch(task, 2)
  output = model.predict_on_batch(model.initial_weights, x, training=True)
  losses = task.example_loss_fn(output, y)
  assert losses.shape == (2,) and losses.dtype == dtype
  np.testing.assert_allclose(
      model.loss(output, y), np.mean(losses), rtol=1e-6
  )
  if task.example_accuracy_fn is not None:
    correct, weight = task.example_accuracy_fn(output, y)
    assert correct.shape == weight.shape == (2,)
    assert (correct.numpy() <= weight.numpy()).all()


@pytest.mark.parametrize('name, model_id', _CASES)
def test_model_is_the_same_in_a_graph_of_tff(name, model_id):
  # TFF traces in graphs of TensorFlow 1, where some operators of tensors, as
  # `==`, mean something else. The first examples of Shakespeare are padded.
  task = _task(name, model_id)
  model = _model(name, model_id)
  x, y = _batch(task, 3)

  def loss(x, y):
    weights = tf.nest.map_structure(tf.constant, model.initial_weights)
    return model.loss(model.predict_on_batch(weights, x, training=True), y)

  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    found = session.run(loss(tf.constant(x), tf.constant(y)))
  np.testing.assert_allclose(found, loss(x, y), rtol=1e-6)


@pytest.mark.parametrize('name, model_id', _NETWORKS)
def test_weights_are_a_function_of_the_seed(name, model_id):
  task = _task(name, model_id)
  tf.random.set_seed(3)
  first = task.build_model(7, 'float32').initial_weights
  tf.random.set_seed(4)
  again = task.build_model(7, 'float32').initial_weights
  other = task.build_model(8, 'float32').initial_weights
  assert not first[1]
  assert all(np.array_equal(a, b) for a, b in zip(first[0], again[0]))
  assert not all(np.array_equal(a, b) for a, b in zip(first[0], other[0]))


@pytest.mark.parametrize('name, model_id', _CASES)
def test_example_alone_and_among_others_gives_the_same_output(name, model_id):
  task = _task(name, model_id)
  model = _model(name, model_id)
  x, _ = _batch(task, 7)
  together = model.predict_on_batch(model.initial_weights, x, training=True)
  for i in range(0, len(x), 3):
    alone = model.predict_on_batch(
        model.initial_weights, x[i : i + 1], training=True
    )
    np.testing.assert_allclose(alone[0], together[i], atol=1e-5)


@pytest.mark.parametrize('name, model_id', _NETWORKS)
def test_at_most_thirty_steps_on_one_batch_halve_the_loss(name, model_id):
  task = _task(name, model_id)
  model = _model(name, model_id)
  x, y = _batch(task, 20)
  # Adam, because the networks need other rates than one another otherwise.
  rate = 0.1 if name in _LINEAR or model_id in _LINEAR else 0.002

  @tf.function
  def step(weights, first, second, count):
    with tf.GradientTape() as tape:
      tape.watch(weights)
      output = model.predict_on_batch((weights, ()), x, training=True)
      loss = model.loss(output, y)
    q = list(map(tf.convert_to_tensor, tape.gradient(loss, weights)))
    first = [0.9 * m + 0.1 * g for m, g in zip(first, q)]
    second = [0.99 * v + 0.01 * g * g for v, g in zip(second, q)]
    scale = rate * tf.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    weights = [
        w - scale * m / (tf.sqrt(v) + 1e-7)
        for w, m, v in zip(weights, first, second)
    ]
    return loss, weights, first, second

  weights = list(map(tf.constant, model.initial_weights[0]))
  first = second = [tf.zeros_like(w) for w in weights]
  losses = []
  for count in range(1, 32):
    loss, weights, first, second = step(
        weights, first, second, tf.constant(float(count))
    )
    losses.append(float(loss))
    if losses[-1] < losses[0] / 2:
      return
  raise AssertionError(losses)


def test_population_is_what_is_evaluated_unless_another_is_given():
  task = _task('stackoverflow_word', 'lstm')
  assert isinstance(task.population, clients.LazyClients)
  assert _task('digits', 'cnn').population is _task('digits', 'cnn').train
  generator = clients.ClientGenerator(lambda _: task.train.take(0))
  changed = dataclasses.replace(task, population=generator)
  assert changed.population is generator and generator.num_clients is None


@pytest.mark.parametrize('name, model_id', [
    ('cifar100', 'resnet18'),
    ('stackoverflow_tag', 'logistic'),
    ('stackoverflow_word', 'lstm'),
])
def test_two_rounds_of_local_update_lower_the_loss(name, model_id):
  task = _task(name, model_id)
  local_update = process.build_local_update(
      _model(name, model_id),
      theta=theta.parse_theta('1:2'),
      batch_size=2,
      client_learning_rate=_RATES[name],
      server_optimizer=server_optimizers.build_sgd(_RATES[name]),
      loss_before_training='first_batch',
  )
  program = execution.compile_process(local_update)
  state = program.initialize()
  arrays, _ = task.population.cohort(np.arange(2))
  # The first two examples of two clients, twice.
  rows = arrays.offsets[:2, np.newaxis, np.newaxis] + np.array([[0, 1]] * 2)
  cohort = client_work.ClientBatches(
      tuple(feature[rows] for feature in arrays.features),
      arrays.sizes[:2].astype(np.int32),
  )
  losses = []
  for _ in range(2):
    state, metrics = program.next(state, cohort)
    losses.append(float(metrics.loss_before_training))
    assert metrics.clients_non_finite == 0
  assert np.isfinite(losses).all() and losses[1] < losses[0]


def test_other_clients_sizes_or_classes_have_another_digest():
  task = _task('digits', 'cnn')
  first = task.data_digests['clients']
  x, y = task.train.features
  held = task.train
  for other in (
      dataclasses.replace(held, client_ids=('a', *held.client_ids[1:])),
      dataclasses.replace(held, features=(x, (y + 1) % 10)),
      dataclasses.replace(held, offsets=np.append(0, held.offsets[1:] - [
          1, *[0] * (held.num_clients - 1)
      ])),
  ):
    changed = dataclasses.replace(task, train=other, population=None)
    assert changed.data_digests['clients'] != first
  again = dataclasses.replace(task, train=dataclasses.replace(held))
  assert again.data_digests == {**task.digests, 'clients': first}


def test_rounding_of_numbers_is_in_no_digest():
  task = _task('linear_regression', 'linear')
  x, y = task.train.features
  assert y.dtype.kind == 'f'
  held = dataclasses.replace(task.train, features=(x, np.nextafter(y, 9)))
  again = dataclasses.replace(task, train=held)
  assert again.data_digests == task.data_digests
