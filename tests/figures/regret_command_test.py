"""Figures and tables of paper 2 from the command line."""

import pandas as pd
import pytest

from baselines.figures import main
from tests.results import horizon_cases as cases


def test_files_are_written_and_the_table_is_exact(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  output, csv = tmp_path / 'new' / 'a.png', tmp_path / 'new' / 'a.csv'
  code = main.main([
      'regret', '--runs', str(tmp_path / 'runs'), '--output', str(output),
      '--csv', str(csv), '--log_scale',
  ])
  assert code == 0 and output.read_bytes().startswith(b'\x89PNG')
  assert capsys.readouterr().out == f'{output}\n{csv}\n'
  table = pd.read_csv(csv)
  assert list(table.columns) == [
      'algorithm', 'time_used', 'runs', 'cumulative_regret_mean',
      'cumulative_regret_sd', 'cumulative_uplink_bits_mean',
  ]
  last = table[table.time_used == 100]
  assert last.cumulative_regret_mean.tolist() == [19, 22, 18]


def _draw(tmp_path, *folders):
  runs = [a for folder in folders for a in ('--runs', str(folder))]
  return main.main(['regret', *runs, '--output', str(tmp_path / 'a.png')])


def test_several_tasks_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'a')
  cases.write_all(tmp_path / 'b', task={'model': 'row'})
  code = _draw(tmp_path, tmp_path / 'a', tmp_path / 'b')
  cases.assert_refused(capsys, code, 'must be of one task')
  assert not (tmp_path / 'a.png').exists()


def test_runs_without_regret_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'a', without=['cumulative_regret'])
  code = _draw(tmp_path, tmp_path / 'a')
  cases.assert_refused(capsys, code, 'has no cumulative_regret.')


def test_files_are_written_and_the_table_is_exact_regret_against_bits_command(
    tmp_path, capsys
):
  cases.write_all(tmp_path / 'runs')
  output, csv = tmp_path / 'new' / 'a.png', tmp_path / 'new' / 'a.csv'
  code = main.main([
      'regret_against_bits', '--runs', str(tmp_path / 'runs'), '--output',
      str(output), '--csv', str(csv),
  ])
  assert code == 0 and output.read_bytes().startswith(b'\x89PNG')
  assert capsys.readouterr().out == f'{output}\n{csv}\n'
  last = pd.read_csv(csv).query('time_used == 100')
  assert last.cumulative_uplink_bits_mean.tolist() == [640, 80, 19]


def test_runs_without_bits_are_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'a', without=['cumulative_uplink_bits'])
  code = main.main([
      'regret_against_bits', '--runs', str(tmp_path / 'a'), '--output',
      str(tmp_path / 'a.png'),
  ])
  cases.assert_refused(capsys, code, 'has no cumulative_uplink_bits.')


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
  assert 'must end in .md' in capsys.readouterr().err


def test_files_are_written_and_the_table_is_exact_codes_table_command(
    tmp_path, capsys
):
  # Bits are enough: no regret need be counted.
  cases.write_all(tmp_path / 'runs', without=['cumulative_regret'])
  output, csv = tmp_path / 'new' / 'a.md', tmp_path / 'new' / 'a.csv'
  code = main.main([
      'codes_table', '--runs', str(tmp_path / 'runs'), '--output', str(output),
      '--csv', str(csv),
  ])
  assert code == 0
  assert output.read_text().splitlines()[4] == (
      '| scaled_regression row_sum (synthetic) | CEAL | uplink | - | - '
      '| 19.00 (1.41) |'
  )
  assert pd.read_csv(csv).bits_mean.tolist() == [640, 80, 19, 640, 640, 16]
  said = capsys.readouterr().out.splitlines()
  assert said[-2:] == [str(output), str(csv)]


def test_runs_without_bits_are_refused_codes_table_command(tmp_path, capsys):
  cases.write_all(tmp_path / 'a', without=['cumulative_downlink_bits'])
  code = main.main([
      'codes_table', '--runs', str(tmp_path / 'a'), '--output',
      str(tmp_path / 'a.md'),
  ])
  cases.assert_refused(capsys, code, 'has no cumulative_downlink_bits.')


def _draw_growth_command(tmp_path, *arguments):
  return main.main([
      'growth', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.png'), *arguments,
  ])


