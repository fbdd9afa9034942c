"""Run folders are read as they are, also while a run is at work."""

import json
import pathlib

import numpy as np
import pytest

from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.results import runs as runs_lib
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.settings import record as record_lib


def write_run(
    path, *, status='finished', rows=((0, 2.0), (1, ''), (2, 1.0)), **settings
):
  """Writes a run folder by hand: the format, not the code that writes it."""
  path.mkdir(parents=True)
  values = {
      'task': 'digits', 'model': 'cnn', 'theta': '1:10',
      'server_optimizer': 'sgd', 'client_learning_rate': 0.1,
      'server_learning_rate': 0.5, 'sampling_seed': 1, 'rounds': 2,
      **settings,
  }
  record = {'settings': {'task': {}, 'run': values}}
  (path / 'config.json').write_text(json.dumps(record))
  (path / 'status.json').write_text(json.dumps({'status': status}))
  lines = [f'{r},{loss},' for r, loss in rows]
  (path / 'metrics.csv').write_text(
      '\n'.join(['round,population_loss,test_accuracy', *lines, ''])
  )
  return path


def test_run_is_read(tmp_path):
  run = runs_lib.read_run(write_run(tmp_path / 'a', status='diverged'))
  assert run.settings['client_learning_rate'] == 0.1
  assert run.components['task'] == {} and len(run.components['run']) == 8
  assert run.diverged
  np.testing.assert_array_equal(
      run.metrics['population_loss'], [2.0, np.nan, 1.0]
  )


def test_half_written_row_is_not_read(tmp_path):
  path = write_run(tmp_path / 'a')
  with open(path / 'metrics.csv', 'a', encoding='utf-8') as stream:
    stream.write('3,0.')
  assert len(runs_lib.read_run(path).metrics) == 3


def test_folder_of_runs_or_one_run(tmp_path):
  write_run(tmp_path / 'b')
  write_run(tmp_path / 'a')
  (tmp_path / 'results.csv').touch()
  names = [run.path.name for run in runs_lib.read_runs(tmp_path)]
  assert names == ['a', 'b']
  assert len(runs_lib.read_runs(tmp_path / 'a')) == 1


def test_no_run_or_a_broken_one_is_refused(tmp_path):
  with pytest.raises(ValueError, match='has no config.json'):
    runs_lib.read_runs(tmp_path)
  path = write_run(tmp_path / 'a')
  (path / 'config.json').write_text('{')
  with pytest.raises(ValueError, match='cannot be read'):
    runs_lib.read_runs(tmp_path)
  (path / 'config.json').unlink()
  with pytest.raises(ValueError, match='nor has any folder'):
    runs_lib.read_runs(tmp_path)


def test_run_that_failed_at_once_has_no_rows(tmp_path):
  path = write_run(tmp_path / 'a', status='failed')
  (path / 'metrics.csv').unlink()
  run = runs_lib.read_run(path)
  assert run.status == 'failed' and run.metrics.empty
  assert 'round' in run.metrics


def test_run_without_status_is_unknown(tmp_path):
  path = write_run(tmp_path / 'a')
  (path / 'status.json').unlink()
  assert runs_lib.read_run(path).status == 'unknown'


def test_repetitions_differ_in_seeds_only(tmp_path):
  first = runs_lib.read_run(write_run(tmp_path / 'a'))
  same = runs_lib.read_run(write_run(tmp_path / 'b', sampling_seed=2))
  other = runs_lib.read_run(write_run(tmp_path / 'c', server_learning_rate=1.0))
  assert first.identity == same.identity != other.identity
  assert (first.seeds, same.seeds) == ((None, None, 1), (None, None, 2))



_CONFIG = experiment.ExperimentConfig(run=experiment.RunConfig(rounds=30))


def _folder(tmp_path, losses, status='finished', reason=''):
  folder = folder_lib.RunFolder(tmp_path)
  writer = records.MetricsWriter(
      folder.metrics_path, records.columns_of(_CONFIG), []
  )
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
  outcome = runs_lib.summarize(_CONFIG, folder)
  assert outcome.status == 'finished' and outcome.final['round'] == 30
  assert outcome.final['first_population_loss'] == 2.5
  assert outcome.final['population_loss'] == 0.25
  assert outcome.final['test_accuracy'] == 0.9
  assert outcome.final['last_loss'] == pytest.approx((27 + 28 + 29) / 3)
  assert outcome.final['seconds'] == pytest.approx(16.0)


def test_bits_of_rounds_are_summed_where_they_are_counted(tmp_path):
  folder = _folder(tmp_path, [1.0] * 3)
  assert runs_lib.summarize(_CONFIG, folder).final['uplink_bits'] is None
  quantized = experiment.ExperimentConfig(
      algorithm=experiment.LocalUpdateConfig(
          uplink_quantizer='qsgd', quantizer_resolution=3.0
      ),
      run=_CONFIG.run,
  )
  # As earlier versions wrote it, which counted the bits of quantizers alone.
  columns = [
      c for c in records.columns_of(quantized)
      if c == 'uplink_bits' or c not in algorithms.MESSAGES
  ]
  writer = records.MetricsWriter(folder.metrics_path, columns, [])
  for r, bits in enumerate((None, 40.5, None, 2.0)):
    writer.write({'round': r, 'uplink_bits': bits})
  writer.close()
  assert runs_lib.summarize(quantized, folder).final['uplink_bits'] == 42.5


