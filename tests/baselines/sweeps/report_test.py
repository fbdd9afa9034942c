"""A sweep leaves a table and a figure."""

from baselines.experiment import config
from baselines.experiment import records
from baselines.experiment import run_folder
from baselines.experiment import summary
from baselines.sweeps import report


def _outcome(path, gamma, status, reason=''):
  settings = config.replace_settings(
      config.ExperimentConfig(), client_learning_rate=gamma
  )
  folder = run_folder.RunFolder(path)
  with folder.locked():
    folder.write_config(settings)
    folder.write_status(status, 2, reason)
  writer = records.MetricsWriter(folder.metrics_path, [])
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


def test_no_figure_without_a_round(tmp_path, capsys):
  folder = run_folder.RunFolder(tmp_path / 'none')
  outcome = summary.summarize(config.ExperimentConfig(), folder)
  report.report_results([outcome], tmp_path, str(tmp_path / 'loss.png'))
  assert not (tmp_path / 'loss.png').exists()
  assert 'not started' in capsys.readouterr().out
