"""Cumulative regret and bits of repetitions, on one axis of time."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from baselines.figures import horizon_runs
from baselines.figures import load

COLUMNS = ('time_used', 'cumulative_regret', 'cumulative_uplink_bits')


def curve_table(groups: Sequence[horizon_runs.RunGroup]) -> pd.DataFrame:
  """Returns the mean curves of the groups, one below the other.

  Args:
    groups: The groups; those without a finished run have no curve.

  Returns:
    The columns of `mean_curve`, behind `algorithm`, the name of the group.
  """
  curves = []
  for group, name in zip(groups, horizon_runs.name_groups(groups)):
    if group.runs:
      curve = mean_curve(group.runs)
      curve.insert(0, 'algorithm', name)
      curves.append(curve)
  return pd.concat(curves, ignore_index=True)


def mean_curve(runs: Sequence[load.Run]) -> pd.DataFrame:
  """Returns the mean over runs at all times at which one has an exchange.

  Time is the queries of each client so far. Within an exchange the regret is
  interpolated linearly, which is exact where clients stay at one point (CEAL,
  Minibatch-SGD); bits count from the end of the exchange that sent them.

  Args:
    runs: Finished runs of the same settings, at least one.

  Returns:
    A row per time, from 0 to the horizon, with the columns `time_used`, `runs`,
    `cumulative_regret_mean`, `cumulative_regret_sd` (of a sample: n - 1; NaN
    for one run) and `cumulative_uplink_bits_mean`.
  """
  tracks = [_track(run) for run in runs]
  times = np.unique(np.concatenate([track[0] for track in tracks]))
  regrets = np.array([np.interp(times, t, regret) for t, regret, _ in tracks])
  bits = np.array([
      sent[np.searchsorted(t, times, side='right') - 1] for t, _, sent in tracks
  ])
  unknown = np.full(len(times), np.nan)
  return pd.DataFrame({
      'time_used': times.astype(int),
      'runs': len(runs),
      'cumulative_regret_mean': regrets.mean(axis=0),
      'cumulative_regret_sd': (
          regrets.std(axis=0, ddof=1) if len(runs) > 1 else unknown
      ),
      'cumulative_uplink_bits_mean': bits.mean(axis=0),
  })


def _track(run: load.Run) -> tuple[np.ndarray, ...]:
  """Returns time, regret and bits after each round; all are 0 at the start."""
  # Row 0 is the model before training, and has no number of queries.
  return tuple(run.metrics[name].fillna(0.0).to_numpy() for name in COLUMNS)
