"""LocalUpdate and CEAL as TensorFlow Federated processes, run in-process.

The names below are imported when they are first used, so `theta` and `theory`
start without TensorFlow.
"""

import importlib
from typing import Any

__version__ = '0.1.0'

_PUBLIC = {
    'CealProcess': 'tff_localupdate.ceal.process',
    'InProcessContext': 'tff_localupdate.execution',
    'LocalSteps': 'tff_localupdate.local_update.local_steps',
    'LocalUpdateProcess': 'tff_localupdate.local_update.process',
    'PlateauRule': 'tff_localupdate.local_update.plateau',
    'QuantizedMeanFactory': 'tff_localupdate.compression.aggregators',
    'RateSchedule': 'tff_localupdate.local_update.schedules',
    'Theta': 'tff_localupdate.theta',
    'build_ceal': 'tff_localupdate.ceal.process',
    'build_local_update': 'tff_localupdate.local_update.process',
    'build_local_update_decay': 'tff_localupdate.local_update.decay',
    'build_local_update_epochs': 'tff_localupdate.local_update.epochs',
    'build_local_update_learning_process':
        'tff_localupdate.local_update.learning_process',
    'build_maml': 'tff_localupdate.local_update.maml',
    'build_scheduled': 'tff_localupdate.local_update.schedules',
    'compile_process': 'tff_localupdate.execution',
    'parse_theta': 'tff_localupdate.theta',
    'set_default_context': 'tff_localupdate.execution',
}

__all__ = tuple(_PUBLIC)


def __getattr__(name: str) -> Any:
  if name not in _PUBLIC:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
  return sorted(set(globals()) | set(__all__))