def test_files_are_written_and_the_table_is_exact_growth_command(
    tmp_path, capsys
):
  cases.write_all(tmp_path / 'runs')
  cases.write_run(
      tmp_path / 'runs' / 'x', 'ceal', cases.CEAL[0][:1], horizon=10
  )
  csv = tmp_path / 'new' / 'a.csv'
  assert _draw_growth_command(tmp_path, '--csv', str(csv), '--log_scale') == 0
  assert (tmp_path / 'new' / 'a.png').read_bytes().startswith(b'\x89PNG')
  table = pd.read_csv(csv)
  assert table.horizon.tolist() == [100, 100, 10, 100]
  assert table.regret_mean.tolist() == [19, 22, 4, 18]
  assert len(capsys.readouterr().out.splitlines()) == 2


def test_one_horizon_is_refused(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  cases.assert_refused(
      capsys, _draw_growth_command(tmp_path), 'must differ in horizon, found'
  )


def test_several_tasks_are_refused_growth_command(tmp_path, capsys):
  cases.write_all(tmp_path / 'runs')
  cases.write_run(
      tmp_path / 'runs' / 'x', 'ceal', cases.CEAL[0], task={'model': 'row'}
  )
  cases.assert_refused(
      capsys, _draw_growth_command(tmp_path), 'must be of one task'
  )


def _draw_epochs_command(tmp_path, *arguments):
  return main.main([
      'epochs', '--runs', str(tmp_path / 'runs'), '--output',
      str(tmp_path / 'new' / 'a.png'), *arguments,
  ])


def test_files_are_written_and_the_table_is_exact_epochs_command(
    tmp_path, capsys
):
  cases.write_all(tmp_path / 'runs')
  csv = tmp_path / 'new' / 'a.csv'
  assert _draw_epochs_command(tmp_path, '--csv', str(csv)) == 0
  assert (tmp_path / 'new' / 'a.png').read_bytes().startswith(b'\x89PNG')
  assert pd.read_csv(csv).queries_mean.tolist() == [15, 40]
  assert len(capsys.readouterr().out.splitlines()) == 2


def test_runs_without_ceal_are_refused(tmp_path, capsys):
  cases.write_run(tmp_path / 'runs', 'fed_avg', cases.FED_AVG[0])
  cases.assert_refused(
      capsys, _draw_epochs_command(tmp_path), 'must hold a run of ceal'
  )


def test_several_tasks_are_refused_epochs_command(tmp_path, capsys):
  cases.write_run(tmp_path / 'runs' / 'a', 'ceal', cases.CEAL[0])
  cases.write_run(
      tmp_path / 'runs' / 'b', 'ceal', cases.CEAL[0], task={'model': 'row'}
  )
  cases.assert_refused(
      capsys, _draw_epochs_command(tmp_path), 'must be of one task'
  )


def test_files_are_written_and_the_table_is_exact_sensitivity_table_command(
    tmp_path, capsys
):
  cases.write_all(tmp_path / 'runs')
  cases.write_run(tmp_path / 'runs' / 'x', 'ceal', cases.CEAL[1], clip=False)
  output, csv = tmp_path / 'new' / 'a.md', tmp_path / 'new' / 'a.csv'
  code = main.main([
      'sensitivity_table', '--runs', str(tmp_path / 'runs'), '--output',
      str(output), '--csv', str(csv),
  ])
  assert code == 0
  assert output.read_text().splitlines()[3] == (
      '| scaled_regression row_sum (synthetic) | clip False | signed_unary | 1 '
      '| 20.00 | 20.00 | 19.00 | 2.0 | 25.0% | 3.1% | 3.0% |'
  )
  assert pd.read_csv(csv).regret_mean.tolist() == [18, 20]
  said = capsys.readouterr().out.splitlines()
  assert said[-2:] == [str(output), str(csv)]


def test_runs_without_ceal_are_refused_sensitivity_table_command(
    tmp_path, capsys
):
  cases.write_run(tmp_path / 'a', 'fed_avg', cases.FED_AVG[0])
  code = main.main([
      'sensitivity_table', '--runs', str(tmp_path / 'a'), '--output',
      str(tmp_path / 'a.md'),
  ])
  cases.assert_refused(capsys, code, 'runs must hold a run of ceal')
  assert not (tmp_path / 'a.md').exists()
