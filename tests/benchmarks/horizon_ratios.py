"""CEAL and its four rivals beside NumPy that advances all runs at once.

  python -m tests.benchmarks.horizon_ratios [--seeds=10]

The synthetic experiment (T 2000, M 10, exact regret of every query) by
`localupdate-sweep --preset=paper2_synthetic` in this process, and by plain
NumPy vectorised over clients and runs, with random numbers of its own. Prints
seconds, what of them goes into building the processes and into rounds, and the
mean regrets: CEAL's is of few exchanges, so it varies by a sixth from run to
run.
"""

import argparse
import math
import pathlib
import tempfile
import time

import numpy as np
import pandas as pd

from baselines.sweeps import main as sweep_main
from baselines.tasks import scaled_regression
from baselines.training import workbench

_HORIZON, _CLIENTS, _DIMENSION = 2000, 10, scaled_regression.DIMENSION
_FACTOR = scaled_regression.LOSS_FACTORS['row_sum']


class Runs:
  """The data of all runs as one array, and the regret counted so far."""

  def __init__(self, seeds):
    parts = [scaled_regression.generate('row_sum', s).features for s in seeds]
    self.x = np.stack([x.reshape(_CLIENTS, -1, _DIMENSION) for x, _ in parts])
    self.y = np.stack([y.reshape(_CLIENTS, -1) for _, y in parts])
    flat = self.x.reshape(len(parts), -1, _DIMENSION)
    number = flat.shape[1]
    gram = np.einsum('rni,rnj->rij', flat, flat)
    moment = np.einsum('rni,rn->ri', flat, self.y.reshape(len(parts), -1))
    self.best = np.linalg.solve(gram, moment[..., None])[..., 0]
    self.hessian = _FACTOR * gram / number
    self.rng = np.random.default_rng(0)
    self.regret = np.zeros(len(parts))
    self.clients = np.arange(_CLIENTS)

  def rows(self, run, number):
    """`number` draws of each client, of one run or of all (`...`)."""
    shape = (*self.y[run].shape[:-1], number)
    drawn = self.rng.integers(0, self.y.shape[-1], shape)
    return (np.take_along_axis(self.x[run], drawn[..., None], -2),
            np.take_along_axis(self.y[run], drawn, -1))

  def gradients(self, x, y, point):
    """Gradients at the points [..., M, d] on examples [..., M, n, d], mean."""
    errors = np.einsum('...ni,...i->...n', x, point) - y
    return 2 * _FACTOR * np.einsum('...ni,...n->...i', x, errors) / y.shape[-1]

  def count(self, points, times=1):
    """Adds the regret of query points [..., d] of each run."""
    away = points.reshape(len(self.best), -1, _DIMENSION) - self.best[:, None]
    losses = np.einsum('rpi,rpi->rp', away @ self.hessian, away)
    self.regret += times * losses.sum(axis=1)


def qsgd(vector, levels, rng):
  """QSGD of the vectors in the last axis."""
  norm = np.linalg.norm(vector, axis=-1, keepdims=True)
  scaled = levels * np.abs(vector) / np.where(norm > 0, norm, 1)
  return np.sign(vector) * norm * np.floor(
      scaled + rng.random(vector.shape)) / levels


