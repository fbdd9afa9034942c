"""The graph of one round, from the parts of a MapReduceForm.

TFF takes `next` apart into plain graphs. A round joins them:

    broadcast     = prepare(state)
    for each device:
      partial     = zero
      for each of its clients, in order:
        partial   = accumulate(partial, work(client, broadcast))
    total         = merge(partials), in the order of the devices
    state, output = update(state, report(total))

All of that is one `tf.function`. The clients are a loop whose variables are the
partial sums, so the graph does not grow with the cohort, and sums are made in
the order of the clients: equal seeds give equal bits on one device. TFF's
secure sums go beside the accumulator, as plain sums (`SecureSums`).
"""

from typing import Any, NamedTuple, Optional, Sequence

import numpy as np
import tensorflow as tf

from tff_localupdate.execution import devices as devices_lib
from tff_localupdate.execution import forms
from tff_localupdate.execution import values

_CONVOLUTIONS = frozenset((
    'Conv2D', 'Conv3D', 'DepthwiseConv2dNative', 'Conv2DBackpropInput',
    'Conv2DBackpropFilter', 'FusedConv2D',
))
# From here on two cores gain more than a program for each client costs.
_MANY_WEIGHTS = 100_000


class RoundResult(NamedTuple):
  """What one call of the fused round gives.

  Attributes:
    server: Leaves of the new state, then those of the server's output.
    probes: One tensor of client work for each device used.
    in_range: Whether all inputs of secure sums were in range; None without any.
  """

  server: list[tf.Tensor]
  probes: list[tf.Tensor]
  in_range: Optional[tf.Tensor]


class Partial(NamedTuple):
  """Sums over some clients: TFF's accumulator, secure sums, range check."""

  plain: list[tf.Tensor]
  secure: list[tf.Tensor]
  in_range: tf.Tensor


