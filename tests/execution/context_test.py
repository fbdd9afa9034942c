"""Contexts: which computations run, what they return, what is refused."""

import asyncio
import collections
import os

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.execution.processes import AT_SERVER
from tests.execution.processes import build_process
from tests.execution.processes import CPU
from tests.execution.processes import initialize
from tests.execution.processes import STATE
from tests.execution.processes import State
from tff_localupdate import execution
from tff_localupdate.execution import compiled_round
from tff_localupdate.execution import forms
from tff_localupdate.execution import round_graph


@pytest.fixture
def context():
  return execution.set_default_context(devices=CPU)


@pytest.fixture(scope='module')
def scalar_process():
  return build_process(np.float32, lambda value: value)


def test_state_keeps_its_python_type_and_stays_a_tensor(
    context, scalar_process):
  state = scalar_process.initialize()
  assert isinstance(state, State) and isinstance(state.total, tf.Tensor)
  state, total = scalar_process.next(state, [np.float32(2), np.float32(3)])
  assert isinstance(state, State) and isinstance(state.total, tf.Tensor)
  assert float(state.total) == 6.0 and int(state.rounds) == 1
  assert total == 5.0 and not isinstance(total, tf.Tensor)


@pytest.mark.parametrize('size', [0, 1, 2, 99, 100, 101])
def test_any_number_of_clients(context, scalar_process, size):
  values = [np.float32(i) for i in range(size)]
  _, total = scalar_process.next(scalar_process.initialize(), values)
  assert total == sum(range(size))


def test_new_shapes_compile_once_each(context, scalar_process):
  compiled = execution.InProcessContext(
      execution.ExecutionOptions(CPU))
  tff.framework.set_default_context(compiled)
  state = scalar_process.initialize()
  for size in (3, 5, 3, 5, 3):
    state, _ = scalar_process.next(state, [np.float32(0)] * size)
  assert compiled.compiled_round(scalar_process.next).num_compiled == 2


def test_clients_of_different_shapes(context):
  process = build_process(tff.TensorType(np.float32, [None]), tf.reduce_sum)
  values = [np.ones(n, np.float32) for n in (1, 4, 2)]
  state, total = process.next(process.initialize(), values)
  assert total == 7.0 and float(state.total) == 8.0


def test_data_sets_and_lists_as_sequences(context):
  process = build_process(
      tff.SequenceType(np.float32),
      lambda data: data.reduce(0.0, lambda a, b: a + b))
  data = tf.data.Dataset.from_tensor_slices([1.0, 2.0])
  _, total = process.next(process.initialize(), [data, data.take(1)])
  assert total == 4.0
  _, total = process.next(process.initialize(), [[np.float32(7)], []])
  assert total == 7.0


def test_data_sets_that_cannot_be_stacked_give_the_same(
    context, monkeypatch):
  process = build_process(
      tff.SequenceType(np.float32),
      lambda data: data.reduce(0.0, lambda a, b: a + b))
  data = [tf.data.Dataset.from_tensor_slices([1.0, n]) for n in (2.0, 5.0)]
  shapes = []
  build = round_graph.RoundGraph.build

  def spy(self, size, **kwargs):
    shapes.append(kwargs['stacked'])
    return build(self, size, **kwargs)

  monkeypatch.setattr(round_graph.RoundGraph, 'build', spy)
  # As on a GPU, where a loop cannot hold data sets.
  monkeypatch.setattr(
      compiled_round.CompiledRound, 'stacks_sequences',
      property(lambda self: False))
  _, total = process.next(process.initialize(), data)
  assert total == 9.0 and shapes == [False]


def test_many_computations_are_no_retracing_to_warn_of(context, monkeypatch):
  warned = []
  monkeypatch.setattr(
      tf.get_logger(), 'warning', lambda text, *args: warned.append(text)
  )
  for _ in range(8):
    add = tff.tensorflow.computation(lambda a: a + 1, np.int32)
    assert add(1) == 2
  assert not warned


def test_plain_computations_run_here(context):
  @tff.tensorflow.computation(np.int32, np.int32)
  def add(a, b):
    return collections.OrderedDict(sum=a + b)

  @tff.federated_computation(np.int32)
  def twice(a):
    return add(a, a), add(a, a)

  assert add(1, 2) == collections.OrderedDict(sum=3)
  assert twice(4)[1]['sum'] == 8


def test_text_and_sequence_results(context):
  @tff.tensorflow.computation(np.str_)
  def repeat(text):
    return tf.strings.join([text, text]), tf.data.Dataset.range(3)

  text, numbers = repeat('ab')
  assert text == b'abab'
  assert [int(n) for n in numbers] == [0, 1, 2]


def test_variables_in_client_work(context):
  @tf.function
  def count(value):
    with tf.init_scope():
      variable = tf.Variable(0.0)
    variable.assign_add(value)
    return variable.read_value()

  process = build_process(np.float32, count)
  for _ in range(2):  # a variable must start afresh for each client and round
    _, total = process.next(process.initialize(), [np.float32(2)] * 3)
    assert total == 6.0


