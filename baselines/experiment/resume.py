"""Saving a run, and finding the place where it goes on."""

import dataclasses
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf

from baselines.experiment import checkpoints
from baselines.experiment import command
from baselines.experiment import config as config_lib
from baselines.experiment import records
from baselines.experiment import run_folder


@dataclasses.dataclass(frozen=True)
class Start:
  """Where a run starts or goes on.

  Attributes:
    round_num: The round after which `state` is; 0 for a new run.
    state: The server state.
    rows: The rows of metrics.csv up to that round that stay as they are.
    incomplete: The row of `round_num` if it is still to be written (then it is
      not in `rows`) because it lacks an evaluation, else None.
  """

  round_num: int
  state: Any
  rows: list[records.Row]
  incomplete: Optional[dict[str, Any]]


def is_evaluated(
    config: config_lib.RunConfig, round_num: int, is_last: bool
) -> bool:
  """Whether an evaluation is due: at 0, N, 2 N, ... and after the last round.

  With N = `rounds_per_evaluation` = 0 only after the last round.
  """
  every = config.rounds_per_evaluation
  return is_last or bool(every and round_num % every == 0)


def find_start(
    config: config_lib.ExperimentConfig,
    folder: run_folder.RunFolder,
    initial_state: Any,
    is_last: Callable[[int, Any], bool],
    report: Callable[[str], None] = command.report,
) -> Start:
  """Returns the place where the run in `folder` goes on.

  That is the newest checkpoint that can be read and that metrics.csv reaches,
  or else the beginning. Rows after it are dropped, for their rounds will be run
  again, with the same result. So is the evaluation of a round that was the last
  one when fewer rounds were wanted.

  Args:
    config: Rounds and evaluations wanted now.
    folder: The run folder.
    initial_state: The state before round 1; gives structure, shapes, dtypes.
    is_last: Tells of a round and the state after it whether the run ends there.
    report: Called with a line about what is passed over.
  """
  rows = [
      row if _keeps_evaluation(config.run, r)
      else records.without_evaluation(row)
      for r, row in enumerate(
          records.read_rows(folder.metrics_path, records.columns_of(config))
      )
  ]
  round_num, state = 0, initial_state
  found = checkpoints.load_newest(
      folder.checkpoints_path, len(rows) - 1, report
  )
  if found:
    round_num = found[0]
    state = unflatten_state(initial_state, found[1])
  rows = rows[: round_num + 1]
  if not rows:
    return Start(0, state, [], {'round': 0})
  last = rows[-1]
  is_due = is_evaluated(config.run, round_num, is_last(round_num, state))
  if is_due and not last['population_loss']:
    return Start(round_num, state, rows[:-1], last)
  return Start(round_num, state, rows, None)


def _keeps_evaluation(config: config_lib.RunConfig, round_num: int) -> bool:
  # A run that ends by itself has always had the same last round.
  is_last = config.rounds in (None, round_num)
  return is_evaluated(config, round_num, is_last)


def flatten_state(state: Any) -> list[np.ndarray]:
  """Returns the leaves of a state as arrays."""
  return [np.asarray(leaf) for leaf in tf.nest.flatten(state)]


def unflatten_state(like: Any, leaves: list[np.ndarray]) -> Any:
  """Returns a state with the structure of `like` and the given leaves.

  Raises:
    ValueError: If number, shapes or dtypes of the leaves differ from `like`.
  """
  expected = [(leaf.shape, leaf.dtype) for leaf in flatten_state(like)]
  found = [(leaf.shape, leaf.dtype) for leaf in leaves]
  if expected != found:
    raise ValueError(
        'leaves must have the shapes and dtypes of the state of this program, '
        f'{expected}; found {found}.'
    )
  tensors = [tf.convert_to_tensor(leaf) for leaf in leaves]
  return tf.nest.pack_sequence_as(like, tensors)
