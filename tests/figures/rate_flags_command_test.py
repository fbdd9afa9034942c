"""Flags of the best rates from the command line; a sweep takes them."""

import pytest

from baselines.figures import main
from baselines.settings import commands
from baselines.sweeps import grid
from tests.figures import horizon_cases
from tests.figures import rate_cases as cases

_OWN = (grid.GridConfig, commands.SweepOutputConfig)


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
  points, _ = grid.plan_points(arguments, 'A command.', _OWN[1])
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
