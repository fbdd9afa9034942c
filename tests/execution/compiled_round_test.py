"""The fused round: which shapes share one, how long it is kept, how called."""

from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.execution.processes import BOTH
from tests.execution.processes import build_matrix_process
from tests.execution.processes import build_process
from tests.execution.processes import CPU
from tff_localupdate import execution
from tff_localupdate.execution import compiled_round


def test_each_shape_keeps_its_compiler(monkeypatch):
  build = compiled_round.CompiledRound._build

  def fail(*unused_leaves):
    raise tf.errors.InvalidArgumentError(None, None, 'no such kernel')

  def build_but_not_two(self, key, leaves):
    function = build(self, key, leaves)
    return fail if self.jit and key[0] == 2 else function

  monkeypatch.setattr(compiled_round.CompiledRound, '_build', build_but_not_two)
  program_ = execution.compile_process(build_matrix_process(), devices=CPU)
  state, seen = program_.initialize(), []
  for size in (3, 2, 3, 4):
    state, _ = program_.next(state, np.ones((size, 6, 6), np.float32))
    seen.append(program_.jit)
    assert ('XLA' in program_.device_report) == program_.jit
  assert seen == [True, False, True, False]


@pytest.mark.parametrize('kept', [2, 128])
def test_old_shapes_make_room(monkeypatch, kept):
  monkeypatch.setattr(compiled_round, '_MAX_COMPILED', kept)
  process = build_process((np.float32, [None]), tf.reduce_sum)
  program_ = execution.compile_process(process, devices=CPU)
  state, totals = program_.initialize(), []
  for width in (1, 2, 3, 1):
    state, total = program_.next(state, np.ones((2, width), np.float32))
    totals.append(total)
  assert program_.num_compiled == min(kept, 3)
  assert totals == [2, 12, 90, 210]


@pytest.mark.parametrize('jit, compiled', [('on', 3), ('off', 1)])
def test_kernels_take_all_sizes_that_the_type_leaves_open(jit, compiled):
  process = build_process((np.float32, [None, 2]), tf.reduce_sum)
  program_ = execution.compile_process(process, devices=CPU, jit=jit)
  for rows in (1, 2, 5):
    values = np.arange(6 * rows, dtype=np.float32).reshape(3, rows, 2)
    _, total = program_.next(program_.initialize(), values)
    assert total == values.sum()
  assert program_.num_compiled == compiled


@pytest.mark.parametrize('clients', ['loop', 'parallel'])
def test_each_number_of_clients_has_its_round(clients):
  process = build_process((np.float32, [None]), tf.reduce_max)
  program_ = execution.compile_process(
      process, devices=CPU, jit='off', clients=clients)
  for size, width in ((2, 3), (2, 1), (4, 3), (4, 7)):
    values = np.arange(size * width, dtype=np.float32).reshape(size, width)
    _, total = program_.next(program_.initialize(), values)
    assert total == values.max(axis=1).sum()
  assert program_.num_compiled == 2


@pytest.mark.parametrize('jit, compiled', [('on', 2), ('off', 1)])
def test_clients_of_unlike_sizes_share_a_round_of_kernels(jit, compiled):
  context = execution.InProcessContext(
      execution.ExecutionOptions(CPU, jit=jit))
  tff.framework.set_default_context(context)
  process = build_process((np.float32, [None]), tf.reduce_sum)
  for widths in ((1, 4, 2), (3, 1, 5)):
    values = [np.ones(width, np.float32) for width in widths]
    _, total = process.next(process.initialize(), values)
    assert total == sum(widths)
  assert context.compiled_round(process.next).num_compiled == compiled


def test_shapes_of_which_nothing_is_known_stay_as_they_are():
  process = build_process(
      tff.TensorType(np.float32, None),
      lambda value: tf.ensure_shape(tf.reduce_sum(value), []))
  context = execution.InProcessContext(
      execution.ExecutionOptions(CPU, jit='off'))
  tff.framework.set_default_context(context)
  for shape in ((2,), (2, 3)):
    values = [np.ones(shape, np.float32), np.ones(shape[::-1], np.float32)]
    _, total = process.next(process.initialize(), values)
    assert total == 2 * np.prod(shape)


def _accumulated_in_a_variable(values):
  total = tf.Variable(0.0)
  with tf.control_dependencies([total.assign_add(tf.reduce_sum(values))]):
    return total.read_value()