class RoundGraph:
  """The imported parts of a MapReduceForm and the graph that joins them.

  Attributes:
    convolves: Whether client work convolves, which XLA does slowly on a CPU.
    is_heavy: Whether the work of a client takes far longer than starting a
      program: by large weights, or loops inside its own (recurrent models).
    draws: Names of operations that draw random numbers from outside the state:
      rounds with any do not repeat.
    needs_host: Whether client work contains what XLA cannot compile (data sets,
      variables, tables) or would leave out (assertions).
    has_state: Whether a part has variables or tables, so that two calls of it
      must not overlap.
  """

  def __init__(self, form: Any, devices: Sequence[str]):
    self._devices = tuple(devices)
    self._form = form
    self._prepare = forms.ImportedFunction(form.prepare)
    # One import a device, since devices work at the same time: graphs with
    # variables may not share them.
    self._work = [forms.ImportedFunction(form.work) for _ in self._devices]
    self._own_work = {}
    self._zero = forms.ImportedFunction(form.zero)
    self._accumulate = forms.ImportedFunction(form.accumulate)
    self._merge = forms.ImportedFunction(form.merge)
    self._report = forms.ImportedFunction(form.report)
    self._update = forms.ImportedFunction(form.update)
    self._secure = SecureSums(form)
    parts = (self._prepare, self._work[0], self._accumulate, self._merge,
             self._report, self._update)
    self.draws = sorted(frozenset().union(*(part.draws for part in parts)))
    self._num_server = len(self._prepare.parameter_types)
    self._num_results = len(self._update.result_types)
    ops = self._work[0].op_types
    self.convolves = bool(ops & _CONVOLUTIONS)
    self.is_heavy = (
        self._work[0].loop_depth > 1
        or values.num_elements(self._prepare.result_types) >= _MANY_WEIGHTS
    )
    self.needs_host = self._work[0].has_state or any(
        op == 'Assert' or 'Dataset' in op or 'Iterator' in op for op in ops
    )
    self.has_state = any(part.has_state for part in (*parts, self._zero))

  def build(
      self, size: int, *, jit: bool, clients: str, stacked: bool = True
  ) -> Any:
    """Returns an untraced `tf.function` of (state leaves, cohort leaves).

    If `jit`, XLA compiles all of it, or, if `clients` is 'parallel', each
    client's work by itself; for `stacked` see `CompiledRound`.
    """
    shards = _shards(size, len(self._devices))
    parallel = clients == 'parallel' and stacked and not self._work[0].has_state
    # What XLA compiles depends on what shall overlap. Inside a program of XLA
    # nothing does, so parallel clients get a program each, in a loop of
    # TensorFlow's. A program belongs to one device, so several devices get one
    # each for all their clients. Else the whole round is one program.
    unit = None
    if jit:
      several = len(self._devices) > 1
      unit = 'client' if parallel else 'device' if several else 'round'

    def fused(*leaves):
      state = list(leaves[: self._num_server])
      cohort = list(leaves[self._num_server :])
      with tf.device(self._devices[0]):
        broadcast = self._prepare(state)
      partials = [
          self._shard(shard, broadcast, cohort, stacked, parallel, unit)
          for shard in shards
      ]
      with tf.device(self._devices[0]):
        total = self._total(partials)
        server = self._update(state + self._global_update(total))
      probes = [
          self._probe(index, partial)
          for (index, *_), partial in zip(shards, partials)
      ]
      in_range = [total.in_range] if self._secure.used else []
      return server + in_range + probes

    return tf.function(
        fused, jit_compile=True if unit == 'round' else None, autograph=False
    )

  def unpack(self, results: Sequence[tf.Tensor]) -> RoundResult:
    """Names the parts of the flat result of a built function."""
    results = list(results)
    rest = results[self._num_results :]
    in_range = rest.pop(0) if self._secure.used else None
    return RoundResult(results[: self._num_results], rest, in_range)

  def _part(self, cohort, first, last, stacked):
    """Leaves of the clients [first, last); see `build` of `stacked`."""
    if stacked:
      return [leaf[first:last] for leaf in cohort]
    width = len(self._work[0].parameter_types) - len(self._prepare.result_types)
    return cohort[first * width : last * width]

  # Results of client work and sums travel through graphs as flat lists;
  # `Partial` is what they are made of, `_flat` and `_unflat` lead from one to
  # the other.

  def _shard(self, shard, broadcast, cohort, stacked, parallel, unit):
    """Client work and partial sums of one device's clients."""
    index, first, last = shard
    part = self._part(cohort, first, last, stacked)

    def run(*leaves):
      # As arguments and not captured, so that each device has its own copies.
      shared = list(leaves[: len(broadcast)])
      own = list(leaves[len(broadcast) :])
      if not stacked:
        return self._flat(self._run_unrolled(index, shared, own, last - first))
      work = self._work[index]
      if unit == 'client':
        work = work.compiled()
      return self._flat(
          self._run_stacked(work, shared, own, last - first, parallel)
      )

    if unit == 'device':
      run = tf.function(run, jit_compile=True, autograph=False)
    with tf.device(self._devices[index]):
      here = [tf.identity(leaf) for leaf in broadcast]
      return self._unflat(run(*here, *part))

  def _probe(self, index, partial):
    """A tensor that tells where it was computed: on a GPU no integer does."""
    leaves = self._flat(partial)
    leaf = next((x for x in leaves if x.dtype.is_floating), leaves[0])
    with tf.device(self._devices[index]):
      return tf.identity(leaf)

  def _start(self):
    return Partial(self._zero([]), self._secure.zeros(), tf.constant(True))

  def _run_unrolled(self, index, broadcast, cohort, size):
    # Leaves that differ in shape cannot be stacked, so there is nothing to
    # index: the graph has the work of each client by itself.
    partial, width = self._start(), len(cohort) // size
    for i in range(size):
      client = cohort[i * width : (i + 1) * width]
      partial = self._add(partial, self._work_of(index, i)(client + broadcast))
    return partial

  def _work_of(self, index, client):
    """An import for each client, if it has variables: clients may overlap."""
    work = self._work[index]
    if not work.has_state or not client:
      return work
    key = index, client
    if key not in self._own_work:
      self._own_work[key] = forms.ImportedFunction(self._form.work)
    return self._own_work[key]

  def _run_stacked(self, work, broadcast, cohort, size, parallel):
    def body(i, *flat):
      # Not leaf[i], which XLA turns into a padded copy of the whole cohort.
      client = work([_row(leaf, i) for leaf in cohort] + broadcast)
      return i + 1, *self._flat(self._add(self._unflat(flat), client))

    # Only the sum depends on the iteration before, client work does not. So
    # where iterations may overlap (TensorFlow starts one as soon as its inputs
    # are there), clients run beside each other and are still added in order.
    start = (tf.constant(0), *self._flat(self._start()))
    results = tf.while_loop(
        lambda i, *_: i < size, body, start,
        shape_invariants=self._sum_shapes(start),
        parallel_iterations=devices_lib.core_count() if parallel else 1,
    )
    return self._unflat(results[1:])

  def _sum_shapes(self, start):
    """Shapes of the loop's values: an accumulator of type [None] may grow."""
    shapes = [value.shape for value in start]
    for i, result in enumerate(self._accumulate.result_types, 1):
      shapes[i] = values.leaf_spec(result).shape
    return tuple(shapes)

  def _add(self, partial, client):
    # Work gives what accumulate takes, then the inputs of the secure sums.
    num_plain = len(self._accumulate.parameter_types) - len(partial.plain)
    plain = self._accumulate(partial.plain + client[:num_plain])
    secure, in_range = self._secure.add(partial.secure, client[num_plain:])
    return Partial(plain, secure, tf.logical_and(partial.in_range, in_range))

  def _total(self, partials):
    """Merges the devices' partial sums in the order of the devices."""
    if not partials:
      return self._start()
    total = partials[0]
    for other in partials[1:]:
      total = Partial(
          self._merge(total.plain + other.plain),
          [a + b for a, b in zip(total.secure, other.secure)],
          tf.logical_and(total.in_range, other.in_range),
      )
    return total

  def _global_update(self, total):
    return self._report(total.plain) + self._secure.finish(total.secure)

  def _flat(self, partial):
    return [*partial.plain, *partial.secure, partial.in_range]

  def _unflat(self, leaves):
    leaves = list(leaves)
    split = len(self._zero.result_types)
    return Partial(leaves[:split], leaves[split:-1], leaves[-1])


