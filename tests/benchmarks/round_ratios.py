"""Times one round in four programs, by turns in one process.

  python -m tests.benchmarks.round_ratios [linear] [femnist] [--rounds=20]

- ours: `process.next` under the in-process context, data not yet stacked;
- program: the same through `execution.compile_process`, data stacked;
- stock: the same process object under TFF's own context;
- by hand: plain TensorFlow that takes the same gradient steps, the clients as
  parallel branches of one graph, and reports nothing.

All take two rounds to warm up, start from the same weights and see the same
data in each round; they take turns of five rounds. Final weights are compared.
Ratios are of medians. CPU seconds are those of a round, on all cores and in all
processes; the first round counts from the start of building its program.
"""

import argparse
import os
import signal
import statistics
import time
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.benchmarks import usage
from tests.benchmarks import workloads
from tff_localupdate import execution
from tff_localupdate.local_update import client_work

_TURN = 5


class InContext:
  """`process.next` under one of TFF's contexts."""

  def __init__(self, process: Any, context: Any, cohort: Any):
    self._process, self._context = process, context
    counts = cohort.num_examples
    self._values = [
        client_work.ClientBatches(
            tuple(leaf[i] for leaf in cohort.batches), counts[i])
        for i in range(len(counts))
    ]
    tff.framework.set_default_context(context)
    self._state = process.initialize()

  def step(self) -> None:
    tff.framework.set_default_context(self._context)
    output = self._process.next(self._state, self._values)
    self._state = output[0]
    np.asarray(self.weights()[-1])

  def weights(self) -> Any:
    return self._state.model_weights.trainable


class InProgram:
  """The compiled program, fed with a stacked cohort."""

  def __init__(self, process: Any, cohort: Any):
    self._program = execution.compile_process(process)
    self._cohort = cohort
    self._state = self._program.initialize()

  def step(self) -> None:
    self._state, _ = self._program.next(self._state, self._cohort)
    np.asarray(self.weights()[-1])

  def weights(self) -> Any:
    return self._state.model_weights.trainable

  def report(self) -> str:
    return self._program.device_report


class ByHand:
  """Plain TensorFlow: M branches of K gradient steps in one graph."""

  def __init__(self, work: workloads.Workload, cohort: Any, jit: bool):
    self._cohort = [tf.constant(leaf) for leaf in cohort.batches]
    self._weights = [tf.constant(w) for w in work.weights]
    gamma, eta = work.client_learning_rate, work.server_learning_rate

    def client(weights, x, y):
      def step(k, w, total):
        with tf.GradientTape() as tape:
          tape.watch(w)
          loss = work.loss(work.predict(w, x[k]), y[k])
        gradients = tape.gradient(loss, w)
        return (k + 1, [a - gamma * g for a, g in zip(w, gradients)],
                [t + g for t, g in zip(total, gradients)])

      zeros = [tf.zeros_like(w) for w in weights]
      return tf.while_loop(lambda k, *_: k < work.steps, step,
                           (0, list(weights), zeros))[2]

    def one_round(weights, x, y):
      sums = [client(weights, x[i], y[i]) for i in range(work.clients)]
      return [
          w - eta * tf.add_n(list(parts)) / work.clients
          for w, parts in zip(weights, zip(*sums))
      ]

    self._round = tf.function(one_round, jit_compile=jit, autograph=False)

  def step(self) -> None:
    self._weights = self._round(self._weights, *self._cohort)
    np.asarray(self._weights[-1])

  def weights(self) -> Any:
    return self._weights


def measure(work: workloads.Workload, loss: str, stock: Any, rounds: int
            ) -> None:
  """Prints medians and ratios of one workload."""
  process, cohort = work.process(loss), work.cohort()
  ours = execution.InProcessContext()
  builders = {
      'by hand': lambda: ByHand(work, cohort, jit=not work.classes),
      'program': lambda: InProgram(process, cohort),
      'ours': lambda: InContext(process, ours, cohort),
      'stock': lambda: InContext(process, stock, cohort),
  }
  runners, first, cpu = {}, {}, dict.fromkeys(builders, 0.0)
  for name, build in builders.items():
    start = time.perf_counter()
    runners[name] = build()
    runners[name].step()
    first[name] = time.perf_counter() - start
    runners[name].step()
  times = {name: [] for name in runners}
  for _ in range(-(-rounds // _TURN)):
    for name, runner in runners.items():
      used = usage.cpu_seconds()
      for _ in range(_TURN):
        start = time.perf_counter()
        runner.step()
        times[name].append(time.perf_counter() - start)
      cpu[name] += usage.cpu_seconds() - used
  median = {name: statistics.median(t) for name, t in times.items()}
  print(f'\n{work.name}, loss_before_training={loss}, {rounds} rounds after 2 '
        f'to warm up; {runners["program"].report()}; load '
        f'{os.getloadavg()[0]:.1f}; peak memory of all processes so far '
        f'{usage.peak_mib():.0f} MiB')
  for name, seconds in median.items():
    print(f'  {name:8s} median {seconds:.5f} s  fastest {min(times[name]):.5f}'
          f' s  CPU {cpu[name] / len(times[name]):.5f} s  first round after '
          f'{first[name]:6.2f} s  {seconds / median["ours"]:8.2f} x ours')
  reference = runners['ours'].weights()
  for name, runner in runners.items():
    worst = max(
        float(np.max(np.abs(np.asarray(a) - np.asarray(b))))
        for a, b in zip(reference, runner.weights())
    )
    print(f'  {name:8s} weights differ from ours by at most {worst:.1e}')
  print(f'  stock / ours = {median["stock"] / median["ours"]:.1f}, '
        f'ours / by hand = {median["ours"] / median["by hand"]:.2f}, '
        f'program / by hand = {median["program"] / median["by hand"]:.2f}')


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('workloads', nargs='*', default=[])
  parser.add_argument('--rounds', type=int, default=20)
  parser.add_argument('--loss', default='drawn,first_batch')
  arguments = parser.parse_args()
  before = usage.children()
  tff.backends.native.set_sync_local_cpp_execution_context()
  stock = tff.framework.get_context_stack().current
  try:
    for name in arguments.workloads or workloads.WORKLOADS:
      for loss in arguments.loss.split(','):
        measure(workloads.WORKLOADS[name](), loss, stock, arguments.rounds)
  finally:
    for pid in usage.children() - before:  # TFF's worker outlives its parent
      os.kill(pid, signal.SIGKILL)


if __name__ == '__main__':
  main()