@pytest.mark.parametrize('jit', ['auto', 'off'])
@pytest.mark.parametrize('devices', [CPU, BOTH])
def test_clients_of_unlike_sizes_share_no_variables(jit, devices):
  process = build_process((np.float32, [None]), _accumulated_in_a_variable)
  tff.framework.set_default_context(execution.InProcessContext(
      execution.ExecutionOptions(devices, jit=jit)))
  values = [np.ones(width, np.float32) for width in (1, 2, 3, 5)]
  for _ in range(10):
    _, total = process.next(process.initialize(), values)
    assert total == 11


def test_rounds_of_two_threads_share_no_variables():
  process = build_process((np.float32, [None]), _accumulated_in_a_variable)
  program_ = execution.compile_process(process, devices=CPU)
  values = np.ones((4, 10), np.float32)
  state = program_.initialize()
  program_.next(state, values)
  with futures.ThreadPoolExecutor(4) as pool:
    rounds = [pool.submit(program_.next, state, values) for _ in range(100)]
  assert {float(done.result()[1]) for done in rounds} == {40.0}


def test_assertions_are_not_left_out():
  def positive(value):
    with tf.control_dependencies([tf.debugging.assert_positive(value)]):
      return tf.identity(value)

  program_ = execution.compile_process(
      build_process(np.float32, positive), devices=CPU)
  assert not program_.jit
  with pytest.raises(tf.errors.InvalidArgumentError):
    program_.next(program_.initialize(), np.array([1, -1], np.float32))


@pytest.mark.parametrize('jit', ['auto', 'off'])
@pytest.mark.parametrize('clients', ['loop', 'parallel'])
def test_sums_may_grow(jit, clients):
  @tff.tensorflow.computation
  def nothing():
    return tf.zeros([0], tf.float32)

  rows = tff.TensorType(np.float32, [None])

  @tff.tensorflow.computation(rows, np.float32)
  def append(found, value):
    return tf.concat([found, [value]], axis=0)

  @tff.tensorflow.computation(rows, rows)
  def join(first, second):
    return tf.concat([first, second], axis=0)

  @tff.tensorflow.computation(rows)
  def report(found):
    return found

  @tff.tensorflow.computation(np.float32, np.float32)
  def scale(value, state):
    return value * state

  @tff.tensorflow.computation
  def initial():
    return tf.constant(2.0)

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(initial, tff.SERVER)

  @tff.tensorflow.computation(rows)
  def empty_like(found):
    return found[:0]

  @tff.federated_computation(
      tff.FederatedType(np.float32, tff.SERVER),
      tff.FederatedType(np.float32, tff.CLIENTS))
  def next_fn(state, values):
    scaled = tff.federated_map(
        scale, (values, tff.federated_broadcast(state)))
    zero = empty_like(nothing())
    return state, tff.federated_aggregate(scaled, zero, append, join, report)

  program_ = execution.compile_process(
      tff.templates.IterativeProcess(initialize, next_fn), devices=CPU,
      jit=jit, clients=clients)
  state = program_.initialize()
  for size in (3, 1, 5):
    values = np.arange(size, dtype=np.float32)
    state, found = program_.next(state, values)
    np.testing.assert_array_equal(found, 2 * values)


def _host_call(jit, one_program, *values):
  captured = tf.constant([[2.0, 0.5], [1.0, -1.0]])

  def compute(x, y):
    return [tf.matmul(x, captured) / y, tf.reduce_sum(x), x.shape[0] * y]

  build = tf.function(compute, jit_compile=jit, autograph=False)
  specs = [tf.TensorSpec(np.shape(v), tf.float32) for v in values]
  call = compiled_round.host_call(build, specs, one_program=one_program)
  return call(*[tf.constant(v, tf.float32) for v in values])


def test_one_operation_gives_the_same_bits():
  values = np.linspace(0.1, 2.0, 6).reshape(3, 2), 0.7
  plain, fast = (_host_call(True, way, *values) for way in (False, True))
  assert len(plain) == len(fast) == 3
  for one, other in zip(plain, fast):
    np.testing.assert_array_equal(one, other)
  np.testing.assert_allclose(
      fast[0], values[0] @ [[2.0, 0.5], [1.0, -1.0]] / 0.7, rtol=1e-6
  )
  np.testing.assert_allclose(fast[2], 2.1, rtol=1e-6)


@pytest.mark.parametrize('one_program', [False, True])
def test_what_xla_cannot_compile_is_an_error_of_the_call(one_program):
  build = tf.function(
      lambda x: [tf.strings.as_string(x)], jit_compile=True, autograph=False
  )
  call = compiled_round.host_call(
      build, [tf.TensorSpec([2], tf.float32)], one_program=one_program
  )
  with pytest.raises(tf.errors.InvalidArgumentError, match='AsString'):
    call(tf.zeros([2]))
