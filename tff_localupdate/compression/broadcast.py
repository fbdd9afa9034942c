"""A quantized message from the server to all clients, as a TFF distribution."""

from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_localupdate import arguments
from tff_localupdate.compression import codes
from tff_localupdate.compression import messages
from tff_localupdate.compression import quantizers
from tff_localupdate.compression import random_seeds
from tff_localupdate.compression import vectors


class QuantizedBroadcastState(NamedTuple):
  """The state of the distribution.

  Attributes:
    seed: int64, as given to the builder.
    round_num: int64, the number of broadcasts done.
  """

  seed: Any
  round_num: Any


class QuantizedBroadcastMeasurements(NamedTuple):
  """What is measured in one broadcast.

  Attributes:
    downlink_bits: int64, the bits of the message; it is counted once, however
      many clients receive it.
    was_sent: bool, False if there is no message for the value; see
      `messages.Transmission`.
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
    resolution: The resolution, as the quantizer takes it.
    seed: A whole number; it determines all draws.

  Returns:
    The `tff.learning.templates.DistributionProcess`.

  Raises:
    TypeError: If `quantizer` or `code` is not of its type, or `value_type` not
      made of tensors of fixed shapes.
    ValueError: If any other argument is out of its range.
  """
  arguments.check_type('quantizer', quantizer, quantizers.Quantizer)
  arguments.check_type('code', code, codes.Code)
  quantizer.check_resolution(resolution)
  random_seeds.check_seed('seed', seed)
  vectors.check_value_type('value_type', value_type)

  @tff.tensorflow.computation
  def initial_state():
    return QuantizedBroadcastState(
        tf.constant(seed, tf.int64), tf.constant(0, tf.int64)
    )

  @tff.tensorflow.computation(initial_state.type_signature.result, value_type)
  def send(state, value):
    sent = messages.transmit(
        vectors.flatten(value),
        resolution,
        random_seeds.derive_seed(state.seed, state.round_num),
        quantizer,
        code,
    )
    return (
        QuantizedBroadcastState(state.seed, state.round_num + 1),
        vectors.unflatten(sent.vector, value),
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
