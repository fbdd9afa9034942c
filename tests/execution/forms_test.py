"""Imported graphs: their names, their variables, and what is left out."""

import gc
import sys

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.execution import forms


def _call(imported, *leaves):
  traced = tf.function(lambda *args: imported(args), autograph=False)
  return [value.numpy() for value in traced(*map(tf.constant, leaves))]


def test_library_functions_of_two_imports_do_not_mix():
  def build(factor):
    @tf.function
    def same_name(x):
      return factor * x

    @tff.tensorflow.computation(np.float32)
    def computation(x):
      return same_name(x)

    return forms.ImportedFunction(computation)

  two, five = build(2.0), build(5.0)
  assert _call(two, 3.0) == [6.0]
  assert _call(five, 3.0) == [15.0]
  assert _call(two, 1.0) == [2.0]


def _counter():
  @tff.tensorflow.computation(np.float32)
  def computation(x):
    variable = tf.Variable(10.0, name='counter')
    with tf.control_dependencies([variable.assign_add(x)]):
      return variable.read_value()

  return computation


def test_variables_are_initialized_before_each_call():
  imported = forms.ImportedFunction(_counter())
  assert imported.has_state
  assert [_call(imported, 2.0), _call(imported, 3.0)] == [[12.0], [13.0]]


def test_variables_of_two_imports_are_two():
  computation = _counter()
  first = forms.ImportedFunction(computation)
  second = forms.ImportedFunction(computation)
  both = tf.function(lambda a, b: first([a]) + second([b]), autograph=False)
  assert [v.numpy() for v in both(tf.constant(1.0), tf.constant(2.0))] == [
      11.0, 12.0]


def test_operations_inside_functions_and_branches_are_seen():
  @tff.tensorflow.computation(np.float32)
  def computation(x):
    return tf.cond(
        x > 0, lambda: tf.reduce_sum(tf.nn.conv2d(
            tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), 1, 'VALID')),
        lambda: x)

  imported = forms.ImportedFunction(computation)
  assert 'Conv2D' in imported.op_types and not imported.has_state
  assert _call(imported, 1.0) == [16.0] and _call(imported, -1.0) == [-1.0]


def test_while_loops_stay_functional():
  @tff.tensorflow.computation(np.float32)
  def computation(x):
    return tf.while_loop(lambda y: y < 100, lambda y: [2 * y], [x])[0]

  imported = forms.ImportedFunction(computation)
  assert imported.op_types & {'While', 'StatelessWhile'}
  assert 'Switch' not in imported.op_types
  assert imported.loop_depth == 1
  assert _call(imported, 3.0) == [192.0]


def test_loops_in_functions_in_loops_are_counted():
  @tf.function
  def inner(y):
    return tf.while_loop(lambda z: z < 10, lambda z: [z + 3], [y])[0]

  @tff.tensorflow.computation(np.float32)
  def computation(x):
    return tf.while_loop(lambda y: y < 50, lambda y: [4 * inner(y)], [x])[0]

  imported = forms.ImportedFunction(computation)
  assert imported.loop_depth == 2
  assert _call(imported, 3.0) == [192.0]  # 3 -> 12 -> 48; 48 -> 192


def test_a_computation_without_leaves_gives_none():
  @tff.tensorflow.computation
  def nothing():
    return ()

  assert forms.ImportedFunction(nothing)([]) == []


def test_what_results_do_not_need_is_not_run():
  @tff.tensorflow.computation(np.float32)
  def computation(x):
    tf.debugging.assert_less(x, 1.0)
    with tf.control_dependencies([tf.debugging.assert_less(x, 10.0)]):
      return x + 1.0

  imported = forms.ImportedFunction(computation)
  assert _call(imported, 2.0) == [3.0]  # as TFF's own executors do
  with pytest.raises(tf.errors.InvalidArgumentError):
    _call(imported, 20.0)


def test_large_constants_stay_out_of_the_graph():
  table = np.arange(2 ** 19, dtype=np.float32)  # 2 MiB

  @tff.tensorflow.computation(np.int32)
  def computation(i):
    kept = tf.constant(table)
    return tf.gather(kept, i), kept, tf.constant(3.0)  # each an Identity

  imported = forms.ImportedFunction(computation)
  element, whole, three = _call(imported, 7)
  np.testing.assert_array_equal(whole, table)
  assert (element, three) == (7.0, 3.0)
  function = tf.function(lambda: imported([tf.constant(7)]))
  graph = function.get_concrete_function().graph.as_graph_def()
  assert graph.ByteSize() < 2 ** 16


@pytest.mark.parametrize('number', [0.0, -0.0, np.nan, 3, True])
def test_large_constants_of_one_number_stay_out_of_the_graph(number):
  # The graph holds one number, but whoever runs it all of the tensor.
  @tff.tensorflow.computation
  def computation():
    return tf.constant(number, shape=[2 ** 20])

  imported = forms.ImportedFunction(computation)
  (found,) = _call(imported)
  expected = np.full([2 ** 20], number, found.dtype)
  assert found.tobytes() == expected.tobytes()
  graph = imported._function.graph  # pylint: disable=protected-access
  assert not [
      op for op in graph.get_operations()
      if op.type == 'Const' and op.outputs[0].shape.num_elements() > 1
  ]


