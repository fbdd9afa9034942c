"""How near the exact regret on MNIST is to the matrix products that it needs.

    python -m tests.benchmarks.regret_ratios --data_dir=FOLDER_WITH_MNIST

The query points of one round of FedAvg (10 clients, 50 steps, 7,840 weights)
are replayed and f is evaluated at each of them on 50,000 images, in float64.
Beside it, by turns: the products of the images with those points and nothing
else, in blocks that suit the machine. Prints medians and their ratio.
"""

import argparse
import statistics
import time

import numpy as np

from baselines.regret import counter
from baselines.regret import objectives
from baselines.tasks import mnist_logistic

_CLIENTS, _STEPS, _BATCH = 10, 50, 25
_STEP_SIZE = 0.01
# Of the points; the product with all images is then 50,000 x 640.
_POINTS_PER_PRODUCT = 64


def main() -> None:
  """Measures and prints."""
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--data_dir', required=True)
  parser.add_argument('--repeats', type=int, default=3)
  options = parser.parse_args()
  (x, y), _ = mnist_logistic.load_idx(options.data_dir)
  objective = objectives.SoftmaxRegression(
      x, y, mnist_logistic.NUM_CLASSES, mnist_logistic.PENALTY
  )
  accountant = counter.Accountant(objective, 0.0)
  rows = np.random.default_rng(0).integers(
      len(y), size=[_CLIENTS, _STEPS, _BATCH]
  )
  start = np.zeros(objective.dimension)
  rule = counter.LocalRule(_STEP_SIZE)

  def exact_regret():
    paths = counter.replay_local_steps(objective, start, rows, rule)
    accountant.add_paths(accountant.initial_state(), paths.points)
    return paths.points

  points = exact_regret().reshape(-1, objective.dimension)
  kernels = [
      np.ascontiguousarray(
          part.reshape(len(part), -1, mnist_logistic.NUM_CLASSES)
          .transpose(1, 2, 0).reshape(x.shape[1], -1)
      )
      for part in np.array_split(points, -(-len(points) // _POINTS_PER_PRODUCT))
  ]

  def products():
    for kernel in kernels:
      objective.features @ kernel

  seconds = {exact_regret: [], products: []}
  for _ in range(options.repeats):
    for measured, times in seconds.items():
      started = time.perf_counter()
      measured()
      times.append(time.perf_counter() - started)
  exact, bare = (statistics.median(times) for times in seconds.values())
  print(f'exact regret of {len(points)} query points: {exact:.2f} s')
  print(f'their matrix products alone:          {bare:.2f} s')
  print(f'ratio: {exact / bare:.2f}')


if __name__ == '__main__':
  main()
