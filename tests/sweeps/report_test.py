"""A sweep leaves a table and a figure."""

import dataclasses

from baselines.run import folder as folder_lib
from baselines.run import records
from baselines.run import summary
from baselines.settings import experiment
from baselines.sweeps import report


def _outcome(path, gamma, status, reason=''):
  settings = experiment.replace_settings(
      experiment.ExperimentConfig(), client_learning_rate=gamma, rounds=2
  )
  folder = folder_lib.RunFolder(path)
  with folder.locked():
    folder.write_config(settings)
    folder.write_status(status, 2, reason)
  writer = records.MetricsWriter(
      folder.metrics_path, records.columns_of(settings), []
  )
  for r in range(3):
    writer.write({'round': r, 'population_loss': 2.0 - r / 2})
  writer.close()
  return summary.summarize(settings, folder)


def test_table_reasons_and_figure(tmp_path, capsys):
  outcomes = [
      _outcome(tmp_path / 'a', 0.0, 'finished'),
      _outcome(tmp_path / 'b', 0.5, 'diverged', 'update_norm is inf'),
  ]
  figure = tmp_path / 'f' / 'loss.png'
  report.report_results(outcomes, tmp_path, str(figure))
  out = capsys.readouterr().out
  assert 'diverged at round 2 (update_norm is inf)' in out
  assert str(figure) in out and 'results.csv' in out
  assert figure.read_bytes().startswith(b'\x89PNG')
  assert (tmp_path / 'results.md').exists()


def test_tables_keep_the_runs_of_other_commands(tmp_path, capsys):
  outcomes = [
      _outcome(tmp_path / name, gamma, 'finished')
      for name, gamma in (('a', 0.0), ('b', 0.5))
  ]
  report.report_results(outcomes, tmp_path, None)
  whole = (tmp_path / 'results.csv').read_bytes()
  capsys.readouterr()
  report.report_results(outcomes[1:], tmp_path, None)
  assert (tmp_path / 'results.csv').read_bytes() == whole
  out = capsys.readouterr().out
  assert 'with 1 more runs of the folder' in out
  assert len(out[: out.index('table')].splitlines()) == 2  # heads and one run
  (tmp_path / 'a' / 'config.json').write_text('{')
  report.report_results(outcomes[1:], tmp_path, None)
  assert 'not in the table' in capsys.readouterr().out


def test_figure_of_the_runs_that_can_be_read(tmp_path, capsys):
  outcomes = [
      _outcome(tmp_path / name, gamma, 'finished')
      for name, gamma in (('a', 0.0), ('b', 0.5))
  ]
  (tmp_path / 'a' / 'config.json').write_text('{')
  figure = tmp_path / 'loss.png'
  report.report_results(outcomes, tmp_path, str(figure))
  assert 'not in the figure: ' in capsys.readouterr().out
  assert figure.exists()


def test_no_figure_without_a_round(tmp_path, capsys):
  folder = folder_lib.RunFolder(tmp_path / 'none')
  outcome = summary.summarize(experiment.ExperimentConfig(), folder)
  report.report_results([outcome], tmp_path, str(tmp_path / 'loss.png'))
  assert not (tmp_path / 'loss.png').exists()
  assert 'not started' in capsys.readouterr().out


def test_part_of_a_sweep_leaves_no_table(tmp_path, capsys):
  outcomes = [_outcome(tmp_path / 'a', 0.0, 'finished')]
  report.report_results(
      outcomes, tmp_path, str(tmp_path / 'loss.png'), is_whole=False
  )
  assert 'finished' in capsys.readouterr().out
  assert [path.name for path in tmp_path.iterdir()] == ['a']


def test_part_without_runs_says_so(tmp_path, capsys):
  report.report_results([], tmp_path, None, is_whole=False)
  assert capsys.readouterr().out == 'no runs\n'


def test_best_rates_are_saved_if_there_were_any_to_choose_from(
    tmp_path, capsys
):
  def outcome(eta, loss):
    settings = experiment.replace_settings(
        experiment.ExperimentConfig(), server_learning_rate=eta
    )
    known = summary.nothing_known(settings, folder_lib.RunFolder(tmp_path))
    return dataclasses.replace(known, status='finished', last_loss=loss)

  report.report_results([outcome(0.1, 1.0)], tmp_path, None)
  assert not (tmp_path / 'best.csv').exists()
  report.report_results([outcome(0.1, 1.0), outcome(1.0, 0.5)], tmp_path, None)
  assert 'best.csv' in capsys.readouterr().out
  header, row = (tmp_path / 'best.csv').read_text().splitlines()
  values = dict(zip(header.split(','), row.split(',')))
  assert values['server_learning_rate'] == '1.0'


def test_copy_of_a_run_does_not_count_twice(tmp_path, capsys):
  outcomes = [_outcome(tmp_path / 'a', 0.0, 'finished')]
  for name in ('a.bak', 'b', 'b.bak'):
    _outcome(tmp_path / name, 0.0 if name[0] == 'a' else 0.5, 'finished')
  report.report_results(outcomes, tmp_path, None)
  out = capsys.readouterr().out
  assert out.count('is a second folder of digits-gamma0-') == 1
  assert out.count('is a second folder of digits-gamma0.5-') == 1
  rows = (tmp_path / 'results.csv').read_text().splitlines()
  assert len(rows) == 1 + 2
