"""Quantized messages in TFF: the mean over clients, and a broadcast."""

from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.compression import codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds


class QuantizedMeanState(NamedTuple):
  """The factory's seed, and the number of aggregations done; both int64."""

  seed: Any
  round_num: Any


class QuantizedMeanMeasurements(NamedTuple):
  """What is measured in one aggregation.

  Attributes:
    uplink_bits: float64, the bits that a client sent, mean over the clients.
    total_uplink_bits: int64, the bits that all clients sent together. No
      aggregator knows which are empty in LocalUpdate: their zeros count.
    clients_not_sent: int32, the number of clients for whose value there is no
      message; see `messages.Transmission`.
  """

  uplink_bits: Any
  total_uplink_bits: Any
  clients_not_sent: Any


class QuantizedMeanFactory(tff.aggregators.UnweightedAggregationFactory):
  """Mean over the clients of their quantized values.

  In round t with clients 1, ..., M, client m with value v_m (all tensors of the
  value in one vector of d entries):

      q_m    = Q(v_m, resolution)
      result = (1/M) sum_m q_m

  Q is unbiased, and so is the result. `next` of the created process has the
  type

      (<S@SERVER, {V}@CLIENTS> -> <state=S@SERVER, result=V@SERVER,
                                   measurements=R@SERVER>)

  with S a `QuantizedMeanState`, R a `QuantizedMeanMeasurements`, and V any
  structure of tensors of fixed shapes and one dtype, float32 or float64.

  An aggregator is not told which client a value is of. So the rounding of a
  client is drawn from (seed, t, digest of v_m): anew in each round, and
  independently for values that differ in any bit, so that the variance of the
  rounding of the result falls as 1/M. **Clients with equal values share their
  draws**, and round alike.

  Where that will not do, clients carry seeds of their own: then V is replaced
  by a structure of three, (value, seed, is_used), as of LocalUpdate with
  `seeds_clients`. Client m draws from (seed, t, its seed), and one that is not
  used sends no message and counts as zero.
  """

  def __init__(
      self,
      quantizer: quantizers.Quantizer,
      code: codes.Code,
      *,
      resolution: float,
      seed: int = 0,
      seeded_by_clients: bool = False,
  ):
    """Makes a factory; the arguments are those of `build_quantized_broadcast`.

    Values come with seeds if `seeded_by_clients`.
    """
    arguments.check_type('quantizer', quantizer, quantizers.Quantizer)
    arguments.check_type('code', code, codes.Code)
    quantizer.check_resolution(resolution)
    random_seeds.check_seed('seed', seed)
    self._quantizer = quantizer
    self._code = code
    self._resolution = resolution
    self._seed = seed
    self._seeded_by_clients = seeded_by_clients

  def create(self, value_type: Any) -> tff.templates.AggregationProcess:
    sent_type = value_type[0] if self._seeded_by_clients else value_type
    messages.check_value_type('value_type', sent_type)

    @tff.tensorflow.computation
    def initial_state():
      return QuantizedMeanState(
          tf.constant(self._seed, tf.int64), tf.constant(0, tf.int64)
      )

    state_type = initial_state.type_signature.result

    @tff.tensorflow.computation(value_type, state_type)
    def send(value, state):
      return self._send(value, state)

    @tff.tensorflow.computation
    def finish(state, total, total_bits, num_clients, num_not_sent):
      return _finish(state, total, total_bits, num_clients, num_not_sent)

    @tff.federated_computation
    def initialize():
      return tff.federated_eval(initial_state, tff.SERVER)

    @tff.federated_computation(
        tff.FederatedType(state_type, tff.SERVER),
        tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      received = tff.federated_broadcast(state)
      sent = tff.federated_map(send, (value, received))
      new_state, mean, measurements = tff.federated_map(
          finish, (state, *[tff.federated_sum(part) for part in sent])
      )
      return tff.templates.MeasuredProcessOutput(new_state, mean, measurements)

    return tff.templates.AggregationProcess(initialize, next_fn)

  def _send(self, value, state):
    """Returns what is summed: the decoded value, its bits, 1, and if unsent."""
    if self._seeded_by_clients:
      value, identity, is_used = value
      vector = messages.flatten(value)
    else:
      vector, is_used = messages.flatten(value), None
      round_seed = random_seeds.derive_seed(state.seed, state.round_num)
      identity = random_seeds.digest(vector, round_seed)
    sent = messages.transmit(
        vector,
        self._resolution,
        random_seeds.derive_seed(state.seed, state.round_num, identity),
        self._quantizer,
        self._code,
    )
    not_sent = tf.cast(~sent.was_sent, tf.int32)
    decoded, bits = sent.vector, sent.bits
    if is_used is not None:
      decoded, bits, not_sent = (
          tf.where(is_used, part, tf.zeros_like(part))
          for part in (decoded, bits, not_sent)
      )
    return (
        messages.unflatten(decoded, value),
        bits,
        tf.constant(1, tf.int32),
        not_sent,
    )


def _finish(state, total, total_bits, num_clients, num_not_sent):
  measurements = QuantizedMeanMeasurements(
      uplink_bits=tf.cast(total_bits, tf.float64)
      / tf.cast(num_clients, tf.float64),
      total_uplink_bits=total_bits,
      clients_not_sent=num_not_sent,
  )
  mean = tf.nest.map_structure(
      lambda leaf: leaf / tf.cast(num_clients, leaf.dtype), total
  )
  new_state = QuantizedMeanState(state.seed, state.round_num + 1)
  return new_state, mean, measurements


class QuantizedBroadcastState(NamedTuple):
  """The builder's seed, and the number of broadcasts done; both int64."""

  seed: Any
  round_num: Any


class QuantizedBroadcastMeasurements(NamedTuple):
  """What is measured in one broadcast.

  Attributes:
    downlink_bits: int64, the bits of the message, counted once however many
      clients receive it.
    was_sent: bool, see `messages.Transmission`.
  """

  downlink_bits: Any
  was_sent: Any


def build_quantized_broadcast(
    value_type: Any,
    quantizer: quantizers.Quantizer,
    code: codes.Code,
    *,
    resolution: float,
    seed: int = 0,
) -> tff.learning.templates.DistributionProcess:
  """Builds a distribution of quantized values, from the server to all clients.

  In round t all clients receive the same Q(v, resolution), v being the server's
  value, all its tensors in one vector. `next` has the type

      (<S@SERVER, V@SERVER> -> <state=S@SERVER, result=V@CLIENTS,
                                measurements=R@SERVER>)

  with S a `QuantizedBroadcastState`, R a `QuantizedBroadcastMeasurements`. It
  may be the `model_distributor` of the processes of `tff.learning`: clients
  then train from the decoded weights, while the server keeps its own.

  Args:
    value_type: V, a structure of tensors of fixed shapes and one dtype, float32
      or float64.
    quantizer: Q.
    code: The code whose bits are counted.
    resolution: As the quantizer takes it.
    seed: A whole number; it determines all draws.

  Raises:
    TypeError: If `quantizer` or `code` is not of its type, or `value_type` not
      made of tensors of fixed shapes.
    ValueError: If any other argument is out of its range.
  """
  arguments.check_type('quantizer', quantizer, quantizers.Quantizer)
  arguments.check_type('code', code, codes.Code)
  quantizer.check_resolution(resolution)
  random_seeds.check_seed('seed', seed)
  messages.check_value_type('value_type', value_type)

  @tff.tensorflow.computation
  def initial_state():
    return QuantizedBroadcastState(
        tf.constant(seed, tf.int64), tf.constant(0, tf.int64)
    )

  @tff.tensorflow.computation(initial_state.type_signature.result, value_type)
  def send(state, value):
    sent = messages.transmit(
        messages.flatten(value),
        resolution,
        random_seeds.derive_seed(state.seed, state.round_num),
        quantizer,
        code,
    )
    return (
        QuantizedBroadcastState(state.seed, state.round_num + 1),
        messages.unflatten(sent.vector, value),
        QuantizedBroadcastMeasurements(sent.bits, sent.was_sent),
    )

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(initial_state, tff.SERVER)

  @tff.federated_computation(
      initialize.type_signature.result,
      tff.FederatedType(value_type, tff.SERVER),
  )
  def next_fn(state, value):
    new_state, decoded, measurements = tff.federated_map(send, (state, value))
    return tff.templates.MeasuredProcessOutput(
        new_state, tff.federated_broadcast(decoded), measurements
    )

  return tff.learning.templates.DistributionProcess(initialize, next_fn)
