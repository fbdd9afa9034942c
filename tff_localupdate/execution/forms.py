"""TFF computations as TensorFlow functions of this process.

A TFF computation is a proto that nothing here can run as it stands. But TFF
compiles an iterative process to a MapReduceForm (prepare, work, zero,
accumulate, merge, report, update), each part of which is one plain TensorFlow
graph with named inputs and outputs. This module alone reads the protos:

  1. `map_reduce_form` and `local_form` let TFF compile to plain graphs;
  2. `ImportedFunction` makes one graph a function of flat tensors;
  3. beneath it, functions that know nothing of TFF make names unique and import
     the part of a graph that is needed. Tensors are named `node:output`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import itertools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.execution import values

_LOOPS = ('While', 'StatelessWhile')
# Operations that draw from a stream of the process, also where it is seeded.
_DRAWS = frozenset((
    'Multinomial', 'ParameterizedTruncatedNormal', 'RandomGamma',
    'RandomPoissonV2', 'RandomShuffle', 'RandomStandardNormal',
    'RandomUniform', 'RandomUniformInt', 'TruncatedNormal',
))
_LARGE = 2 ** 20  # bytes
_import_numbers = itertools.count()


class UnsupportedComputationError(TypeError):
  """The computation has no MapReduceForm and no plain TensorFlow form."""


def plain_grappler() -> tf.compat.v1.ConfigProto:
  """TFF's optimization of graphs, switched off.

  It lowers While loops to control flow of TensorFlow 1 (Switch, Merge), which
  XLA and `tf.vectorized_map` refuse. Grappler runs again anyway where the
  imported graph does.
  """
  config = tf.compat.v1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  return config


def map_reduce_form(next_computation: Any) -> Any:
  """Returns the `tff.backends.mapreduce.MapReduceForm` of a `next`.

  Raises UnsupportedComputationError if TFF cannot bring it into that form.
  """
  try:
    return tff.backends.mapreduce.get_map_reduce_form_for_computation(
        next_computation, grappler_config=plain_grappler()
    )
  except (TypeError, ValueError, NotImplementedError) as error:
    raise _unsupported(
        next_computation,
        'it must take (server state, client data), broadcast once, aggregate '
        'once and return (server state, server output)', error,
    ) from error


def local_form(computation: Any) -> Any:
  """Plain TensorFlow form of a computation without clients.

  It has no placements, or is `() -> S@SERVER`. Raises
  UnsupportedComputationError if it is not made of TensorFlow blocks only.
  """
  proto = tff.framework.serialize_computation(computation)
  if proto.WhichOneof('computation') == 'tensorflow':
    return computation
  signature = computation.type_signature
  try:
    if isinstance(signature.result, tff.FederatedType):
      return tff.backends.mapreduce.get_state_initialization_computation(
          computation, grappler_config=plain_grappler()
      )
    block = tff.backends.mapreduce.consolidate_and_extract_local_processing(
        computation.to_building_block(), plain_grappler()
    )
  except (TypeError, ValueError, NotImplementedError) as error:
    raise _unsupported(computation, 'it must be TensorFlow logic only', error
                       ) from error
  return tff.framework.deserialize_computation(block.proto)


def _unsupported(computation, rule, error):
  return UnsupportedComputationError(
      f'This computation cannot run in-process: {rule}; its type is '
      f'{computation.type_signature.compact_representation()}. Run it in '
      "TFF's own context instead: "
      'tff.backends.native.set_sync_local_cpp_execution_context(). '
      f'TFF says: {error}'
  )


class ImportedFunction:
  """A TensorFlow computation of TFF, imported into this process.

  Calling it inside a `tf.function`, or eagerly, with the flat leaves of its
  parameter gives the flat leaves of its result. Each instance has its own
  function names and variables, so two may run at once.

  Attributes:
    parameter_types: TFF types of the leaves it takes.
    result_types: TFF types of the leaves it gives.
    op_types: Names of all TensorFlow operations in it and in its library.
    has_state: Whether it creates variables or tables while it runs.
    loop_depth: How deep its loops are nested; 0 without loops.
    draws: Names of those operations that draw random numbers from no seed that
      is passed in.
  """

  def __init__(self, computation: Any):
    proto = tff.framework.serialize_computation(computation).tensorflow
    graph_def = tf.compat.v1.GraphDef()
    proto.graph_def.Unpack(graph_def)
    signature = computation.type_signature
    self.parameter_types = values.leaf_types(signature.parameter)
    self.result_types = values.leaf_types(signature.result)
    self.op_types = frozenset(n.op for n in all_nodes(graph_def))
    self.has_state = bool(proto.initialize_op) or any(
        op in self.op_types for op in ('VarHandleOp', 'HashTableV2')
    )
    self.loop_depth = loop_depth(graph_def)
    self.draws = self.op_types & _DRAWS
    # The same proto may be imported twice, for two devices or two clients.
    make_names_unique(graph_def, f'_u{next(_import_numbers)}')
    names = [
        list(_tensor_names(part)) for part in (proto.parameter, proto.result)
    ]
    # Without variables only the part between inputs and outputs is imported.
    # With them all of it is: the initializer is not on the way to the outputs.
    self._initialize = None
    if proto.initialize_op:
      self._initialize, self._function = import_with_variables(
          graph_def, *names, proto.initialize_op
      )
    else:
      specs = map(values.leaf_spec, self.parameter_types)
      self._function = import_function(graph_def, *names, specs)

  def __call__(self, leaves: Sequence[Any]) -> list[tf.Tensor]:
    if self._initialize is not None:
      # In a graph of TensorFlow 1 nothing orders the initializer before what
      # reads the variables. As a call of its own it is stateful, so automatic
      # control dependencies run it before, not beside, the function below.
      self._initialize()
    if not self.result_types:
      return []
    return list(self._function(*leaves))

  def compiled(self) -> Callable[[Sequence[Any]], list[tf.Tensor]]:
    """The same call as a program of XLA of its own."""
    program = tf.function(
        lambda *leaves: self(leaves), jit_compile=True, autograph=False
    )
    return lambda leaves: list(program(*leaves))


def _tensor_names(binding):
  """Names of the tensors of a TFF binding, in the order of leaves."""
  kind = binding.WhichOneof('binding')
  if kind == 'tensor':
    yield binding.tensor.tensor_name
  elif kind == 'sequence':
    yield binding.sequence.variant_tensor_name
  elif kind == 'struct':
    for element in binding.struct.element:
      yield from _tensor_names(element)


# What a graph holds.


def all_nodes(graph_def: tf.compat.v1.GraphDef) -> Iterator[Any]:
  """Yields the nodes of the graph and of the functions of its library."""
  yield from graph_def.node
  for function in graph_def.library.function:
    yield from function.node_def


def loop_depth(graph_def: tf.compat.v1.GraphDef) -> int:
  """Depth of nested While operations, through all called functions."""
  # A call is a node named after the function, or one with the function as an
  # attribute (`body` of While, `then_branch` of If, ...). The depth of a node
  # is that of the functions it calls, and one more if it is a loop.
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


# Names, of which a process has one library.


def make_names_unique(graph_def: tf.compat.v1.GraphDef, suffix: str) -> None:
  """Renames library functions and named resources, in place, by a suffix.

  TensorFlow keeps one function library and one resource manager per process,
  and graphs that were traced separately reuse each other's names: without this,
  two imports would call each other's functions and share their variables.
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
  # A variable is looked up by its shared name; one without takes its node's.
  for node in all_nodes(graph_def):
    if 'shared_name' in node.attr:
      shared = node.attr['shared_name']
      shared.s = (shared.s or node.name.encode()) + suffix.encode()
    node.op = renamed.get(node.op, node.op)
    _rename_attributes(node.attr, renamed)


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


