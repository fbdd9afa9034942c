"""Runs by the fast paths give the numbers of runs by the plain ones."""

import numpy as np
import pandas as pd
import pytest

from baselines.settings import experiment
from baselines.settings import record
from baselines.training import main
from tff_localupdate import execution

_SMALL = (
    '--rounds=2', '--rounds_per_evaluation=2', '--clients_per_round=3',
    '--batch_size=4', '--notensorboard', '--client_learning_rate=0.1',
    '--server_learning_rate=0.5', '--sampling_seed=3',
)
_NOT_COMPUTED = ['round_seconds', 'evaluation_seconds', 'resident_mib']
_CASES = {
    'linear': ('--task=linear_regression',),
    'convolutions': ('--task=digits', '--model=cnn', '--theta=1:3'),
    'characters': ('--task=shakespeare', '--theta=0.5,2'),
    'words': ('--task=stackoverflow_word', '--theta=0.5,2'),
    'tags': (
        '--task=stackoverflow_tag', '--theta=1:3', '--client_learning_rate=100',
        '--server_optimizer=yogi',
    ),
}


@pytest.mark.parametrize('name', _CASES)
def test_plain_paths_give_the_same_numbers(name, tmp_path, monkeypatch):
  chosen = []
  compile_process = execution.compile_process

  def compile_(process, **kwargs):
    chosen.append((kwargs['jit'], kwargs['clients']))
    return compile_process(process, **kwargs)

  monkeypatch.setattr(execution, 'compile_process', compile_)
  tables = []
  for flag in ('--fast_paths', '--nofast_paths'):
    folder = tmp_path / flag
    arguments = [*_SMALL, *_CASES[name], flag, f'--output_dir={folder}']
    assert main.main(arguments) == 0
    tables.append(pd.read_csv(folder / 'metrics.csv'))
  fast, plain = (t.drop(columns=_NOT_COMPUTED) for t in tables)
  assert chosen == [('auto', 'auto'), ('off', 'loop')]
  assert list(fast) == list(plain) and len(fast) > 1
  assert fast.update_norm.max() > 1e-4  # The weights have moved.
  np.testing.assert_allclose(fast, plain, rtol=2e-5, equal_nan=True)


@pytest.mark.parametrize('setting, value', [
    ('jit', 'on'), ('clients', 'parallel'),
])
def test_no_fast_path_is_asked_for_without_fast_paths(setting, value):
  assert experiment.ExecutionConfig(**{setting: value}).fast_paths
  with pytest.raises(ValueError, match=f"{setting} must not be '{value}'"):
    experiment.ExecutionConfig(fast_paths=False, **{setting: value})


def test_records_from_before_the_setting_are_read():
  tree = record.to_tree(experiment.ExperimentConfig())
  assert 'fast_paths' not in tree['execution']
  plain = experiment.replace_settings(
    experiment.ExperimentConfig(), fast_paths=False
  )
  assert record.to_tree(plain)['execution']['fast_paths'] is False
  assert record.from_tree(record.to_tree(plain)) == plain
  assert record.run_id(plain) != record.run_id(
      experiment.ExperimentConfig()
  )
