"""The outcome of a run, read from its folder, and tables of outcomes."""

import dataclasses
import math
from typing import Any, Optional

from baselines.run import folder as folder_lib
from baselines.run import records
from baselines.settings import experiment

# The mean of the last losses ranks runs: the paper takes 100 rounds of its
# thousands, we never more than a tenth of the run.
_MAX_LAST_ROUNDS = 100


@dataclasses.dataclass(frozen=True)
class RunSummary:
  """The outcome of one run.

  Attributes:
    config: Its settings.
    path: Its folder.
    status: Its status, a word of `run_folder`, or `not started`.
    round: The last round that metrics.csv holds.
    reason: Why it failed, or what diverged.
    first_population_loss: f(x) before training, None if it was not evaluated.
    population_loss: f(x) of the last evaluation.
    test_accuracy: Of the last evaluation.
    last_loss: Mean of loss_before_training over the last tenth of the rounds,
      at most 100; ranks runs that count no regret.
    cumulative_regret: Of the last round; ranks runs that count it.
    uplink_bits: Bits that a client sent in the whole run; where each round has
      its own clients, the sum of their means.
    downlink_bits: Bits broadcast in the whole run.
    seconds: Time of all rounds and evaluations.
  """

  config: experiment.ExperimentConfig
  path: str
  status: str
  round: int
  reason: str
  first_population_loss: Optional[float]
  population_loss: Optional[float]
  test_accuracy: Optional[float]
  last_loss: Optional[float]
  cumulative_regret: Optional[float]
  uplink_bits: Optional[float]
  downlink_bits: Optional[float]
  seconds: float


def summarize(
    config: experiment.ExperimentConfig, folder: folder_lib.RunFolder
) -> RunSummary:
  """Reads the outcome from a run folder; InputError if it cannot be read."""
  with folder_lib.reading(folder.path):
    status = folder.read_status()
    rows = records.read_rows(folder.metrics_path, records.columns_of(config))
  population = _column(rows, 'population_loss')
  accuracy = _column(rows, 'test_accuracy')
  seconds = _column(rows, 'round_seconds') + _column(rows, 'evaluation_seconds')
  word = _status(status, config, rows)
  # A run that diverged has no more rounds, however many were wanted.
  rounds = None if word == folder_lib.DIVERGED else config.num_rounds
  return RunSummary(
      config=config,
      path=str(folder.path),
      status=word,
      round=max(len(rows) - 1, 0),
      reason=status.reason if status else '',
      first_population_loss=(
          records.number(rows[0], 'population_loss') if rows else None
      ),
      population_loss=population[-1] if population else None,
      test_accuracy=accuracy[-1] if accuracy else None,
      last_loss=_last_loss(rows, rounds or max(len(rows) - 1, 1)),
      cumulative_regret=_last(rows, 'cumulative_regret'),
      uplink_bits=_uplink_bits(rows),
      downlink_bits=_last(rows, 'cumulative_downlink_bits'),
      seconds=sum(seconds),
  )


def _status(
    status: Optional[folder_lib.Status],
    config: experiment.ExperimentConfig,
    rows: list[records.Row],
) -> str:
  """Returns the status; one that ended is interrupted if more is wanted."""
  if status is None:
    return 'not started'
  if status.status in folder_lib.ENDED:
    if not folder_lib.is_complete(status, config.run, rows):
      return folder_lib.INTERRUPTED
  return status.status


def nothing_known(
    config: experiment.ExperimentConfig, folder: folder_lib.RunFolder
) -> RunSummary:
  """Returns the outcome of a run whose folder cannot be read."""
  return RunSummary(
      config=config,
      path=str(folder.path),
      status='unknown',
      round=0,
      reason='',
      first_population_loss=None,
      population_loss=None,
      test_accuracy=None,
      last_loss=None,
      cumulative_regret=None,
      uplink_bits=None,
      downlink_bits=None,
      seconds=0.0,
  )


def run_table(outcome: RunSummary) -> str:
  """Returns the closing table of a single run."""
  cells = {
      'run': outcome.path,
      'status': status_text(outcome),
      'rounds': _rounds_text(outcome),
      # One that the theory gave is in metrics.csv.
      **{n: '-' if r is None else r for n, r in outcome.config.rates.items()},
      'population_loss at first': _text(outcome.first_population_loss),
      'population_loss': _text(outcome.population_loss),
      'test_accuracy': _text(outcome.test_accuracy),
      'loss_before_training, last mean': _text(outcome.last_loss),
      'cumulative_regret': _text(outcome.cumulative_regret),
      'uplink_bits': _text(outcome.uplink_bits),
      'downlink_bits': _text(outcome.downlink_bits),
      'seconds': f'{outcome.seconds:.1f}',
  }
  cells = {name: cell for name, cell in cells.items() if cell != '-'}
  width = max(map(len, cells)) + 2
  return '\n'.join(f'{name:{width}}{cell}' for name, cell in cells.items())


def status_text(outcome: RunSummary) -> str:
  """Returns the status with the round and the reason where they matter."""
  if outcome.status == folder_lib.DIVERGED:
    return f'diverged at round {outcome.round} ({outcome.reason})'
  if outcome.status == folder_lib.FAILED:
    return f'failed after round {outcome.round} ({outcome.reason})'
  return outcome.status


def _rounds_text(outcome: RunSummary) -> str:
  num_rounds = outcome.config.num_rounds
  return f'{outcome.round}' + (f' of {num_rounds}' if num_rounds else '')


def _last(rows: list[records.Row], column: str) -> Optional[float]:
  values = _column(rows, column)
  return values[-1] if values else None


def _uplink_bits(rows: list[records.Row]) -> Optional[float]:
  if rows and 'cumulative_uplink_bits' in rows[0]:
    return _last(rows, 'cumulative_uplink_bits')
  bits = _column(rows, 'uplink_bits')
  return math.fsum(bits) if bits else None


def _text(value: Any) -> str:
  return '-' if value is None else f'{value:.4f}'


def _column(rows: list[records.Row], column: str) -> list[float]:
  cells = (records.number(row, column) for row in rows)
  return [cell for cell in cells if cell is not None]


def _last_loss(rows: list[records.Row], rounds: int) -> Optional[float]:
  """Returns the mean loss of the last rounds, up to the last that has one.

  A horizon may cut its last round short, which then has none.
  """
  losses = [records.number(row, 'loss_before_training') for row in rows]
  while losses and losses[-1] is None:
    del losses[-1]
  last = losses[-min(_MAX_LAST_ROUNDS, math.ceil(rounds / 10)) :]
  found = [loss for loss in last if loss is not None]
  return sum(found) / len(found) if found else None
