"""Settings of the training command are no part of the experiment."""

import dataclasses

import pytest

from baselines.settings import commands
from baselines.settings import experiment


def test_defaults():
  assert dataclasses.asdict(commands.OutputConfig()) == {
      'output_dir': None, 'tensorboard': True, 'dry_run': False,
  }


def test_no_setting_has_the_name_of_one_of_the_experiment():
  own = {f.name for f in dataclasses.fields(commands.OutputConfig)}
  for component in experiment.ExperimentConfig().components.values():
    assert not own & {f.name for f in dataclasses.fields(component)}


def test_refused():
  with pytest.raises(ValueError, match='dry_run must be true or false'):
    commands.OutputConfig(dry_run=1)
  with pytest.raises(ValueError, match='output_dir must not be empty, found'):
    commands.OutputConfig(output_dir=' ')
