"""Figures and tables of paper 1 from the command line."""

import pandas as pd
import pytest

from baselines.figures import main
from baselines.settings import commands
from baselines.sweeps import grid
from tests.results import horizon_cases
from tests.results import rate_cases as cases


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


def _draw_update_norms_command(tmp_path, *arguments):
  return main.main([
      'update_norms', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.png'), *arguments,
  ])


def test_figure_3_has_one_eta(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  csv = tmp_path / 'new' / 'a.csv'
  code = _draw_update_norms_command(
      tmp_path, '--block', '2', '--server_learning_rate', '0.01', '--csv',
      str(csv), '--log_scale',
  )
  assert code == 0
  assert (tmp_path / 'new' / 'a.png').read_bytes().startswith(b'\x89PNG')
  table = pd.read_csv(csv)
  assert table.line.tolist() == ['gamma=0'] * 3 + ['gamma=0.1'] * 3
  assert table['mean'].tolist() == [1.5, 3.5, 5.5, 1, 1, 2]
  assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    'arguments, message',
    [
        ([], 'block must be at most the rounds of the runs, 6, found 1000'),
        (['--server_learning_rate', '7'], 'none has 7, they have 0.01, 0.1'),
        (['--decay'], 'must hold a run of LocalUpdateDecay with decay'),
    ],
)
def test_what_cannot_be_drawn_is_refused_update_norms_command(
    tmp_path, capsys, arguments, message
):
  cases.write_all(tmp_path / 'runs')
  horizon_cases.assert_refused(
      capsys, _draw_update_norms_command(tmp_path, *arguments), message
  )


def test_runs_without_norms_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs', without='update_norm')
  horizon_cases.assert_refused(
      capsys, _draw_update_norms_command(tmp_path), 'has no update_norm'
  )


def test_runs_that_decay_are_drawn_if_asked_for(tmp_path, capsys):
  cases.write_decay(tmp_path / 'runs')
  csv = tmp_path / 'new' / 'a.csv'
  arguments = ['--block', '3', '--csv', str(csv)]
  horizon_cases.assert_refused(
      capsys, _draw_update_norms_command(tmp_path, *arguments),
      'all of LocalUpdateDecay; give --decay to draw them.',
  )
  cases.write_run(tmp_path / 'runs' / '0', *cases.RUNS[0])
  cases.write_decay(tmp_path / 'other' / '1')
  arguments += ['--runs', str(tmp_path / 'other')]
  (tmp_path / 'runs' / 'config.json').unlink()
  for extra, lines, means in (
      ([], ['gamma=0'], [2, 5]),
      (
          ['--decay'], ['gamma=0, eta=0.01', 'decay: gamma=1, eta=0.1'],
          [2, 5, 1, 1],
      ),
  ):
    assert _draw_update_norms_command(tmp_path, *arguments, *extra) == 0
    table = pd.read_csv(csv)
    assert table.line.unique().tolist() == lines
    assert table['mean'].tolist() == means
  assert table.decays.tolist() == [False, False, True, True]


def test_figure_without_lines_is_told_and_kept_update_norms_command(
    tmp_path, capsys
):
  cases.write_run(tmp_path / 'runs', *cases.RUNS[4])
  assert _draw_update_norms_command(tmp_path) == 0
  assert (tmp_path / 'new' / 'a.png').exists()
  assert 'a.png has no lines: each setting' in capsys.readouterr().err




def _write(tmp_path, *arguments):
  return main.main([
      'rate_flags', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.flags'), *arguments,
  ])


def _points(tmp_path):
  sweep = tmp_path / 'sweep.flags'
  sweep.write_text(
      '--sweep_client_learning_rates=5\n--sweep_server_learning_rates=5\n'
  )
  arguments = [
      f'--flagfile={sweep}', f'--flagfile={tmp_path / "new" / "a.flags"}'
  ]
  points, _ = grid.plan_points(
      arguments, 'A command.', commands.SweepOutputConfig
  )
  return [tuple(point.rates.values()) for point in points]


def test_sweep_takes_the_best_rates(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  assert _write(tmp_path) == 0
  assert _points(tmp_path) == [(0.0, 0.01), (0.1, 0.1), (1.0, 0.1)]
  said = capsys.readouterr().out
  assert said == f'{tmp_path / "new" / "a.flags"}\n'


def test_sweep_takes_the_start(tmp_path):
  cases.write_all(tmp_path / 'runs')
  assert _write(tmp_path, '--start', '--at_most', '0.1') == 0
  assert _points(tmp_path) == [(0.1, 0.1)]
  assert _write(tmp_path, '--start') == 0
  assert _points(tmp_path) == [(1.0, 0.1)]


@pytest.mark.parametrize(
    'arguments, message',
    [
        (['--at_most', '1'], 'at_most would be ignored without start, found 1'),
        (['--start', '--runs', 'nothing'], 'nothing has no config.json'),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, capsys, arguments, message):
  cases.write_all(tmp_path / 'runs')
  horizon_cases.assert_refused(capsys, _write(tmp_path, *arguments), message)


def test_file_must_be_one_of_flags(tmp_path, capsys):
  with pytest.raises(SystemExit) as error:
    main.main(['rate_flags', '--runs', 'a', '--output', 'a.txt'])
  assert error.value.code == 2
  assert "must end in .flags, found 'a.txt'" in capsys.readouterr().err


def _draw_rates_table_command(tmp_path, *arguments):
  return main.main([
      'rates_table', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.md'), *arguments,
  ])


def test_markdown_and_csv_are_written(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  cases.write_decay(tmp_path / 'runs' / 'x')
  csv = tmp_path / 'new' / 'a.csv'
  assert _draw_rates_table_command(tmp_path, '--csv', str(csv)) == 0
  lines = (tmp_path / 'new' / 'a.md').read_text().splitlines()
  assert lines[:5] == [
      '| gamma | femnist cnn (synthetic) |', '| --- | --- |',
      '| 0 | 0.01* |', '| 0.1 | 0.1* |', '| 1 | 0.1* |',
  ]
  table = pd.read_csv(csv)
  assert table.server_learning_rate.tolist() == [0.01, 0.1, 0.1]
  said = capsys.readouterr().out.splitlines()
  assert said[-2:] == [str(tmp_path / 'new' / 'a.md'), str(csv)]


def test_rule_may_be_another(tmp_path):
  cases.write_all(tmp_path / 'runs')
  assert _draw_rates_table_command(
      tmp_path, '--selected_by', 'population_loss'
  ) == 0
  assert 'population_loss' in (tmp_path / 'new' / 'a.md').read_text()


def test_runs_without_the_loss_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs', without='loss_before_training')
  horizon_cases.assert_refused(
      capsys, _draw_rates_table_command(tmp_path), 'has no loss_before_training'
  )
