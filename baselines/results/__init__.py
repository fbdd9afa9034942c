"""Run folders, and what becomes of them: reading, grouping, naming, ranking.

`folder` and `records` are the format of a run folder, for those who write one
and for those who read it. `load_runs` gives one row per run and `load_curves`
the rounds of some columns; see `baselines.results.runs`. Nothing here imports
TensorFlow, and Pandas only where a table is made.
"""

from typing import Any

_OFFERED = ('load_curves', 'load_runs')


def __getattr__(name: str) -> Any:
  if name not in _OFFERED:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}.')
  from baselines.results import runs

  return getattr(runs, name)
