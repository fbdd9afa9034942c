"""Figure 3 from the command line."""

import pandas as pd
import pytest

from baselines.figures import main
from tests.figures import horizon_cases
from tests.figures import rate_cases as cases


def _draw(tmp_path, *arguments):
  return main.main([
      'update_norms', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.png'), *arguments,
  ])


def test_figure_3_has_one_eta(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  csv = tmp_path / 'new' / 'a.csv'
  code = _draw(
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
def test_what_cannot_be_drawn_is_refused(
    tmp_path, capsys, arguments, message
):
  cases.write_all(tmp_path / 'runs')
  horizon_cases.assert_refused(capsys, _draw(tmp_path, *arguments), message)


def test_runs_without_norms_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs', without='update_norm')
  horizon_cases.assert_refused(capsys, _draw(tmp_path), 'has no update_norm')


def test_runs_that_decay_are_drawn_if_asked_for(tmp_path, capsys):
  cases.write_decay(tmp_path / 'runs')
  csv = tmp_path / 'new' / 'a.csv'
  arguments = ['--block', '3', '--csv', str(csv)]
  horizon_cases.assert_refused(
      capsys, _draw(tmp_path, *arguments),
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
    assert _draw(tmp_path, *arguments, *extra) == 0
    table = pd.read_csv(csv)
    assert table.line.unique().tolist() == lines
    assert table['mean'].tolist() == means
  assert table.decays.tolist() == [False, False, True, True]


def test_figure_without_lines_is_told_and_kept(tmp_path, capsys):
  cases.write_run(tmp_path / 'runs', *cases.RUNS[4])
  assert _draw(tmp_path) == 0
  assert (tmp_path / 'new' / 'a.png').exists()
  assert 'a.png has no lines: each setting' in capsys.readouterr().err
