"""Small processes that the tests of execution share."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

CPU = ('/device:CPU:0',)
BOTH = ('/device:CPU:0', '/device:CPU:1')


class State(NamedTuple):
  total: Any
  rounds: Any


STATE = tff.to_type(State(np.float32, np.int32))
AT_SERVER = tff.FederatedType(STATE, tff.SERVER)


@tff.tensorflow.computation
def initial_state():
  return State(tf.constant(1.0), tf.constant(0))


@tff.federated_computation
def initialize():
  return tff.federated_eval(initial_state, tff.SERVER)


def build_process(client_type, client_fn):
  """x <- x + sum over clients of client_fn(value) * x; counts rounds."""

  @tff.tensorflow.computation(client_type, STATE)
  def work(value, state):
    return client_fn(value) * state.total

  @tff.tensorflow.computation(STATE, np.float32)
  def update(state, total):
    return State(state.total + total, state.rounds + 1)

  @tff.federated_computation(
      AT_SERVER, tff.FederatedType(client_type, tff.CLIENTS))
  def next_fn(state, values):
    contributions = tff.federated_map(
        work, (values, tff.federated_broadcast(state)))
    total = tff.federated_sum(contributions)
    return tff.federated_map(update, (state, total)), total

  return tff.templates.IterativeProcess(initialize, next_fn)


def build_matrix_process():
  """Clients are matrices [6, 6]: a round that XLA may order otherwise."""
  return build_process(
      (np.float32, [6, 6]),
      lambda matrix: tf.reduce_sum(tf.linalg.matmul(matrix, matrix)))