# Import.


def import_function(
    graph_def: tf.compat.v1.GraphDef,
    feeds: Sequence[str],
    fetches: Sequence[str],
    specs: Iterable[tf.TensorSpec],
) -> Callable[..., list[tf.Tensor]]:
  """Returns the function from feeds to fetches, of what these need alone.

  Takes a sixth of the time of importing all and pruning that. The graph, which
  is changed, has no variables; the feeds, with `specs`, are outputs of
  placeholders.
  """
  # A fetch that is fed goes straight through: its placeholder is not imported.
  # Nor can a feed be mapped that no imported node reads.
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

  The two share the variables of one graph; see `import_function`.
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
  """Returns what imports the graph, once, and then lets go of it."""
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
  """Returns the nodes that the fetches need, and the feeds that these read."""
  # A walk back from the fetches, which stops at what is fed. An input is
  # 'node:output', 'node' for output 0, or '^node' for one that is only waited
  # for.
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
    # What is fed is there already, so nothing has to wait for it.
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
  """Drops requests to share the device of a node that is not kept."""
  requests = node.attr['_class'].list.s if '_class' in node.attr else ()
  requests = [r for r in requests if r.decode().removeprefix('loc:@') in kept]
  node.attr.pop('_class', None)
  if requests:
    node.attr['_class'].list.s.extend(requests)


def _node_name(tensor_name):
  return tensor_name.lstrip('^').partition(':')[0]


def _take_out_large_constants(graph_def):
  """Turns large constants into inputs; returns functions that give these.

  TensorFlow keeps about ten copies of what is in a graph that it runs, mostly
  the weights of a model; a captured tensor is one.
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
  """Returns a function that puts the array into the graph being built.

  Arrays of equal numbers, such as new weights, become a fill; told by their
  bytes, so that -0 is not 0 and NaN is itself.
  """
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
