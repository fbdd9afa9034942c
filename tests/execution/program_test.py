"""The fused round: options, choice of compiler, order of summation."""

import numpy as np
import pytest
import tensorflow as tf

from tests.execution.processes import build_matrix_process
from tests.execution.processes import build_process
from tests.execution.processes import CPU
from tff_localupdate import execution
from tff_localupdate.execution import round_graph


def test_auto_keeps_convolutions_off_xla_on_cpus():
  def convolve(image):
    kernel = tf.ones([2, 2, 1, 1])
    return tf.reduce_sum(tf.nn.conv2d(image[None, ..., None], kernel, 1,
                                      'SAME'))

  process = build_process((np.float32, [4, 4]), convolve)
  assert not execution.compile_process(process, devices=CPU).jit
  assert execution.compile_process(build_matrix_process(), devices=CPU).jit


def _nested_loops(vector):
  def outer(k, total):
    def inner(j, total):
      return j + 1, total + tf.reduce_sum(vector)

    return k + 1, tf.while_loop(lambda j, _: j < 2, inner, (0, total))[1]

  return tf.while_loop(lambda k, _: k < 3, outer, (0, 0.0))[1]


@pytest.mark.parametrize('client_fn, many_weights, expected', [
    (tf.reduce_sum, 3, 'loop'),
    (tf.reduce_sum, 2, 'parallel'),  # The state is two numbers.
    (_nested_loops, 3, 'parallel'),
])
def test_auto_runs_heavy_clients_in_parallel_programs(
    monkeypatch, client_fn, many_weights, expected):
  built = []
  build = round_graph.RoundGraph.build

  def spy(self, size, **kwargs):
    built.append((kwargs['jit'], kwargs['clients']))
    return build(self, size, **kwargs)

  monkeypatch.setattr(round_graph.RoundGraph, 'build', spy)
  monkeypatch.setattr(round_graph, '_MANY_WEIGHTS', many_weights)
  process = build_process((np.float32, [6]), client_fn)
  program_ = execution.compile_process(process, devices=CPU)
  vectors = np.arange(18, dtype=np.float32).reshape(3, 6)
  _, total = program_.next(program_.initialize(), vectors)
  assert built == [(True, expected)]
  assert total == 153 * (1 if client_fn is tf.reduce_sum else 6)


def test_auto_falls_back_where_xla_cannot_compile():
  def unsupported(value):
    return tf.strings.to_number(tf.strings.as_string(value))

  process = build_process(np.float32, unsupported)
  program_ = execution.compile_process(process, devices=CPU)
  _, total = program_.next(
      program_.initialize(), np.array([1.5, 2], np.float32))
  assert total == 3.5 and not program_.jit


@pytest.mark.parametrize('draw, warned', [
    (lambda: tf.random.normal([], seed=1), True),
    (lambda: tf.random.stateless_normal([], [1, 2]), False),
])
def test_draws_that_do_not_repeat_are_warned_of(caplog, draw, warned):
  process = build_process(np.float32, lambda value: value + draw())
  execution.compile_process(process, devices=CPU)
  assert ('its rounds repeat neither' in caplog.text) == warned
  assert ('RandomStandardNormal' in caplog.text) == warned


@pytest.mark.parametrize('jit', ['off', 'on'])
def test_parallel_clients_give_the_numbers_of_the_loop(jit):
  results = []
  for clients in ('loop', 'parallel'):
    program_ = execution.compile_process(
        build_matrix_process(), devices=CPU, jit=jit, clients=clients)
    values = np.random.default_rng(1).normal(size=(50, 6, 6))
    state = program_.initialize()
    for _ in range(5):
      state, total = program_.next(state, values.astype(np.float32) / 10)
    results.append((total, state.total.numpy()))
  if jit == 'off':
    assert results[0] == results[1]
  # XLA merges operations of a whole round otherwise than those of a client.
  np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_a_list_of_clients_is_no_cohort():
  # Two clients of two equal fields would pass for two stacked fields.
  pair = build_process((np.float32, np.float32), lambda v: v[0] - 2 * v[1])
  program_ = execution.compile_process(pair, devices=CPU)
  clients = [(np.float32(1), np.float32(2)), (np.float32(3), np.float32(5))]
  state = program_.initialize()
  with pytest.raises(TypeError, match='cohort: .* stacked .* a list of 2'):
    program_.next(state, clients)
  stacked = tuple(np.stack(field) for field in zip(*clients))
  assert program_.next(state, stacked)[1] == -10


def test_cohort_leaves_must_agree_about_their_size():
  pair = build_process((np.float32, np.float32), lambda v: v[0] + v[1])
  program_ = execution.compile_process(pair, devices=CPU)
  with pytest.raises(ValueError, match='leading axis'):
    program_.next(program_.initialize(),
                  (np.zeros(2, np.float32), np.zeros(3, np.float32)))