def test_run_of_which_more_is_wanted_or_rows_are_lost_is_interrupted(tmp_path):
  folder = _folder(tmp_path, [1.0] * 30)
  assert runs_lib.summarize(_CONFIG, folder).status == 'finished'
  longer = experiment.replace_settings(_CONFIG, rounds=31)
  assert runs_lib.summarize(longer, folder).status == 'interrupted'
  lines = folder.metrics_path.read_text().splitlines(keepends=True)
  folder.metrics_path.write_text(''.join(lines[:-1]))
  assert runs_lib.summarize(_CONFIG, folder).status == 'interrupted'


def test_last_loss_is_of_at_most_100_rounds(tmp_path):
  losses = [float(i) for i in range(2000)]
  long = experiment.replace_settings(_CONFIG, rounds=2000)
  outcome = runs_lib.summarize(long, _folder(tmp_path, losses))
  assert outcome.final['last_loss'] == pytest.approx(
      sum(range(1900, 2000)) / 100
  )


@pytest.mark.parametrize('num_losses, last', [(7, 3.0), (20, 2.0)])
def test_a_last_round_cut_short_leaves_the_loss_before_it(
    tmp_path, num_losses, last):
  losses = [1.0] * (num_losses - 2) + [last, 3.0, None]
  config_ = experiment.replace_settings(_CONFIG, rounds=len(losses))
  outcome = runs_lib.summarize(config_, _folder(tmp_path, losses))
  # A tenth of 8 rounds is one, of 21 rounds three.
  expected = 3.0 if num_losses == 7 else (1.0 + 2.0 + 3.0) / 3
  assert outcome.final['last_loss'] == pytest.approx(expected)


def test_last_loss_is_of_the_last_rounds_that_have_one(tmp_path):
  losses = [1.0] * 27 + [2.0, None, 4.0]
  outcome = runs_lib.summarize(_CONFIG, _folder(tmp_path, losses))
  assert outcome.final['last_loss'] == 3.0  # Of rounds 28 and 30.


def test_run_that_has_not_started(tmp_path):
  outcome = runs_lib.summarize(_CONFIG, folder_lib.RunFolder(tmp_path / 'no'))
  assert outcome.status == 'not started'
  assert outcome.final['population_loss'] is None
  assert outcome.final['last_loss'] is None
  assert '-' in runs_lib.closing_table(outcome)


def test_numbers_of_a_diverged_run_do_not_depend_on_the_rounds_wanted(tmp_path):
  folder = _folder(tmp_path, [1.0, 2.0, 30.0], 'diverged')
  outcome = runs_lib.summarize(_CONFIG, folder)
  longer = experiment.replace_settings(_CONFIG, rounds=2000)
  for known in (outcome, runs_lib.summarize(longer, folder)):
    assert known.final['last_loss'] == 30


def test_table_of_a_diverged_run_says_when_and_why(tmp_path):
  folder = _folder(tmp_path, [1.0, 2.0], 'diverged', 'update_norm is inf')
  table = runs_lib.closing_table(runs_lib.summarize(_CONFIG, folder))
  assert 'diverged at round 2 (update_norm is inf)' in table
  assert '2 of 30' in table


def test_failed_run_has_its_reason(tmp_path):
  folder = _folder(tmp_path, [1.0], 'failed', 'disk full')
  outcome = runs_lib.summarize(_CONFIG, folder)
  assert runs_lib.status_text(outcome) == 'failed after round 1 (disk full)'


_HORIZON = experiment.ExperimentConfig(
    experiment.TaskConfig('scaled_regression'),
    algorithms.FedAvgConfig(10),
    run=experiment.RunConfig(horizon=50),
)


def _horizon_folder(tmp_path, num_rounds):
  folder = folder_lib.RunFolder(tmp_path)
  writer = records.MetricsWriter(
      folder.metrics_path, records.columns_of(_HORIZON), []
  )
  writer.write({'round': 0, 'cumulative_regret': 0.0})
  for r in range(1, num_rounds + 1):
    writer.write({
        'round': r, 'cumulative_regret': 2.5 * r, 'uplink_bits': 1.0,
        'cumulative_uplink_bits': 960.0 * r,
        'cumulative_downlink_bits': 99 * r, 'loss_before_training': 1.0 / r,
    })
  writer.close()
  folder.write_status('finished', num_rounds)
  return folder


def test_regret_and_bits_are_those_of_the_last_round(tmp_path):
  outcome = runs_lib.summarize(_HORIZON, _horizon_folder(tmp_path, 5))
  assert outcome.final['cumulative_regret'] == 12.5
  assert outcome.final['uplink_bits'] == 4800.0
  assert outcome.final['downlink_bits'] == 495.0
  # The last tenth of 5 rounds is one.
  assert outcome.final['last_loss'] == 0.2
  table = runs_lib.closing_table(outcome)
  assert 'cumulative_regret' in table and '12.5' in table
  assert '5 of 5' in table and 'step_size' in table
  assert 'test_accuracy' not in table and 'learning_rate' not in table


