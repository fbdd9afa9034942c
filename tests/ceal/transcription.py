"""CEAL in plain NumPy, written from the specification, random numbers injected.

Nothing of the package is used but its draws (and those through functions).
"""

import math
from typing import NamedTuple

import numpy as np


class Exchange(NamedTuple):
  point: np.ndarray  # x after the exchange
  uplink: list  # k of each client's message
  downlink: list  # k of the broadcast, [] if there was none
  uplink_bits: int
  downlink_bits: int
  epoch: int
  stage: int
  time: int
  norm: float


def unary(indices):
  """Returns the signed unary code as text."""
  words = [
      '1' * abs(int(k)) + '0' + ('' if k == 0 else '1' if k < 0 else '0')
      for k in indices
  ]
  return ''.join(words)


def quantize(vector, step, uniforms):
  return np.floor(vector / step + uniforms).astype(np.int64)


def clip(vector, radius):
  norm = np.linalg.norm(vector)
  return vector * min(1.0, radius / norm) if norm else vector


def run(
    data, *, num_clients, noise_scale, sample_constant, first_stage, horizon,
    step_size, uniforms_fn, delta=0.1, gamma0=0.9, phi0=0.9, grid='vector',
    point=None, reset=False, clips=True, every=False, threshold_factor=4.0,
):
  """Yields an `Exchange` per message; `uniforms_fn(exchange, client)` -> u.

  The server's numbers are those of client None.
  """
  M, sigma = num_clients, noise_scale
  x = np.zeros(data.x.shape[1]) if point is None else point
  d = len(x)
  k, j, t, exchange = 1, first_stage, 0, 0
  while t < horizon:
    s = math.ceil(
        sample_constant * sigma**2 * math.log(16 * M * j**2 / delta)
        * 4**j / M
    )
    if s > horizon - t:
      yield Exchange(x, [], [], 0, 0, k, j, horizon, math.nan)
      return
    tau, last_tau = 3 * 2.0 ** -(j + 1), 3 * 2.0**-j
    bound = min(5 * last_tau, 1.0)
    noise = 4 * sigma / math.sqrt(s) * (
        1 + math.sqrt(math.log(4 * M * j**2 / delta) / (2 * d))
    )
    step = gamma0 * sigma / math.sqrt(s) / (
        math.sqrt(d) if grid == 'vector' else 1.0
    )
    features, labels = data.draw(exchange, s)
    messages = []
    for m in range(M):
      rows, targets = features[m].reshape([-1, d]), labels[m].reshape([-1])
      gradient = rows.T @ (rows @ x - targets) / len(targets)
      gradient = clip(gradient, bound + noise) if clips else gradient
      messages.append(quantize(gradient, step, uniforms_fn(exchange, m)))
    mean = np.mean(messages, axis=0) * step
    t += s
    norm = np.linalg.norm(mean)
    downlink, bits = [], 1
    down_step = phi0 * tau / (math.sqrt(d) if grid == 'vector' else 1.0)
    passes = norm >= threshold_factor * tau
    if passes or every:
      target = clip(mean, bound + tau) if clips else mean
      downlink = quantize(target, down_step, uniforms_fn(exchange, None))
      bits += len(unary(downlink))
    if passes:
      x = x - step_size * downlink * down_step
      k += 1
      j = first_stage if reset else j
    else:
      j += 1
    up = sum(len(unary(message)) for message in messages)
    yield Exchange(x, messages, downlink, up, bits, k, j, t, norm)
    exchange += 1
