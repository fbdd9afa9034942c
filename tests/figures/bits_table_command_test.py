"""Table I from the command line."""

import pandas as pd
import pytest

from baselines.figures import main
from tests.figures import horizon_cases as cases


def test_markdown_and_csv_are_written(tmp_path, capsys):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', task={'model': 'row'})
  output, csv = tmp_path / 'new' / 'a.md', tmp_path / 'new' / 'a.csv'
  code = main.main([
      'bits_table', '--runs', str(tmp_path / 'a'), '--runs',
      str(tmp_path / 'b'), '--output', str(output), '--csv', str(csv),
  ])
  assert code == 0
  lines = output.read_text().splitlines()
  assert lines[0] == (
      '| task | algorithm | code | runs | regret | uplink | downlink | rounds '
      '| uplink / FedPAQ | uplink / FedAvg | downlink / FedAvg |'
  )
  assert lines[4] == (
      '| scaled_regression row_sum (synthetic) | CEAL | signed_unary | 2 '
      '| 18.00 (2.83) | 19.00 (1.41) | 16.00 (4.24) | 2.0 | 23.8% | 3.0% '
      '| 2.5% |'
  )
  assert len(lines) == 8 + 2 * 4
  table = pd.read_csv(csv)
  assert table.regret_mean.tolist() == [19, 22, 18] * 2
  said = capsys.readouterr().out.splitlines()
  assert len(said) == 1 + 6 + 2 and said[-2:] == [str(output), str(csv)]


def test_table_alone_is_written(tmp_path, capsys):
  cases.write_all(tmp_path / 'a')
  output = tmp_path / 'a.md'
  code = main.main(
      ['bits_table', '--runs', str(tmp_path / 'a'), '--output', str(output)]
  )
  assert code == 0 and output.exists()
  assert capsys.readouterr().out.splitlines()[-1] == str(output)


def test_bad_runs_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'a', without=['sent'])
  arguments = ['--output', str(tmp_path / 'a.md')]
  code = main.main(['bits_table', '--runs', str(tmp_path / 'a'), *arguments])
  cases.assert_refused(capsys, code, 'has no sent.')
  code = main.main(['bits_table', '--runs', str(tmp_path / 'c'), *arguments])
  cases.assert_refused(capsys, code, 'has no config.json')
  assert not (tmp_path / 'a.md').exists()


def test_output_must_be_markdown(capsys):
  with pytest.raises(SystemExit) as caught:
    main.main(['bits_table', '--runs', 'a', '--output', 'a.png'])
  assert caught.value.code == 2
  assert 'must end in one of .md' in capsys.readouterr().err
