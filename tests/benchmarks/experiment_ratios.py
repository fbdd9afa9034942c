"""What experiments cost beside their rounds, as ratios measured in one run.

  python -m tests.benchmarks.experiment_ratios [start] [clients] [sweep]
      [evaluation] [--data_dir=FOLDER_OF_emnist_all.sqlite]

- start: from the command to the end of the first round of least squares, to the
  import of TFF in a process of its own, by turns;
- clients: a round of 1,000 clients per client, to one of 10 (30 weights, K 50);
- sweep: 7 x 7 rates of the digits' CNN, 50 rounds each, to the sum of its
  rounds, both without loading TFF;
- evaluation: f(x) on EMNIST digits by writer, to forward passes over the same
  examples in the same batches, by turns. Without files, on TFF's two clients.
"""

import argparse
from concurrent import futures
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd
import tensorflow as tf

from baselines.settings import experiment
from baselines.sweeps import main as sweep_main
from baselines.tasks import registry
from baselines.training import evaluation
from tests.benchmarks import workloads
from tff_localupdate import execution

_REPEATS = 3
_RATES = '0.001,0.002,0.003,0.004,0.005,0.006,0.007'
_BATCH = 256


def measure_start(options: argparse.Namespace) -> None:
  """Prints the time to the first round beside that of the import."""
  del options
  times = {'import': [], 'command': []}
  for _ in range(_REPEATS):
    times['import'].append(_seconds_until(
        ['-c', 'import tensorflow_federated; print("done")'], 'done'
    ))
    with tempfile.TemporaryDirectory() as folder:
      times['command'].append(_seconds_until(
          ['-m', 'baselines.training.main', '--task=linear_regression',
           '--rounds=1', f'--output_dir={folder}/run'], 'round 1/1'
      ))
  medians = {name: statistics.median(found) for name, found in times.items()}
  print(f'start: first round after {medians["command"]:.2f} s, import of TFF '
        f'{medians["import"]:.2f} s, ratio '
        f'{medians["command"] / medians["import"]:.2f}')


def measure_clients(options: argparse.Namespace) -> None:
  """Prints the cost of a client in a small and in a large cohort."""
  del options
  work = workloads.linear()
  program = execution.compile_process(work.process('first_batch'))
  state, seconds = program.initialize(), {}
  for clients in (10, 100, 1000):
    cohort, times = work.cohort(clients), []
    for _ in range(30):
      start = time.perf_counter()
      state, _ = program.next(state, cohort)
      np.asarray(state.model_weights.trainable[0])
      times.append(time.perf_counter() - start)
    seconds[clients] = statistics.median(times[10:])
    print(f'clients: M {clients:5d} {1e3 * seconds[clients]:8.3f} ms a round, '
          f'{1e6 * seconds[clients] / clients:6.1f} us a client')
  print('clients: 1000 to 10, per client, ratio '
        f'{seconds[1000] / seconds[10] / 100:.2f}')


def measure_sweep(options: argparse.Namespace) -> None:
  """Prints the time of a sweep beside that of its rounds."""
  del options
  with tempfile.TemporaryDirectory() as folder:
    start = time.perf_counter()
    sweep_main.main([
        '--task=digits', '--rounds=50', '--rounds_per_evaluation=0',
        '--loss_before_training=first_batch', f'--output_dir={folder}/sweep',
        f'--sweep_client_learning_rates={_RATES}',
        f'--sweep_server_learning_rates={_RATES}',
    ])
    total = time.perf_counter() - start
    rows = [
        pd.read_csv(path)
        for path in pathlib.Path(folder).glob('sweep/*/metrics.csv')
    ]
  rounds = sum(table.round_seconds.sum() for table in rows)
  evaluations = sum(table.evaluation_seconds.sum() for table in rows)
  print(f'sweep: {len(rows)} runs in {total:.1f} s, rounds {rounds:.1f} s, '
        f'final evaluations {evaluations:.1f} s, ratio {total / rounds:.2f}')


def measure_evaluation(options: argparse.Namespace) -> None:
  """Prints the time of f(x) beside that of plain forward passes."""
  execution.configure()
  source = (
      {'data_source': 'cache', 'data_dir': options.data_dir}
      if options.data_dir else {'data_source': 'synthetic'}
  )
  task = registry.build_task(
      experiment.TaskConfig('emnist_digits', model='cnn', **source)
  )
  model = task.build_model(1, 'float32')
  evaluator = evaluation.Evaluator(task, model, batch_size=_BATCH)
  weights = tf.nest.map_structure(tf.constant, model.initial_weights)

  @tf.function
  def predict(x):
    return model.predict_on_batch(weights, x, training=False)

  images = [task.train.features[0], task.test.features[0]]

  batches = [
      array[first:first + _BATCH]
      for array in images for first in range(0, len(array), _BATCH)
  ]

  def plain():  # On all cores too, since an operation has one thread.
    with futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
      list(pool.map(lambda batch: predict(tf.constant(batch)), batches))

  times = {plain: [], lambda: evaluator.evaluate(weights): []}
  for _ in range(_REPEATS + 1):
    for run, found in times.items():
      start = time.perf_counter()
      run()
      found.append(time.perf_counter() - start)
  bare, whole = (statistics.median(found[1:]) for found in times.values())
  print(f'evaluation: {sum(map(len, images))} examples in {whole:.2f} s, plain '
        f'forward passes {bare:.2f} s, ratio {whole / bare:.2f}')


def _seconds_until(arguments: list[str], text: str) -> float:
  """Seconds from the start of Python until it prints a line with `text`."""
  start = time.perf_counter()
  with subprocess.Popen(
      [sys.executable, *arguments], stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT, text=True,
  ) as process:
    printed = []
    for line in process.stdout:
      printed.append(line)
      if text in line:
        seconds = time.perf_counter() - start
        process.stdout.read()
        return seconds
  raise RuntimeError(''.join(printed))


MEASURES = {
    'start': measure_start,
    'clients': measure_clients,
    'sweep': measure_sweep,
    'evaluation': measure_evaluation,
}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('measures', nargs='*', default=[])
  parser.add_argument('--data_dir')
  options = parser.parse_args()
  for name in options.measures or MEASURES:
    MEASURES[name](options)


if __name__ == '__main__':
  main()