def test_graph_is_let_go_of_once_it_is_imported(monkeypatch):
  @tff.tensorflow.computation
  def computation():
    return tf.constant(np.arange(2 ** 19))

  kept = []
  import_graph_def = tf.graph_util.import_graph_def

  def import_(graph_def, **kwargs):
    kept.append(graph_def)
    return import_graph_def(graph_def, **kwargs)

  monkeypatch.setattr(tf.graph_util, 'import_graph_def', import_)
  imported = forms.ImportedFunction(computation)
  gc.collect()
  references = sys.getrefcount(kept[0])
  assert references == 2  # The list and the argument, nothing else.
  np.testing.assert_array_equal(_call(imported)[0], np.arange(2 ** 19))


def _graph(build):
  with tf.Graph().as_default() as graph:
    build()
  return graph.as_graph_def()


def _placeholder(name):
  return tf.compat.v1.placeholder(tf.float32, [], name)


def _specs(number):
  return [tf.TensorSpec([], tf.float32)] * number


def test_leaves_may_pass_through_be_waited_for_or_not_be_read():
  def build():
    x, waited_for = _placeholder('x'), _placeholder('waited_for')
    _placeholder('unread')
    with tf.control_dependencies([waited_for]):
      tf.add(x, x, name='sum')
    tf.math.divide(x, 0.0, name='not_needed')

  function = forms.import_function(
      _graph(build), ['unread:0', 'x:0', 'waited_for:0'],
      ['sum:0', 'x:0', 'sum:0'], _specs(3),
  )
  found = function(*map(tf.constant, (1.0, 3.0, 5.0)))
  assert [value.numpy() for value in found] == [6.0, 3.0, 6.0]
  names = {op.name for op in function.graph.get_operations()}
  assert 'sum' in names and not names & {'x', 'unread', 'not_needed'}


def test_wishes_for_the_device_of_an_input_are_dropped():
  def build():
    x = _placeholder('x')
    with tf.compat.v1.colocate_with(x):
      double = tf.add(x, x, name='double')
    with tf.compat.v1.colocate_with(double):
      tf.add(double, x, name='triple')

  graph_def = _graph(build)
  wishes = {n.name: list(n.attr['_class'].list.s) for n in graph_def.node}
  assert (wishes['double'], wishes['triple']) == ([b'loc:@x'], [b'loc:@x'])
  graph_def.node[-1].attr['_class'].list.s.append(b'loc:@double')
  function = forms.import_function(
      graph_def, ['x:0'], ['triple:0'], _specs(1)
  )
  assert function(tf.constant(2.0))[0].numpy() == 6.0
  triple = function.graph.get_operation_by_name('triple')
  assert triple.colocation_groups() == [b'loc:@double']


def test_variables_are_initialized_by_the_initializer_alone():
  def build():
    variable = tf.compat.v1.Variable(2.0, use_resource=True)
    tf.group(variable.initializer, name='start')
    tf.multiply(variable, _placeholder('x'), name='product')
    # Not in the same call, which would be a race.
    tf.identity(variable.assign_add(1.0), name='more')

  initialize, product = forms.import_with_variables(
      _graph(build), ['x:0'], ['product:0'], 'start'
  )
  for _ in range(2):
    initialize()
    assert product(tf.constant(3.0))[0].numpy() == 6.0


def test_names_of_the_library_get_the_suffix_everywhere():
  @tf.function
  def double(x):
    return 2.0 * x

  def build():
    tf.identity(double(_placeholder('x')), name='result')

  graph_def = _graph(build)
  before = [f.signature.name for f in graph_def.library.function]
  forms.make_names_unique(graph_def, '_new')
  after = [f.signature.name for f in graph_def.library.function]
  assert before and after == [f'{name}_new' for name in before]
  function = forms.import_function(
      graph_def, ['x:0'], ['result:0'], _specs(1)
  )
  assert function(tf.constant(3.0))[0].numpy() == 6.0


def test_loops_and_nodes_of_functions_count():
  def inner(z):
    return tf.while_loop(lambda z: z < 5.0, lambda z: [tf.sqrt(z) + 3.0], [z])

  @tf.function(input_signature=_specs(1))
  def outer(y):
    return tf.while_loop(lambda y: y < 10.0, lambda y: [inner(y)[0] + 1.0], [y])

  graph_def = outer.get_concrete_function().graph.as_graph_def()
  assert forms.loop_depth(graph_def) == 2
  ops = {node.op for node in forms.all_nodes(graph_def)}
  assert 'Sqrt' in ops and 'Sqrt' not in {n.op for n in graph_def.node}
