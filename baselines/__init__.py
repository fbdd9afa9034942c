"""The experiments, and their Python interface.

    import baselines

    run = baselines.run(task='digits', client_learning_rate=0.1, rounds=100)
    run.metrics.plot(x='round', y='loss_before_training')
    table = baselines.sweep({'theta': ['1:5', '1:10']}, rounds=100)

  run(**settings)           runs one experiment; a `Run`
  sweep(grid, **settings)   runs every combination; a DataFrame, a row per run
  load(folders)             reads what was run before; the same DataFrame
  Run                       metrics, final weights, status, settings, `save`
  InputError                what is raised of settings that are refused
  Interrupted               what is raised when a run was interrupted and saved

The commands are thin over these: a setting has the name of its flag, see
`localupdate-train --help`, and is refused in the same words. Nothing is loaded
until it is used: TensorFlow only when something runs.
"""

import importlib
from typing import Any

# Where each name is defined.
_OFFERED = {
    'run': 'baselines.training.main:train',
    'sweep': 'baselines.sweeps.main:sweep',
    'load': 'baselines.sweeps.main:load',
    'Run': 'baselines.training.main:Run',
    'InputError': 'baselines.command:InputError',
    'Interrupted': 'baselines.training.main:Interrupted',
}
__all__ = tuple(_OFFERED)


def __getattr__(name: str) -> Any:
  if name not in _OFFERED:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}.')
  module, _, attribute = _OFFERED[name].partition(':')
  return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
  return sorted({*globals(), *_OFFERED})
