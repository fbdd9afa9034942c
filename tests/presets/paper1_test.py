"""Every panel of paper 1 at every scale: what would run, and how much of it."""

import contextlib
import json
import sqlite3

import pytest

from baselines import command
from baselines.settings import commands
from baselines.settings import experiment
from baselines.settings import flags
from baselines.sweeps import grid
from baselines.sweeps import main

_OWN = (grid.GridConfig, commands.SweepOutputConfig)
_TASKS = {
    'femnist': ('2a', '5a', '8a'),
    'cifar100': ('2b', '3', '4', '5b', '8b'),
    'shakespeare': ('2c', '5c', '8c'),
    'stackoverflow_tag': ('6a', '7a', '9a'),
    'stackoverflow_word': ('6b', '7b', '9b'),
}
_PANELS = {panel: task for task, found in _TASKS.items() for panel in found}
_SCALES = ('paper', 'cpu', 'tiny')
_STUDIES = list(_TASKS) + [f'fig{panel}' for panel in _PANELS]
# Flags that go after others, and parts that others are made of.
_LATER = [f'{scale}_{task}' for scale in ('cpu', 'tiny') for task in _TASKS]
_LATER += ['cpu', 'cpu_long', 'tiny', 'tiny_decay']
_PARTS = ['common', 'decay', 'stackoverflow']
# Numbers of gammas and of etas in the grid of each task.
_GRIDS = {
    'paper': {**dict.fromkeys(_TASKS, (6, 9)), 'stackoverflow_tag': (8, 9)},
    'cpu': dict.fromkeys(_TASKS, (4, 4)),
    'tiny': dict.fromkeys(_TASKS, (3, 2)),
}
_ROUNDS = {'cpu': 300, 'tiny': 6}


def _task(study):
  return _PANELS.get(study.removeprefix('fig'), study)


def _arguments(study, scale, data_dir):
  presets = [study]
  if scale != 'paper':
    presets.append(f'{scale}_{_task(study)}')
  if scale == 'tiny' and study.startswith(('fig8', 'fig9')):
    presets.append('tiny_decay')
  found = [f'--preset=paper1_{preset}' for preset in presets]
  return found if scale == 'tiny' else [*found, f'--data_dir={data_dir}']


def _points(study, scale='paper', data_dir='d', *arguments):
  arguments = [*_arguments(study, scale, data_dir), *arguments]
  configs, _ = grid.plan_points(arguments, 'A command.', _OWN[1])
  return configs


def _rates(points):
  return [tuple(point.rates.values()) for point in points]


@pytest.fixture(scope='module', name='data_dir')
def _data_dir(tmp_path_factory):
  """Databases of TFF without an example, but with as many clients as needed."""
  folder = tmp_path_factory.mktemp('data')
  splits = {
      'emnist_all': ('all', 'digits_only'), 'cifar100': ('',),
      'shakespeare': ('',), 'stackoverflow': ('',),
  }
  for name, prefixes in splits.items():
    path = folder / f'{name}.sqlite'
    with contextlib.closing(sqlite3.connect(path)) as file, file:
      file.execute(
          'CREATE TABLE client_metadata (client_id, split_name, num_examples)'
      )
      file.execute('CREATE TABLE examples (split_name, client_id)')
      rows = [
          (str(client), f'{prefix}_{split}'.lstrip('_'), 1)
          for prefix in prefixes
          for split in ('train', 'test')
          for client in range(50)
      ]
      file.executemany('INSERT INTO client_metadata VALUES (?, ?, ?)', rows)
  (folder / 'stackoverflow.word_count').write_text('a 2\nb 1\n')
  (folder / 'stackoverflow.tag_count').write_text(json.dumps({'a': 1}))
  return folder


def test_every_preset_is_known_here():
  found = {n for n in flags.names() if n.startswith('paper1_')}
  expected = [*_STUDIES, *_LATER, *_PARTS]
  assert found == {f'paper1_{name}' for name in expected}
  assert len(_PANELS) == 17


