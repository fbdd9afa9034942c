"""Settings of the training command are no part of the experiment."""

import dataclasses

import pytest

from baselines.experiment import config
from baselines.experiment import output_config


def test_defaults():
  assert dataclasses.asdict(output_config.OutputConfig()) == {
      'output_dir': None, 'tensorboard': True, 'dry_run': False,
  }


def test_no_setting_has_the_name_of_one_of_the_experiment():
  own = {f.name for f in dataclasses.fields(output_config.OutputConfig)}
  for component in config.ExperimentConfig().components.values():
    assert not own & {f.name for f in dataclasses.fields(component)}


def test_refused():
  with pytest.raises(ValueError, match='dry_run must be true or false'):
    output_config.OutputConfig(dry_run=1)
  with pytest.raises(ValueError, match='output_dir must not be empty, found'):
    output_config.OutputConfig(output_dir=' ')