def test_runs_without_regret_have_none_in_the_table(tmp_path):
  outcome = runs_lib.summarize(_CONFIG, _folder(tmp_path, [1.0, 2.0]))
  assert outcome.final['cumulative_regret'] is None
  assert outcome.final['uplink_bits'] is outcome.final['downlink_bits'] is None
  assert 'cumulative_regret' not in runs_lib.closing_table(outcome)
  assert 'link_bits' not in runs_lib.closing_table(outcome)


def test_rounds_of_ceal_have_no_number_to_be_compared_with(tmp_path):
  settings = experiment.ExperimentConfig(
      experiment.TaskConfig('scaled_regression'), algorithms.CealConfig()
  )
  folder = folder_lib.RunFolder(tmp_path)
  writer = records.MetricsWriter(
      folder.metrics_path, records.columns_of(settings), []
  )
  for r in range(21):
    writer.write({'round': r, 'loss_before_training': float(r) if r else None})
  writer.close()
  outcome = runs_lib.summarize(settings, folder)
  # The last tenth of the 20 rounds that there are.
  assert outcome.final['last_loss'] == (19 + 20) / 2
  assert ' of ' not in runs_lib.closing_table(outcome).split('status')[1]


def test_folder_that_cannot_be_read_is_unknown(tmp_path):
  outcome = runs_lib.unreadable(_HORIZON, folder_lib.RunFolder(tmp_path))
  assert outcome.status == 'unknown'
  assert outcome.final['cumulative_regret'] is None


def test_table_has_a_row_per_run_with_settings_status_and_numbers(tmp_path):
  write_run(tmp_path / 'a' / 'b', sampling_seed=2, step_size=0.25)
  write_run(
      tmp_path / 'a' / 'a', status='failed', rows=((0, 2.0), (1, 'nan'))
  )
  table = runs_lib.load_runs(tmp_path / 'a')
  assert [pathlib.Path(path).name for path in table.path] == ['a', 'b']
  assert table.run_id.tolist() == ['a', 'b']
  assert table.theta.tolist() == ['1:10'] * 2
  assert table.sampling_seed.tolist() == [1, 2]
  assert np.isnan(table.step_size[0]) and table.step_size[1] == 0.25
  assert table.settings[1]['run']['step_size'] == 0.25
  assert table.status.tolist() == ['failed', 'finished']
  assert table['round'].tolist() == [1, 2]
  # An evaluation that gave no number is the last one all the same.
  np.testing.assert_array_equal(table.population_loss, [np.nan, 1.0])
  assert table.first_population_loss.tolist() == [2.0, 2.0]
  assert table.last_loss.isna().all() and table.seconds.tolist() == [0.0, 0.0]
  several = runs_lib.load_runs([tmp_path / 'a' / 'b', str(tmp_path / 'a')])
  assert several.run_id.tolist() == ['b', 'a', 'b']


def test_rows_are_the_runs_that_they_were_made_of(tmp_path):
  write_run(tmp_path / 'a', sampling_seed=3)
  write_run(tmp_path / 'b', rows=())
  runs = runs_lib.read_runs(tmp_path)
  again = runs_lib.runs_of(runs_lib.load_runs(tmp_path))
  for run, same in zip(runs, again):
    assert (run.identity, run.seeds) == (same.identity, same.seeds)
    assert (run.path, run.status) == (same.path, same.status)
    assert run.metrics.equals(same.metrics)


def test_table_of_this_version_has_all_settings_by_name(tmp_path):
  folder = _folder(tmp_path / 'a', [1.0, 0.5])
  folder.write_config(_CONFIG)
  table = runs_lib.load_runs(tmp_path)
  assert table.run_id.tolist() == [record_lib.run_id(_CONFIG)]
  assert set(record_lib.settings(_CONFIG)) <= set(table)
  assert table.last_loss.tolist() == [(0.5 + 1.0) / 2]


def test_curves_are_columns_of_metrics_by_run_and_round(tmp_path):
  write_run(tmp_path / 'a')
  write_run(tmp_path / 'b', rows=((0, 4.0), (1, 3.0)))
  table = runs_lib.load_runs(tmp_path)
  curves = runs_lib.load_curves(table, ['population_loss', 'other'])
  assert list(curves) == ['run', 'round', 'population_loss', 'other']
  assert curves.run.tolist() == [0, 0, 0, 1, 1]
  assert curves['round'].tolist() == [0, 1, 2, 0, 1]
  np.testing.assert_array_equal(
      curves.population_loss, [2.0, np.nan, 1.0, 4.0, 3.0]
  )
  only = runs_lib.load_curves(table.iloc[1:], ['population_loss'])
  assert only.run.tolist() == [1, 1]
  assert runs_lib.load_curves(table.iloc[:0], ['population_loss']).empty
