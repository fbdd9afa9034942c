"""The outcome of a run is read from its folder."""

import pytest

from baselines.experiment import config
from baselines.experiment import records
from baselines.experiment import run_folder
from baselines.experiment import summary

_CONFIG = config.ExperimentConfig(run=config.RunConfig(rounds=30))


def _folder(tmp_path, losses, status='finished', reason=''):
  folder = run_folder.RunFolder(tmp_path)
  writer = records.MetricsWriter(folder.metrics_path, [])
  writer.write({'round': 0, 'population_loss': 2.5, 'evaluation_seconds': 1.0})
  for r, loss in enumerate(losses, 1):
    values = {'round': r, 'loss_before_training': loss, 'round_seconds': 0.5}
    if r == len(losses):
      values.update(population_loss=0.25, test_accuracy=0.9)
    writer.write(values)
  writer.close()
  folder.write_status(status, len(losses), reason)
  return folder


def test_numbers_of_a_finished_run(tmp_path):
  folder = _folder(tmp_path, [float(i) for i in range(30)])
  outcome = summary.summarize(_CONFIG, folder)
  assert outcome.status == 'finished' and outcome.round == 30
  assert outcome.first_population_loss == 2.5
  assert outcome.population_loss == 0.25
  assert outcome.test_accuracy == 0.9
  assert outcome.last_loss == pytest.approx((27 + 28 + 29) / 3)
  assert outcome.seconds == pytest.approx(16.0)


def test_last_loss_is_of_at_most_100_rounds(tmp_path):
  losses = [float(i) for i in range(2000)]
  long = config.replace_settings(_CONFIG, rounds=2000)
  outcome = summary.summarize(long, _folder(tmp_path, losses))
  assert outcome.last_loss == pytest.approx(sum(range(1900, 2000)) / 100)


def test_run_that_has_not_started(tmp_path):
  outcome = summary.summarize(_CONFIG, run_folder.RunFolder(tmp_path / 'no'))
  assert outcome.status == 'not started'
  assert outcome.population_loss is None and outcome.last_loss is None
  assert '-' in summary.run_table(outcome)


def test_table_of_a_diverged_run_says_when_and_why(tmp_path):
  folder = _folder(tmp_path, [1.0, 2.0], 'diverged', 'update_norm is inf')
  table = summary.run_table(summary.summarize(_CONFIG, folder))
  assert 'diverged at round 2 (update_norm is inf)' in table
  assert '2 of 30' in table


def test_failed_run_has_its_reason(tmp_path):
  folder = _folder(tmp_path, [1.0], 'failed', 'disk full')
  outcome = summary.summarize(_CONFIG, folder)
  assert summary.status_text(outcome) == 'failed after round 1 (disk full)'
