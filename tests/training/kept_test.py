"""What is kept is built once; what is made of data, for one task at a time."""

from baselines.settings import experiment
from baselines.training import workbench


def _seeds(*seeds):
  return [experiment.TaskConfig('digits', data_seed=seed) for seed in seeds]


def test_each_key_is_built_once():
  made, store = [], workbench.Kept()
  for key in ('a', 'b', 'a'):
    store.make(key, lambda key=key: made.append(key) or key)
  assert made == ['a', 'b']


def test_the_data_of_the_next_task_take_the_place_of_those_before():
  made, store = [], workbench.Kept()
  store.make('program', lambda: made.append('program'))
  for task in _seeds(1, 1, 2, 2, 1):
    for key in ('task', 'evaluator'):
      store.make_of_data(
          task, key, lambda t=task, k=key: made.append((t.data_seed, k))
      )
  store.make('program', lambda: made.append('program'))
  assert made == ['program'] + [
      (seed, key) for seed in (1, 2, 1) for key in ('task', 'evaluator')
  ]