@pytest.mark.parametrize('scale', _SCALES)
@pytest.mark.parametrize('study', _STUDIES)
def test_dry_run_lists_every_run(
    study, scale, data_dir, tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  arguments = [*_arguments(study, scale, data_dir), '--dry_run']
  assert main.main(arguments) == command.FINISHED
  lines = capsys.readouterr().out.splitlines()
  gammas, etas = _GRIDS[scale][_task(study)]
  expected = {'2': gammas, '3': gammas, '4': 3, '6': gammas, '8': etas,
              '9': etas}
  figure = study.removeprefix('fig')[0]
  assert len(lines) == expected.get(figure, gammas * etas)
  folder = f'runs/paper1_{_task(study)}/'
  assert all(line.startswith(f'new      {folder}') for line in lines)
  assert not any(tmp_path.iterdir())


@pytest.mark.parametrize('scale', _SCALES)
@pytest.mark.parametrize(
    'panel', [p for p in _PANELS if p[0] not in '489']
)
def test_runs_of_a_panel_are_in_the_grid_of_its_task(panel, scale, data_dir):
  panel_points = _points(f'fig{panel}', scale, data_dir)
  assert set(panel_points) <= set(_points(_PANELS[panel], scale, data_dir))


@pytest.mark.parametrize('scale', ['paper', 'cpu'])
def test_runs_of_figure_4_are_in_the_grid(scale, data_dir):
  points = _points('fig4', scale, data_dir)
  assert _rates(points) == [(r, r) for r in (0.01, 0.1, 1.0)]
  assert set(points) <= set(_points('cifar100', scale, data_dir))


@pytest.mark.parametrize('task', _TASKS)
def test_settings_of_the_paper(task, data_dir):
  # Specification, section 9: M, B, model and server of each task.
  expected = {
      'femnist': (10, 20, 'cnn', 'sgd'),
      'cifar100': (10, 20, 'resnet18', 'sgd'),
      'shakespeare': (10, 4, 'lstm', 'sgd'),
      'stackoverflow_tag': (50, 16, 'logistic', 'yogi'),
      'stackoverflow_word': (50, 16, 'lstm', 'yogi'),
  }[task]
  for point in _points(task, 'paper', data_dir):
    run = point.run
    assert (
        run.clients_per_round, run.batch_size, point.task.model,
        point.server_optimizer.server_optimizer,
    ) == expected
    assert point.task.task == task and point.algorithm.theta == '1:10'
    assert run.client_sampling == 'without_replacement'
    assert run.rounds == (4000 if task == 'cifar100' else 1500)
    assert not point.rate.decays and point.rate.is_constant
  if expected[-1] == 'yogi':
    server = point.server_optimizer
    assert (
        server.yogi_beta_1, server.yogi_beta_2, server.yogi_epsilon,
        server.yogi_initial_accumulator,
    ) == (0.9, 0.99, 1e-5, 0.0)
    assert point.algorithm.loss_before_training == 'full'


def test_grids_hold_what_the_paper_names(data_dir):
  gammas = {g for g, _ in _rates(_points('cifar100', 'paper', data_dir))}
  assert gammas == {0.0, 1e-3, 1e-2, 1e-1, 1.0, 10.0}
  rates = _rates(_points('stackoverflow_tag', 'paper', data_dir))
  assert {100.0, 1000.0} < {g for g, _ in rates}
  etas = sorted({e for _, e in rates})
  assert etas == pytest.approx([10 ** (k / 2) for k in range(-6, 3)])


@pytest.mark.parametrize('panel', [p for p in _PANELS if p[0] in '26'])
@pytest.mark.parametrize('scale', _SCALES)
def test_fixed_eta_is_that_of_the_paper(panel, scale, data_dir):
  rates = _rates(_points(f'fig{panel}', scale, data_dir))
  assert {eta for _, eta in rates} == {0.01}
  assert len({gamma for gamma, _ in rates}) == len(rates)


@pytest.mark.parametrize('panel', [p for p in _PANELS if p[0] in '89'])
def test_decay_is_that_of_the_paper(panel, data_dir):
  constant = {
      tuple(p.rates.values()): p
      for p in _points(_PANELS[panel], 'paper', data_dir)
  }
  starts = {'8a': 0.1, '8b': 1.0, '8c': 1.0, '9a': 100.0, '9b': 1.0}
  for point in _points(f'fig{panel}', 'paper', data_dir):
    rate = point.rate
    assert rate.decay_rule == 'canonical'
    assert (rate.window, rate.patience, rate.cooldown) == (100, 100, 100)
    assert (rate.min_improvement, rate.client_decay, rate.server_decay) == (
        1e-4, 0.1, 0.9
    )
    assert point.rates['client_learning_rate'] == starts[panel]
    assert point.algorithm.loss_before_training == 'full'
    # All else is as in the runs that it is drawn beside.
    other = constant[tuple(point.rates.values())]
    assert (point.task, point.run) == (other.task, other.run)
    assert point.server_optimizer == other.server_optimizer


@pytest.mark.parametrize('task', _TASKS)
@pytest.mark.parametrize('scale', ['cpu', 'tiny'])
def test_scale_changes_size_and_data_alone(task, scale, data_dir):
  paper = _points(task, 'paper', data_dir)[0]
  point = _points(task, scale, data_dir)[0]
  assert point.run.rounds == _ROUNDS[scale]
  same = {'algorithm': 'theta', 'server_optimizer': 'server_optimizer'}
  if scale == 'tiny':
    assert (point.task.task, point.task.data_source) == (task, 'synthetic')
    same.pop('algorithm')
  else:
    letters = task == 'femnist'
    assert point.task.task == ('emnist_digits' if letters else task)
    assert point.run.clients_per_round == paper.run.clients_per_round
    assert point.run.batch_size == paper.run.batch_size
  for component, name in same.items():
    assert getattr(getattr(point, component), name) == getattr(
        getattr(paper, component), name
    )


def test_best_runs_are_longer_at_scale_cpu(data_dir):
  arguments = ['--preset=paper1_cpu_long']
  points = _points('femnist', 'cpu', data_dir, *arguments)
  assert {point.run.rounds for point in points} == {1000}


def test_tiny_decay_can_decay_in_six_rounds(data_dir):
  (point, _) = _points('fig8a', 'tiny', data_dir)
  rate = point.rate
  # A window, the cooldown of the start, and the patience.
  assert rate.window + rate.cooldown + rate.patience < point.run.rounds


def test_rates_found_go_after_a_panel(data_dir):
  found = '--sweep_client_learning_rates=0.3 --sweep_server_learning_rates=0.2'
  points = _points('fig8b', 'cpu', data_dir, f'--sweep_variants={found}')
  assert _rates(points) == [(0.3, 0.2)]
  assert points[0] == experiment.replace_settings(
      _points('fig8b', 'cpu', data_dir)[0],
      client_learning_rate=0.3, server_learning_rate=0.2,
  )
