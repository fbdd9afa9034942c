"""Functions of plain TensorFlow graphs."""

import tensorflow as tf

from tff_localupdate.execution import forms


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
