"""Settings of a task: defaults filled in, nonsense refused."""

import dataclasses

import pytest

from baselines.settings import experiment


def test_task_defaults_are_filled_in():
  task = experiment.TaskConfig(task='digits')
  assert dataclasses.asdict(task) == {
      'task': 'digits',
      'model': 'cnn',
      'data_source': 'embedded',
      'data_dir': None,
      'data_seed': 1,
  }
  assert experiment.TaskConfig(task='emnist_digits').data_seed is None


def test_spellings_of_a_folder_are_one():
  configs = {
      experiment.TaskConfig('femnist', data_source='cache', data_dir=text)
      for text in ('a/b', './a/b', 'a/b/', 'a//b', 'a/c/../b')
  }
  assert len(configs) == 1


@pytest.mark.parametrize('wrong, message', [
    ({'task': 'digitz'}, "task must be one of .*found 'digitz'"),
    ({'model': 'vgg'}, "model .*'vgg'"),
    ({'data_source': 'cache'}, "data_source .*'cache'"),
    ({'data_dir': 'x'}, "data_dir would be ignored.*'x'"),
    ({'task': 'femnist', 'data_source': 'cache'}, 'data_dir must be given'),
    ({'task': 'femnist', 'data_seed': 2}, 'data_seed would be ignored'),
    ({'task': 'quadratics', 'data_seed': 2}, 'data_seed would be ignored'),
    ({'data_seed': -1}, 'data_seed must be at least 0'),
    ({'data_seed': 2**63}, 'data_seed must be less than 9223372036854775808'),
])
def test_task_refused(wrong, message):
  with pytest.raises(ValueError, match=message):
    experiment.TaskConfig(**wrong)
