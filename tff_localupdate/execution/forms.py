"""TFF computations as TensorFlow functions of this process.

TFF compiles an iterative process to the plain TensorFlow graphs of a
MapReduceForm (prepare, work, zero, accumulate, merge, report, update). This
module is the only one that reads their protos; it imports the graphs into the
Python process, where they run on whatever devices TensorFlow has.
"""

from collections.abc import Callable
import itertools
from typing import Any, Sequence

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate.execution import graph_defs
from tff_localupdate.execution import values

_import_numbers = itertools.count()
# Operations that draw from a stream of the process, also where it is seeded.
_DRAWS = frozenset((
    'Multinomial', 'ParameterizedTruncatedNormal', 'RandomGamma',
    'RandomPoissonV2', 'RandomShuffle', 'RandomStandardNormal',
    'RandomUniform', 'RandomUniformInt', 'TruncatedNormal',
))


class UnsupportedComputationError(TypeError):
  """The computation has no MapReduceForm and no plain TensorFlow form."""


def plain_grappler() -> tf.compat.v1.ConfigProto:
  """Keeps While loops functional: XLA and vectorized_map need them so."""
  config = tf.compat.v1.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  return config


def map_reduce_form(next_computation: Any) -> Any:
  """Returns the `tff.backends.mapreduce.MapReduceForm` of `next`.

  Args:
    next_computation: `(S@SERVER, D@CLIENTS) -> (S@SERVER, M@SERVER)`.

  Raises:
    UnsupportedComputationError: If TFF cannot bring it into that form.
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
  """Plain TensorFlow form of a computation without client placement.

  Args:
    computation: One without placements, or `() -> S@SERVER`.

  Raises:
    UnsupportedComputationError: If it is not made of TensorFlow blocks only.
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
  function names and its own variables, so two instances may run at once.

  Attributes:
    parameter_types: TFF types of the leaves it takes.
    result_types: TFF types of the leaves it gives.
    op_types: Names of all TensorFlow operations in it and in its library.
    has_state: Whether it creates variables or tables while it runs.
    loop_depth: How deep its loops are nested; 0 without loops.
    draws: Names of those operations that draw random numbers of their own, from
      no seed that is passed in.
  """

  def __init__(self, computation: Any):
    proto = tff.framework.serialize_computation(computation).tensorflow
    graph_def = tf.compat.v1.GraphDef()
    proto.graph_def.Unpack(graph_def)
    signature = computation.type_signature
    self.parameter_types = values.leaf_types(signature.parameter)
    self.result_types = values.leaf_types(signature.result)
    self.op_types = frozenset(n.op for n in graph_defs.all_nodes(graph_def))
    self.has_state = bool(proto.initialize_op) or any(
        op in self.op_types for op in ('VarHandleOp', 'HashTableV2')
    )
    self.loop_depth = graph_defs.loop_depth(graph_def)
    self.draws = self.op_types & _DRAWS
    graph_defs.make_names_unique(graph_def, f'_u{next(_import_numbers)}')
    names = [
        list(_tensor_names(part)) for part in (proto.parameter, proto.result)
    ]
    self._initialize = None
    if proto.initialize_op:
      self._initialize, self._function = graph_defs.import_with_variables(
          graph_def, *names, proto.initialize_op
      )
    else:
      specs = map(values.leaf_spec, self.parameter_types)
      self._function = graph_defs.import_function(graph_def, *names, specs)

  def __call__(self, leaves: Sequence[Any]) -> list[tf.Tensor]:
    if self._initialize is not None:
      # The pruned call is stateful, so automatic control dependencies run it
      # before, not beside, the function below.
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