def minibatch_sgd(runs):
  point = np.zeros_like(runs.best)
  for _ in range(_HORIZON // 50):
    runs.count(point, _CLIENTS * 50)
    everyone = np.repeat(point[:, None], _CLIENTS, 1)
    gradient = runs.gradients(*runs.rows(..., 50), everyone)
    point = point - 1.0 * gradient.mean(axis=1)


def local_method(runs, step_size, change_fn):
  """FedAvg and those that quantize what a client sends."""
  point = np.zeros_like(runs.best)
  for _ in range(_HORIZON // 100):
    x, y = runs.rows(..., 100)
    local, path = np.repeat(point[:, None], _CLIENTS, 1), []
    for k in range(100):
      path.append(local)
      local = local - step_size * runs.gradients(
          x[:, :, k:k + 1], y[:, :, k:k + 1], local)
    runs.count(np.stack(path, axis=1))
    point = point + change_fn(local - point[:, None]).mean(axis=1)


def ceal(runs):
  """Algorithm 2 with the settings of `paper2_synthetic_ceal`, run by run."""
  sigma, rng = 0.6, runs.rng

  def clip(vector, radius):
    norm = np.linalg.norm(vector, axis=-1, keepdims=True)
    return vector * np.minimum(1, radius / np.maximum(norm, 1e-300))

  for run in range(len(runs.best)):
    point, stage, used = np.zeros(_DIMENSION), 5, 0
    while used < _HORIZON:
      samples = math.ceil(0.0222 * sigma**2 * math.log(
          16 * _CLIENTS * stage**2 / 0.1) * 4**stage / _CLIENTS)
      taken = min(samples, _HORIZON - used)
      away = point - runs.best[run]
      runs.regret[run] += _CLIENTS * taken * away @ runs.hessian[run] @ away
      used += taken
      if taken < samples:
        break
      tau, bound = 3 * 2.0**-(stage + 1), min(15 * 2.0**-stage, 1)
      noise = 4 * sigma / math.sqrt(samples) * (1 + math.sqrt(math.log(
          4 * _CLIENTS * stage**2 / 0.1) / (2 * _DIMENSION)))
      gradient = runs.gradients(
          *runs.rows(run, samples), np.tile(point, (_CLIENTS, 1)))
      step, down = 0.7 * sigma / math.sqrt(samples), 0.6 * tau
      sent = np.floor(clip(gradient, bound + noise) / step
                      + rng.random(gradient.shape)) * step
      mean = sent.mean(axis=0)
      if np.linalg.norm(mean) < 4 * tau:
        stage += 1
        continue
      point = point - 2 * down * np.floor(
          clip(mean, bound + tau) / down + rng.random(_DIMENSION))


ALGORITHMS = {
    'ceal': ceal,
    'minibatch_sgd': minibatch_sgd,
    'fed_avg': lambda runs: local_method(runs, 0.1, lambda change: change),
    'fed_paq': lambda runs: local_method(
        runs, 0.1, lambda change: qsgd(change, 3, runs.rng)),
    'fed_com': lambda runs: local_method(
        runs, 0.002, lambda change: 10 * qsgd(change, 3, runs.rng)),
}


def main() -> None:
  """Measures and prints."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--seeds', type=int, default=10)
  seeds = parser.parse_args().seeds
  start, regrets = time.perf_counter(), {}
  for name, algorithm in ALGORITHMS.items():
    runs = Runs(range(1, seeds + 1))
    algorithm(runs)
    regrets[name] = runs.regret.mean()
  bare = time.perf_counter() - start
  building, compile_ = [], workbench.Workbench._compile

  def timed(*args):
    begun = time.perf_counter()
    result = compile_(*args)
    building.append(time.perf_counter() - begun)
    return result

  workbench.Workbench._compile = timed
  with tempfile.TemporaryDirectory() as folder:
    start = time.perf_counter()
    sweep_main.main(['--preset=paper2_synthetic', f'--sweep_seeds=1:{seeds}',
                     f'--output_dir={folder}/sweep'])
    ours = time.perf_counter() - start
    rows = [
        (path.parent.name, pd.read_csv(path)) for path in
        pathlib.Path(folder).glob('sweep/*/metrics.csv')
    ]
  # The first round of a run may compile.
  rounds = sum(table.round_seconds.iloc[2:].sum() for _, table in rows)
  print(f'horizon: {seeds} runs of {len(ALGORITHMS)}, NumPy {bare:.2f} s, '
        f'sweep {ours:.2f} s ({sum(building):.2f} s of it building, '
        f'{rounds:.2f} s rounds after the first of each run), ratio '
        f'{ours / bare:.1f}, without building '
        f'{(ours - sum(building)) / bare:.1f}, rounds {rounds / bare:.1f}')
  for name, regret in regrets.items():
    found = [table.cumulative_regret.iloc[-1] for run, table in rows
             if f'-{name}-' in run]
    print(f'horizon: {name:14s} regret {regret:8.2f} by NumPy, '
          f'{np.mean(found):8.2f} by the sweep')


if __name__ == '__main__':
  main()
