"""Graphs of TensorFlow as protos: what they hold, and functions made of them.

Knows nothing of TFF. Tensors are named as in graphs, `node:output`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

_LOOPS = ('While', 'StatelessWhile')
_LARGE = 2 ** 20  # bytes


def all_nodes(graph_def: tf.compat.v1.GraphDef) -> Iterator[Any]:
  """Yields the nodes of the graph and of the functions of its library."""
  yield from graph_def.node
  for function in graph_def.library.function:
    yield from function.node_def


def loop_depth(graph_def: tf.compat.v1.GraphDef) -> int:
  """Depth of nested While operations, through all called functions."""
  functions = {f.signature.name: f.node_def for f in graph_def.library.function}
  known = {}

  def depth_of(name):
    if name not in known:
      known[name] = 0  # a function that calls itself adds no loop
      known[name] = depth(functions.get(name, ()))
    return known[name]

  def depth(nodes):
    deepest = 0
    for node in nodes:
      called = [a.func.name for a in node.attr.values() if a.HasField('func')]
      inside = max(map(depth_of, called + [node.op]), default=0)
      deepest = max(deepest, inside + (node.op in _LOOPS))
    return deepest

  return depth(graph_def.node)


def make_names_unique(graph_def: tf.compat.v1.GraphDef, suffix: str) -> None:
  """Renames library functions and named resources, in place.

  TensorFlow keeps one function library and one resource manager per process;
  graphs that were traced separately reuse each other's names.

  Args:
    graph_def: The graph.
    suffix: Goes behind each name.
  """
  renamed = {
      f.signature.name: f.signature.name + suffix
      for f in graph_def.library.function
  }
  for function in graph_def.library.function:
    function.signature.name = renamed[function.signature.name]
    _rename_attributes(function.attr, renamed)
  for gradient in graph_def.library.gradient:
    name, rule = gradient.function_name, gradient.gradient_func
    gradient.function_name = renamed.get(name, name)
    gradient.gradient_func = renamed.get(rule, rule)
  for node in all_nodes(graph_def):
    if 'shared_name' in node.attr:
      shared = node.attr['shared_name']
      shared.s = (shared.s or node.name.encode()) + suffix.encode()
    node.op = renamed.get(node.op, node.op)
    _rename_attributes(node.attr, renamed)


def import_function(
    graph_def: tf.compat.v1.GraphDef,
    feeds: Sequence[str],
    fetches: Sequence[str],
    specs: Iterable[tf.TensorSpec],
) -> Callable[..., list[tf.Tensor]]:
  """Returns the function from feeds to fetches, of what these need alone.

  Takes a sixth of the time of importing all and pruning that.

  Args:
    graph_def: The graph; is changed. Has no variables.
    feeds: Names of the tensors that are given, outputs of placeholders.
    fetches: Names of those wanted.
    specs: Those of the feeds.
  """
  computed = [name for name in fetches if name not in feeds]
  needed, read = _part_between(graph_def, feeds, computed)
  import_graph = _importer(needed, computed)

  def call(*leaves):
    fed = dict(zip(feeds, leaves))
    found = import_graph({n: leaf for n, leaf in fed.items() if n in read})
    fed.update(zip(computed, found))
    return [fed[name] for name in fetches]

  return tf.compat.v1.wrap_function(call, list(specs))


def import_with_variables(
    graph_def: tf.compat.v1.GraphDef,
    feeds: Sequence[str],
    fetches: Sequence[str],
    initialize_op: str,
) -> tuple[Callable[[], Any], Callable[..., list[tf.Tensor]]]:
  """Returns the graph's initializer, and the function from feeds to fetches.

  The two share the variables of one graph.

  Args:
    graph_def: The graph; is changed.
    feeds: Names of the tensors that are given.
    fetches: Names of those wanted.
    initialize_op: Name of the operation that initializes the variables.
  """
  import_graph = _importer(graph_def, ())
  wrapped = tf.compat.v1.wrap_function(lambda: import_graph({}), [])
  graph = wrapped.graph
  initialize = wrapped.prune([], [graph.get_operation_by_name(initialize_op)])
  return initialize, wrapped.prune(
      [graph.get_tensor_by_name(name) for name in feeds],
      [graph.get_tensor_by_name(name) for name in fetches],
  )


def _importer(graph_def, fetches):
  """Returns a function that imports the graph, once, and then lets go of it.

  TensorFlow keeps the function, and so would keep the graph a second time.
  """
  given = [(graph_def, _take_out_large_constants(graph_def))]

  def import_graph(fed):
    graph_def, constants = given.pop()
    return tf.graph_util.import_graph_def(
        graph_def,
        input_map={**fed, **{n: give() for n, give in constants.items()}},
        return_elements=list(fetches),
        name='',
    )

  return import_graph


def _part_between(graph_def, feeds, fetches):
  """Returns the nodes that the fetches need, and the feeds that these read.

  Feeds are the outputs of placeholders, which are left out.
  """
  fed = {_node_name(name) for name in feeds}
  waits = {f'^{name}' for name in fed}
  nodes = {node.name: node for node in graph_def.node}
  needed, read = set(), set()
  ahead = [_node_name(name) for name in fetches]
  while ahead:
    name = ahead.pop()
    if name in needed or name in fed:
      continue
    needed.add(name)
    node = nodes[name]
    # To wait for an input means nothing.
    inputs = [input_ for input_ in node.input if input_ not in waits]
    node.ClearField('input')
    node.input.extend(inputs)
    read.update(i if ':' in i else f'{i}:0' for i in inputs)
    ahead.extend(_node_name(input_) for input_ in inputs)
  part = tf.compat.v1.GraphDef(
      library=graph_def.library, versions=graph_def.versions
  )
  part.node.extend(node for node in graph_def.node if node.name in needed)
  for node in part.node:
    _forget_lost_neighbours(node, needed)
  return part, read


def _forget_lost_neighbours(node, kept):
  """Drops wishes to be on the device of a node that is not kept."""
  wishes = node.attr['_class'].list.s if '_class' in node.attr else ()
  wishes = [w for w in wishes if w.decode().removeprefix('loc:@') in kept]
  node.attr.pop('_class', None)
  if wishes:
    node.attr['_class'].list.s.extend(wishes)


def _node_name(tensor_name):
  return tensor_name.lstrip('^').partition(':')[0]


def _take_out_large_constants(graph_def):
  """Turns large constants into inputs; returns functions that give these.

  TensorFlow keeps about ten copies of what is in a graph that it runs, which
  for the weights of a model is most of the memory; a captured tensor is one.
  One number throughout, of which the graph may hold no more, counts as much.
  """
  given = {}
  for node in graph_def.node:
    if node.op != 'Const' or _num_bytes(node.attr['value'].tensor) < _LARGE:
      continue
    array = tf.make_ndarray(node.attr['value'].tensor)
    # No operation of a graph has this name, so that all keep theirs.
    name = f'large_constant_{len(given)}_of_import'
    given[f'{name}:0'] = _giving(array, name)
    node.op = 'Identity'
    node.input.insert(0, name)
    node.ClearField('attr')
    node.attr['T'].type = tf.as_dtype(array.dtype).as_datatype_enum
  return given


def _giving(array, name):
  """Returns a function that puts the array into the graph being built."""
  first = array.reshape(-1)[:1]
  if (array.reshape(-1, 1).view('uint8') == first.view('uint8')).all():
    number = tf.constant(first[0])
    return lambda: tf.fill(array.shape, number, name)
  value = tf.constant(array)
  return lambda: tf.identity(value, name)


def _num_bytes(tensor_proto):
  """Bytes of the tensor; 0 of one whose elements differ in size."""
  dtype = tf.as_dtype(tensor_proto.dtype)
  if dtype in (tf.string, tf.variant, tf.resource):
    return 0
  shape = tf.TensorShape(tensor_proto.tensor_shape)
  return shape.num_elements() * dtype.size


def _rename_attributes(attributes, renamed):
  for value in attributes.values():
    kind = value.WhichOneof('value')
    if kind == 'func':
      _rename_function(value.func, renamed)
    elif kind == 'list':
      for function in value.list.func:
        _rename_function(function, renamed)
    elif kind == 's':  # forward and backward function names are plain text
      name = value.s.decode('utf-8', 'ignore')
      value.s = renamed[name].encode() if name in renamed else value.s


def _rename_function(function, renamed):
  function.name = renamed.get(function.name, function.name)
  _rename_attributes(function.attr, renamed)
