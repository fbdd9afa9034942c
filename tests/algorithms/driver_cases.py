"""Tiny runs of CEAL and its rivals, watched, and their regret by plain loops.

The transcriptions use nothing of the package but the draws and the data.
"""

import contextlib
import functools
import pathlib
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import checkpoints
from baselines.training import data
from baselines.training import loop
from baselines.training import plan
from baselines.training import stopping
from baselines.training import workbench as workbench_lib
from tff_localupdate import execution

M = 10
LOCAL_STEPS = 10
HORIZON = 45
CEAL_HORIZON = 150
ALGORITHMS = {
    'ceal': algorithms.CealConfig(
        step_size=2.0, noise_scale=0.6, sample_constant=0.0222,
        uplink_resolution=0.7, downlink_resolution=0.6, first_stage=4,
        grid='coordinate',
    ),
    'minibatch_sgd': algorithms.MinibatchSgdConfig(LOCAL_STEPS, 1.0),
    'fed_avg': algorithms.FedAvgConfig(LOCAL_STEPS, 0.1),
    'fed_paq': algorithms.FedPaqConfig(LOCAL_STEPS, 0.1),
    'fed_com': algorithms.FedComConfig(LOCAL_STEPS, 0.01, server_factor=5.0),
}
RIVALS = [name for name in ALGORITHMS if name != 'ceal']
LOCAL = [name for name in RIVALS if name != 'minibatch_sgd']


class Round(NamedTuple):
  """One call of `Program.next`: the states around it, and its cohort."""

  before: Any
  cohort: Any
  after: Any


class Run(NamedTuple):
  """What a run has left, and what it did in this process."""

  config: experiment.ExperimentConfig
  outcome: Any
  rows: list[dict[str, str]]
  rounds: list[Round]

  def column(self, name, rows=slice(1, None)):
    """The numbers in a column; NaN for empty cells."""
    return np.array([
        np.nan if value is None else value
        for value in (records.number(row, name) for row in self.rows[rows])
    ])

  def points(self):
    """x before each round, and after the last one."""
    states = [self.rounds[0].before, *(r.after for r in self.rounds)]
    # A round that the loop cuts short leaves everything as it is.
    states += states[-1:] * (len(self.rows) - len(states))
    return [point_of(state) for state in states]


REPORTS: list[str] = []


@functools.cache
def workbench():
  """One for all modules, so that each algorithm compiles once."""
  return workbench_lib.Workbench(report=REPORTS.append)


def settings(algorithm, task='scaled_regression', model=None, **changes):
  """The settings of a small run of an algorithm, named or given."""
  if isinstance(algorithm, str):
    algorithm = ALGORITHMS[algorithm]
  length = {n: changes.pop(n) for n in ('rounds', 'horizon') if n in changes}
  is_ceal = isinstance(algorithm, algorithms.CealConfig)
  base = experiment.ExperimentConfig(
      experiment.TaskConfig(task, model),
      algorithm,
      run=experiment.RunConfig(
          **length or {'horizon': CEAL_HORIZON if is_ceal else HORIZON},
          clients_per_round=M, batch_size=2, rounds_per_evaluation=0,
          rounds_per_checkpoint=2, initial_point='sphere', model_seed=3,
          sampling_seed=5, dtype='float64',
      ),
      execution=experiment.ExecutionConfig(jit='off'),
  )
  return experiment.replace_settings(base, **changes)


def read_rows(asked, path):
  return records.read_rows(path / 'metrics.csv', records.columns_of(asked))


@contextlib.contextmanager
def watched(before=lambda call: None):
  """Yields the list of rounds done; calls `before(number)` ahead of each."""
  original, rounds, calls = execution.Program.next, [], []

  def next_fn(program, state, cohort):
    calls.append(None)
    before(len(calls))
    after, metrics = original(program, state, cohort)
    rounds.append(Round(state, cohort, after))
    return after, metrics

  with mock.patch.object(execution.Program, 'next', next_fn):
    yield rounds


def run(asked, path, before=lambda call: None):
  """Runs through the loop."""
  planned = plan.plan_run(asked, str(path))
  with watched(before) as rounds, stopping.Interruption() as interruption:
    outcome = loop.run_experiment(
        planned, workbench(), interruption, tensorboard=False
    )
  return Run(asked, outcome, read_rows(asked, path), rounds)