def test_other_shapes_are_refused_by_name(context):
  @tff.federated_computation(tff.FederatedType(np.float32, tff.CLIENTS))
  def mean(values):
    return tff.federated_mean(values)

  with pytest.raises(forms.UnsupportedComputationError) as error:
    mean([1.0, 2.0])
  message = str(error.value)
  assert 'set_sync_local_cpp_execution_context' in message
  assert '{float32}@CLIENTS' in message


def test_two_aggregations_in_a_row_are_refused(context):
  @tff.tensorflow.computation(np.float32, STATE)
  def combine(value, state):
    return value + state.total

  @tff.federated_computation(
      AT_SERVER, tff.FederatedType(np.float32, tff.CLIENTS))
  def next_fn(state, values):
    mean = tff.federated_mean(values)
    again = tff.federated_mean(
        tff.federated_map(combine, (
            tff.federated_broadcast(mean), tff.federated_broadcast(state))))
    return state, again

  with pytest.raises(forms.UnsupportedComputationError):
    next_fn(State(1.0, 0), [1.0])


@pytest.mark.parametrize('value, words', [
    ([1.0, 'a'], 'float32'),
    (3.0, 'list'),
    ([np.zeros(2, np.float32)], 'shape'),
    ([np.complex64(1)], 'complex64'),
])
def test_wrong_client_values_name_what_is_wrong(
    context, scalar_process, value, words):
  with pytest.raises((TypeError, ValueError), match=words):
    scalar_process.next(scalar_process.initialize(), value)


def test_wrong_state_names_the_field(context, scalar_process):
  with pytest.raises(TypeError, match='state.rounds'):
    scalar_process.next(State(np.float32(1), np.float32(0.5)), [])


def test_works_inside_a_running_event_loop(context, scalar_process):
  async def main():
    return scalar_process.next(scalar_process.initialize(), [np.float32(2)])

  assert asyncio.run(main())[1] == 2.0


def test_no_process_is_started(context, scalar_process):
  scalar_process.next(scalar_process.initialize(), [np.float32(2)])
  children = [
      open(f'/proc/self/task/{task}/children').read()
      for task in os.listdir('/proc/self/task')
  ]
  names = [
      open(f'/proc/{pid}/comm').read() for line in children
      for pid in line.split()
  ]
  assert not any('worker' in name for name in names)


def test_native_program_context_runs_rounds(scalar_process):
  native = tff.program.NativeFederatedContext(
      execution.AsyncInProcessContext())
  tff.framework.set_default_context(native)

  async def main():
    state = scalar_process.initialize()
    totals = []
    for _ in range(3):
      state, total = scalar_process.next(state, [np.float32(1)])
      totals.append(await tff.program.materialize_value(total))
    return await tff.program.materialize_value(state), totals

  state, totals = asyncio.run(main())
  assert totals == [1.0, 2.0, 4.0]
  assert int(state[1]) == 3


def test_native_program_context_takes_clients_of_tensors():
  pair = build_process((np.float32, [2]), tf.reduce_sum)
  tff.framework.set_default_context(tff.program.NativeFederatedContext(
      execution.AsyncInProcessContext()))

  async def main():
    _, total = pair.next(pair.initialize(), [np.ones(2, np.float32)] * 3)
    return await tff.program.materialize_value(total)

  assert asyncio.run(main()) == 6.0


def test_one_async_context_serves_several_event_loops(scalar_process):
  context = execution.AsyncInProcessContext()
  state = execution.InProcessContext().invoke(scalar_process.initialize, None)

  async def main():
    rounds = [
        context.invoke(scalar_process.next, (state, [np.float32(value)]))
        for value in (1, 2, 3)
    ]
    return [total for _, total in await asyncio.gather(*rounds)]

  assert asyncio.run(main()) == asyncio.run(main())


@tff.tensorflow.computation(np.int32, STATE)
def pass_value(value, unused_state):
  return value


def _secure_process(secure_sum):
  @tff.federated_computation(
      AT_SERVER, tff.FederatedType(np.int32, tff.CLIENTS))
  def next_fn(state, values):
    values = tff.federated_map(
        pass_value, (values, tff.federated_broadcast(state)))
    return state, secure_sum(values)

  return tff.templates.IterativeProcess(initialize, next_fn)


@pytest.mark.parametrize('secure_sum, largest', [
    (lambda v: tff.federated_secure_sum_bitwidth(v, 4), 15),
    (lambda v: tff.federated_secure_sum(v, 9), 9),
])
def test_secure_sums_check_their_range(context, secure_sum, largest):
  process = _secure_process(secure_sum)
  state = process.initialize()
  _, total = process.next(state, [largest, largest, 1])
  assert total == 2 * largest + 1
  for bad in (largest + 1, -1):
    with pytest.raises(ValueError, match='secure sum'):
      process.next(state, [1, bad, 1])


def test_secure_modular_sum_wraps(context):
  process = _secure_process(
      lambda v: tff.backends.mapreduce.federated_secure_modular_sum(v, 8))
  assert process.next(process.initialize(), [7, 7, 3])[1] == 1
