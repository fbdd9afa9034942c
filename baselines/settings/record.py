"""Settings as JSON: what a run folder keeps, and what names a run."""

import dataclasses
import hashlib
import json
from typing import Any

from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.settings import schema

# Settings that may change when a run is continued, and so are no part of its
# identity: they do not change what happens in any round.
CHANGEABLE = ('rounds', 'rounds_per_checkpoint', 'require_gpu')

_DIGEST_LENGTH = 10
_SYMBOLS = {
    'client_learning_rate': 'gamma',
    'server_learning_rate': 'eta',
    'step_size': 'eta',
}

Tree = dict[str, dict[str, schema.Value]]


def to_tree(config: experiment.ExperimentConfig) -> Tree:
  """Returns all settings in use, by component and name.

  Settings of a choice not taken (Yogi's under SGD) are absent, and those that
  are not recorded at their default.
  """
  tree = {component: {} for component in config.components}
  for component, values in config.components.items():
    for field in dataclasses.fields(values):
      value = getattr(values, field.name)
      if schema.is_recorded(field, value):
        place = field.metadata['recorded_in'] or component
        tree[place][field.name] = value
  name = algorithms.algorithm_name(config.algorithm)
  tree['algorithm'] = {'algorithm': name, **tree['algorithm']}
  return tree


def settings(config: experiment.ExperimentConfig) -> dict[str, schema.Value]:
  """Returns the settings of `to_tree` by name alone."""
  return {k: v for part in to_tree(config).values() for k, v in part.items()}


def from_tree(tree: Any) -> experiment.ExperimentConfig:
  """Rebuilds the settings that `to_tree` returned.

  Raises ValueError if a component or setting is missing, unknown or refused.
  """
  names = [f.name for f in dataclasses.fields(experiment.ExperimentConfig)]
  _check_names('config', tree, ['algorithm'], names)
  entry = algorithms.ALGORITHMS.get(tree['algorithm'].get('algorithm'))
  if entry is None:
    raise ValueError(
        f'algorithm must be one of {", ".join(algorithms.ALGORITHMS)}; found '
        f'{tree["algorithm"].get("algorithm")!r}.'
    )
  kinds = _component_types(entry)
  _check_names('config', tree, list(kinds))
  parts = {name: dict(tree[name]) for name in kinds}
  del parts['algorithm']['algorithm']
  for name, kind in kinds.items():
    for field in dataclasses.fields(kind):
      place = parts.get(field.metadata['recorded_in'], {})
      if field.name in place:
        parts[name][field.name] = place.pop(field.name)
  components = {}
  for name, kind in kinds.items():
    values = parts[name]
    fields = dataclasses.fields(kind)
    _check_names(
        name,
        values,
        required=[f.name for f in fields if schema.is_required(f)],
        optional=[f.name for f in fields if not schema.is_required(f)],
    )
    components[name] = kind(**values)
  return experiment.ExperimentConfig(**components)


def to_json(config: experiment.ExperimentConfig) -> str:
  """Returns the settings in use as indented JSON text."""
  return json.dumps(to_tree(config), indent=2)


def run_id(config: experiment.ExperimentConfig) -> str:
  """Returns a short name that is the same for the same experiment, always.

  The task, the algorithm and the rates, then a digest of all settings in use
  but those that may change when a run is continued.
  """
  tree = {
      component: {k: v for k, v in values.items() if k not in CHANGEABLE}
      for component, values in to_tree(config).items()
  }
  text = json.dumps(tree, sort_keys=True)
  digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
  return '-'.join([config.task.task, *_readable(config), digest])


def differences(
    saved: experiment.ExperimentConfig, asked: experiment.ExperimentConfig
) -> dict[str, tuple[schema.Value, schema.Value]]:
  """Returns the settings that differ, as name -> (saved, asked) value."""
  old, new = settings(saved), settings(asked)
  names = list(dict.fromkeys([*old, *new]))
  return {
      name: (setting_value(saved, name), setting_value(asked, name))
      for name in names
      if old.get(name) != new.get(name)
  }


def setting_value(
    config: experiment.ExperimentConfig, name: str
) -> schema.Value:
  """Returns a setting, also one not recorded at its default; None if absent."""
  if name == 'algorithm':
    return algorithms.algorithm_name(config.algorithm)
  for part in config.components.values():
    if hasattr(part, name):
      return getattr(part, name)
  return None


def _readable(config: experiment.ExperimentConfig) -> list[str]:
  """What tells runs apart at a glance: the algorithm, unless usual, and rates.
  """
  name = algorithms.algorithm_name(config.algorithm)
  parts = [] if name == 'local_update' else [name]
  for rate, symbol in _SYMBOLS.items():
    if config.rates.get(rate) is not None:
      parts.append(f'{symbol}{config.rates[rate]:g}')
  return parts


def _component_types(entry: algorithms.AlgorithmEntry) -> dict[str, type]:
  types = {
      'task': experiment.TaskConfig,
      'algorithm': entry.config_type,
      'run': experiment.RunConfig,
      'execution': experiment.ExecutionConfig,
  }
  if entry.has_server_optimizer:
    types['server_optimizer'] = experiment.ServerOptimizerConfig
    types['rate'] = experiment.RateConfig
  return types


def _check_names(
    where: str, found: Any, required: list[str], optional: list[str] = ()
) -> None:
  if not isinstance(found, dict):
    raise ValueError(f'{where} must be a JSON object, found {found!r}.')
  missing = sorted(set(required) - set(found))
  unknown = sorted(set(found) - set(required) - set(optional))
  if missing or unknown:
    raise ValueError(
        f'{where} must have exactly the known settings; missing: {missing}, '
        f'unknown: {unknown}.'
    )