def _row(leaf, index):
  if leaf.dtype == tf.variant:  # data sets: tf.gather has no kernel for them
    return leaf[index]
  return tf.gather(leaf, index)


def _shards(size, count):
  """(index, first, last): parts of a cohort as equal as can be, none empty."""
  bounds = [size * i // count for i in range(count + 1)]
  parts = enumerate(zip(bounds, bounds[1:]))
  return [(i, first, last) for i, (first, last) in parts if last > first]


class SecureSums:
  """TFF's secure sums, simulated as plain sums with their ranges checked.

  Nothing is encrypted: a simulation shows the numbers that secure aggregation
  would give, and refuses inputs that the protocol could not carry. Leaves come
  in the order of TFF's three kinds: sums of given bit width, of given largest
  input, and modulo a number. `used` says whether the process has any.
  """

  def __init__(self, form: Any):
    result = form.work.type_signature.result
    self._types = [values.leaf_types(result[i]) for i in (1, 2, 3)]
    self._limits = [
        forms.ImportedFunction(computation) for computation in (
            form.secure_sum_bitwidth, form.secure_sum_max_input,
            form.secure_modular_sum_modulus)
    ]
    self.used = any(self._types)

  def zeros(self) -> list[tf.Tensor]:
    """One zero per secure sum."""
    return [
        tf.zeros(leaf.shape, tf.as_dtype(np.dtype(leaf.dtype)))
        for leaves in self._types for leaf in leaves
    ]

  def add(
      self, sums: list[tf.Tensor], inputs: list[tf.Tensor]
  ) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Adds one client's inputs; says whether they kept their ranges."""
    # Checked are the first two kinds; any number is fine where one counts
    # modulo. The bounds are computations of the form, without arguments.
    added = [a + b for a, b in zip(sums, inputs)]
    if not self.used:
      return added, tf.constant(True)
    bits, maxima, _ = [limit([]) for limit in self._limits]
    num_bits = len(self._types[0])
    checks = [
        _within(value, tf.bitwise.left_shift(
            tf.constant(1, tf.int64), tf.cast(bit, tf.int64)) - 1)
        for value, bit in zip(inputs, bits)
    ] + [
        _within(value, tf.cast(maximum, tf.int64))
        for value, maximum in zip(inputs[num_bits:], maxima)
    ]
    return added, tf.reduce_all(tf.stack(checks + [tf.constant(True)]))

  def finish(self, sums: list[tf.Tensor]) -> list[tf.Tensor]:
    """Takes the modular sums by their modulus."""
    first = len(self._types[0]) + len(self._types[1])
    if len(sums) == first:
      return sums
    moduli = self._limits[2]([])
    return sums[:first] + [
        tf.math.floormod(total, tf.cast(modulus, total.dtype))
        for total, modulus in zip(sums[first:], moduli)
    ]


def _within(value, maximum):
  value = tf.cast(value, tf.int64)
  return tf.reduce_all((value >= 0) & (value <= maximum))
