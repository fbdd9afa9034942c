"""The tables of Appendix D from the command line."""

import pandas as pd

from baselines.figures import main
from tests.figures import horizon_cases
from tests.figures import rate_cases as cases


def _draw(tmp_path, *arguments):
  return main.main([
      'rates_table', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.md'), *arguments,
  ])


def test_markdown_and_csv_are_written(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  cases.write_decay(tmp_path / 'runs' / 'x')
  csv = tmp_path / 'new' / 'a.csv'
  assert _draw(tmp_path, '--csv', str(csv)) == 0
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
  assert _draw(tmp_path, '--selected_by', 'population_loss') == 0
  assert 'population_loss' in (tmp_path / 'new' / 'a.md').read_text()


def test_runs_without_the_loss_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs', without='loss_before_training')
  horizon_cases.assert_refused(
      capsys, _draw(tmp_path), 'has no loss_before_training'
  )