def point_of(state):
  state = getattr(state, 'process', state)  # Rates that change are around it.
  weights = state.model_weights.trainable
  return np.concatenate([np.ravel(np.asarray(w)) for w in weights])


def examples(asked):
  """All training examples in float64."""
  x, y = workbench().task(asked.task).train.features
  return np.asarray(x, np.float64), np.asarray(y).ravel()


class SquaredError:
  """f of `scaled_regression`, scaling row_sum: sum (<a, x> - y)^2 / N^2."""

  def __init__(self, asked):
    self.x, self.y = examples(asked)
    self.best = self.value(np.linalg.lstsq(self.x, self.y, rcond=None)[0])

  def value(self, point):
    return np.sum((self.x @ point - self.y) ** 2) / len(self.y) ** 2

  def gradient(self, point, rows):
    """The mean gradient of some examples."""
    total = np.zeros(len(point))
    for i in rows:
      total += 2.0 * (self.x[i] @ point - self.y[i]) * self.x[i]
    return total / len(self.y) / len(rows)


class CrossEntropy:
  """f of `mnist_logistic`: mean CE(softmax(a W), y) + 0.25 |W|^2."""

  def __init__(self, asked):
    self.x, self.y = examples(asked)
    point, every = np.zeros(self.x.shape[1] * 10), np.arange(len(self.y))
    for _ in range(400):  # lambda_max is 5, mu 0.5
      point = point - 0.3 * self.gradient(point, every)
    assert np.linalg.norm(self.gradient(point, every)) < 1e-12
    self.best = self.value(point)

  def value(self, point):
    logits = self.x @ point.reshape(-1, 10)
    chosen = logits[np.arange(len(self.y)), self.y]
    losses = np.log(np.exp(logits).sum(axis=1)) - chosen
    return losses.mean() + 0.25 * point @ point

  def gradient(self, point, rows):
    kernel = point.reshape(-1, 10)
    powers = np.exp(self.x[rows] @ kernel)
    errors = powers / powers.sum(axis=1, keepdims=True)
    errors[np.arange(len(rows)), self.y[rows]] -= 1.0
    return (self.x[rows].T @ errors / len(rows)).ravel() + 0.5 * point


def drawn_rows(asked, round_num, num_queries):
  """The rows of the examples, [M, L, B], as the draws have them."""
  run_config = asked.run
  return data.draw_cohort(
      workbench().task(asked.task).population,
      seed=run_config.sampling_seed, round_num=round_num,
      clients_per_round=run_config.clients_per_round, num_steps=num_queries,
      batch_size=run_config.batch_size,
  ).rows


def local_paths(problem, asked, start, round_num, num_queries):
  """Yields of each client its query points and where it ends."""
  for client_rows in drawn_rows(asked, round_num, num_queries):
    points, point = [], start
    for batch in client_rows:
      points.append(point)
      point = point - asked.algorithm.step_size * problem.gradient(point, batch)
    yield points, point


def regret_by_loops(problem, done):
  """(cumulative regret, mean query point) after each round."""
  total, visited, count = 0.0, 0.0, 0
  for number, (start, queries) in enumerate(
      zip(done.points(), done.column('num_queries')), 1
  ):
    queries = int(queries)
    if done.config.algorithm.QUERIES_MOVE:
      paths = local_paths(problem, done.config, start, number, queries)
      points = [point for path, _ in paths for point in path]
    else:
      points = [start] * (M * queries)
    total += sum(problem.value(point) - problem.best for point in points)
    visited, count = visited + np.sum(points, axis=0), count + len(points)
    yield total, visited / count


def left(path: pathlib.Path, rows: list[dict[str, str]]) -> tuple[Any, Any]:
  """All that must not depend on how a run went: its rows, its last state."""
  kept = [
      {k: v for k, v in row.items() if k not in records.MACHINE_COLUMNS}
      for row in rows
  ]
  leaves = checkpoints.load(path / 'checkpoints', len(rows) - 1)
  return kept, [leaf.tobytes() for leaf in leaves]
