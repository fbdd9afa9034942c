"""Figures 2 and 4 to 9 from the command line."""

import pandas as pd
import pytest

from baselines.figures import main
from tests.figures import horizon_cases
from tests.figures import rate_cases as cases


@pytest.fixture(name='folder')
def _folder(tmp_path):
  cases.write_all(tmp_path / 'runs')
  cases.write_decay(tmp_path / 'decay')
  return tmp_path


def _draw(folder, *arguments):
  return main.main([
      'curves', '--runs', str(folder / 'runs'), '--output',
      str(folder / 'new' / 'a.png'), *arguments,
  ])


def _lines(folder, *arguments):
  csv = folder / 'new' / 'a.csv'
  assert _draw(folder, '--csv', str(csv), *arguments) == 0
  return pd.read_csv(csv).groupby('line', sort=False)


def test_figure_2_has_one_eta_and_no_diverged_gamma(folder, capsys):
  lines = _lines(folder, '--server_learning_rate', '0.01')
  assert list(lines.groups) == ['gamma=0', 'gamma=0.1']
  assert lines.get_group('gamma=0')['mean'].tolist() == [6, 3, 1]
  assert (folder / 'new' / 'a.png').read_bytes().startswith(b'\x89PNG')
  assert len(capsys.readouterr().out.splitlines()) == 2


def test_figure_4_has_equal_rates(folder):
  lines = _lines(folder, '--select', 'equal', '--client_learning_rates', '0.1')
  assert list(lines['mean'].apply(list)) == [[6, 2, 0.5]]


def test_figure_5_has_the_best_eta_of_each_gamma(folder):
  lines = _lines(folder, '--select', 'best')
  assert list(lines.groups) == [
      'gamma=0, eta=0.01', 'gamma=0.1, eta=0.1', 'gamma=1, eta=0.1'
  ]
  assert list(lines['mean'].last()) == [1, 0.5, 4]


def test_figure_7_has_the_smoothed_loss_of_the_round(folder):
  lines = _lines(
      folder, '--select', 'best', '--quantity', 'loss_before_training',
      '--smoothing', '2',
  )
  assert lines['mean'].apply(list).iloc[0] == [5.5, 4.5, 3.5, 2.5, 1.5]


def test_figure_8_has_the_decay_beside_the_best(folder):
  lines = _lines(
      folder, '--select', 'best', '--decay', '--runs', str(folder / 'decay')
  )
  assert list(lines.groups) == [
      'gamma=0, eta=0.01', 'gamma=0.1, eta=0.1', 'gamma=1, eta=0.1',
      'decay: gamma=1, eta=0.1',
  ]
  assert list(lines['mean'].last()) == [1, 0.5, 4, 0.5]


def test_decay_is_left_out_unless_asked_for(folder):
  lines = _lines(folder, '--runs', str(folder / 'decay'))
  assert len(lines) == 5


@pytest.mark.parametrize(
    'arguments, message',
    [
        (['--decay'], 'must hold a run of LocalUpdateDecay with decay'),
        (['--last_rounds', '5'], "would be ignored: select is 'all', found 5"),
        (['--server_learning_rate', '7'], 'none has 7, they have 0.01, 0.1'),
        (
            ['--client_learning_rates', '0,5'],
            'run of each client_learning_rate asked for; none has 5, they have '
            '0, 0.1, 1.',
        ),
        (
            ['--client_learning_rates', '0,0.1', '--select', 'equal'],
            'none has 0, they have 0.1.',
        ),
        (['--quantity', 'test_loss'], 'has no test_loss'),
        (['--smoothing', '9'], 'at least 9 values'),
        (
            ['--select', 'best', '--server_learning_rate', '0.01',
             '--client_learning_rates', '1'],
            'a run that has finished to select the best',
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(folder, capsys, arguments, message):
  horizon_cases.assert_refused(capsys, _draw(folder, *arguments), message)
  assert not (folder / 'new').exists()


def test_several_tasks_are_refused(folder, capsys):
  cases.write_all(folder / 'other', task={'task': 'cifar100'})
  code = _draw(folder, '--runs', str(folder / 'other'))
  horizon_cases.assert_refused(capsys, code, 'must be of one task')


def test_only_runs_that_decay_are_refused_unless_asked_for(folder, capsys):
  arguments = [
      'curves', '--runs', str(folder / 'decay'), '--output',
      str(folder / 'new' / 'a.png'),
  ]
  horizon_cases.assert_refused(
      capsys, main.main(arguments),
      'runs must hold a run whose rates do not decay, found none among 1 '
      'settings, all of LocalUpdateDecay; give --decay to draw them.',
  )
  assert main.main([*arguments, '--decay']) == 0
  said = capsys.readouterr()
  assert said.out == f'{folder / "new" / "a.png"}\n' and not said.err


def test_figure_without_lines_is_told_and_kept(folder, capsys):
  arguments = ['--client_learning_rates', '1', '--server_learning_rate', '0.01']
  assert _draw(folder, *arguments) == 0
  output = folder / 'new' / 'a.png'
  assert output.exists()
  said = capsys.readouterr()
  assert said.out == f'{output}\n'
  assert said.err == (
      f'localupdate-figures: {output} has no lines: each setting has a run '
      'that has diverged, or no values; the caption counts the runs.\n'
  )
  assert _draw(folder) == 0 and not capsys.readouterr().err
