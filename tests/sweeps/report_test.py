"""A sweep leaves tables of its runs and of the best rates, and a figure."""


import pandas as pd
import pytest

from baselines.results import folder as folder_lib
from baselines.results import records
from baselines.results import runs as runs_lib
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.sweeps import report
from tests.results import ranking_test
from tests.results.ranking_test import known_run


def test_runs_of_other_lengths_are_not_compared():
  outcomes = []
  for eta, loss, rounds in ((0.1, 0.5, 10), (0.2, 0.6, 10), (0.2, 0.1, 40)):
    outcome = ranking_test.point(0.0, eta, loss)
    settings = experiment.replace_settings(outcome.config, rounds=rounds)
    outcomes.append(known_run(settings, last_loss=loss, round=rounds))
  table = report.results_table(outcomes)
  assert table['rounds'].tolist() == [10, 10, 40]
  assert table['best'].tolist() == ['of all', '', 'of all']
  assert list(table).index('rounds') < list(table).index('sampling_seed')


def test_table_has_a_row_for_every_run_in_order():
  table = report.results_table([
      ranking_test.point(0.5, 0.1, 0.3),
      ranking_test.point(0.0, 1.0, None, 'diverged', rounds=7),
      ranking_test.point(0.0, 0.1, 0.9),
  ])
  assert table['client_learning_rate'].tolist() == [0.0, 0.0, 0.5]
  assert table['status'].tolist() == [
      'finished', 'diverged at round 7', 'finished'
  ]
  assert table['best'].tolist() == ['for this gamma', '', 'of all']


def test_csv_keeps_full_precision_and_markdown_is_a_table(tmp_path):
  table = report.results_table([ranking_test.point(0.1, 0.1, 1 / 3)])
  report.save_results(table, tmp_path / 'new')
  read = pd.read_csv(
      tmp_path / 'new' / 'results.csv', float_precision='round_trip'
  )
  assert read['last_loss'][0] == 1 / 3
  assert read['run_id'][0].startswith('digits-gamma0.1-eta0.1-')
  lines = (tmp_path / 'new' / 'results.md').read_text().splitlines()
  assert len(lines) == 3
  assert len({line.count('|') for line in lines}) == 1
  assert '| 0.3333 |' in lines[2]


def test_terminal_text_is_narrow_and_leaves_out_empty_columns():
  text = report.table_text(
      report.results_table([ranking_test.point(0.1, 0.1, 0.5)])
  )
  assert 'gamma' in text and 'accuracy' not in text
  assert max(map(len, text.splitlines())) <= 100


def test_columns_of_several_algorithms_appear():
  table = report.results_table([
      ranking_test.regret_point('fed_paq', 2.0, bits=2440.0),
      ranking_test.regret_point(
          'ceal', 1.0, bits=426.0, noise_scale=0.6, step_size=2.0
      ),
      ranking_test.regret_point(
          'ceal', 3.0, bits=444.0, noise_scale=0.6, step_size=2.0, seed=2
      ),
  ])
  assert table['algorithm'].tolist() == ['ceal', 'ceal', 'fed_paq']
  assert table['data_seed'].tolist() == [1, 2, 1]
  # Settings that differ between algorithms alone are no columns.
  assert 'noise_scale' not in table and 'code' not in table
  head = report.table_text(table).splitlines()[0].split()
  for shown in ('algorithm', 'eta', 'seed', 'regret', 'up'):
    assert shown in head
  for hidden in ('gamma', 'accuracy', 'first', 'last', 'run_id'):
    assert hidden not in head


def test_columns_that_say_nothing_vanish():
  table = report.results_table([
      ranking_test.regret_point(
          'fed_avg', 2.0, step_size=0.1
      ), ranking_test.regret_point('fed_avg', 1.0),
  ])
  head = report.table_text(table).splitlines()[0].split()
  for hidden in ('algorithm', 'data_seed', 'up', 'down', 'gamma'):
    assert hidden not in head
  assert 'regret' in head
  # What the table shows as text is a projection: the CSV has all columns.
  assert {'algorithm', 'data_seed', 'uplink_bits'} <= set(table)


@pytest.mark.parametrize('changes, column, cells', [
    ({'model_seed': 2}, 'model_seed', ['1', '2']),
    ({'jit': 'off'}, 'jit', ['auto', 'off']),
    ({'fast_paths': False}, 'fast_paths', ['False', 'True']),
])
def test_runs_that_differ_can_be_told_apart(changes, column, cells):
  base = ranking_test.point(0.5, 1.0, 0.3)
  other = experiment.replace_settings(base.config, **changes)
  table = report.results_table(
      [base, known_run(other, last_loss=0.3)]
  )
  assert [str(cell) for cell in table[column]] == cells
  assert column in report.table_text(table).splitlines()[0].split()
  assert table['best'].tolist() == ['of all'] * 2  # Of the same point.


def test_other_settings_that_vary_have_a_column():
  table = report.results_table([
      ranking_test.regret_point(
          'ceal', 1.0, noise_scale=0.6, code='run_length'
      ),
      ranking_test.regret_point(
          'ceal', 2.0, noise_scale=0.6, code='elias_gamma'
      ),
      ranking_test.regret_point('fed_avg', 3.0),
  ])
  assert table['code'].tolist()[:2] == ['elias_gamma', 'run_length']
  assert pd.isna(table['code'][2])
  lines = report.table_text(table).splitlines()
  assert 'code' in lines[0].split() and 'run_length' in lines[2]


def _scored(score, algorithm='local_update', status='finished', **changes):
  has_horizon = algorithms.ALGORITHMS[algorithm].has_horizon
  task = 'scaled_regression' if has_horizon else 'digits'
  base = experiment.ExperimentConfig(
    experiment.TaskConfig(task), algorithms.ALGORITHMS[algorithm].config_type()
  )
  settings = experiment.replace_settings(base, **changes)
  name = 'cumulative_regret' if has_horizon else 'last_loss'
  return known_run(
      settings, status, **{'round': settings.run.rounds or 10, name: score}
  )


def _grid():
  scores = {
      (0.0, 0.1, 1): 0.9, (0.0, 0.1, 2): 0.7,
      (0.0, 1.0, 1): 0.5, (0.0, 1.0, 2): 0.7,
      (0.5, 0.1, 1): 0.2, (0.5, 0.1, 2): 0.25,
      (0.5, 1.0, 1): 0.1, (0.5, 1.0, 2): 0.1,
  }
  return [
      _scored(
          score, client_learning_rate=gamma, server_learning_rate=eta,
          sampling_seed=seed,
          status='diverged' if (gamma, eta, seed) == (0.5, 1.0, 2)
          else 'finished',
      )
      for (gamma, eta, seed), score in scores.items()
  ]


def test_best_server_rate_for_each_client_rate_by_the_mean_over_seeds():
  table = report.best_rates_table(_grid())
  assert table['client_learning_rate'].tolist() == [0.0, 0.5]
  # 0.6 < 0.8; with gamma 0.5 a diverged seed shuts eta 1 out.
  assert table['server_learning_rate'].tolist() == [1.0, 0.1]
  assert table['last_loss'].tolist() == pytest.approx([0.6, 0.225])
  assert table['runs'].tolist() == [2, 2]


def test_regret_is_the_score_where_it_is_counted():
  outcomes = [
      _scored(score, name, step_size=eta)
      for name, eta, score in (
          ('fed_avg', 0.1, 60.0), ('fed_avg', 0.2, 50.0),
          ('fed_paq', 0.1, 70.0), ('fed_paq', 0.2, 80.0),
      )
  ]
  table = report.best_rates_table(outcomes)
  assert table['algorithm'].tolist() == ['fed_avg', 'fed_paq']
  assert table['step_size'].tolist() == [0.2, 0.1]
  assert table['cumulative_regret'].tolist() == [50.0, 70.0]
  assert 'last_loss' not in table


def test_algorithms_of_both_kinds_have_their_own_score(tmp_path):
  outcomes = [
      _scored(60.0, 'fed_avg', step_size=0.1),
      _scored(50.0, 'fed_avg', step_size=0.2),
      _scored(0.9, server_learning_rate=0.1),
      _scored(0.8, server_learning_rate=1.0),
  ]
  table = report.best_rates_table(outcomes)
  assert table['algorithm'].tolist() == ['fed_avg', 'local_update']
  assert table['score'].tolist() == [50.0, 0.8]
  assert report.save_best_rates(outcomes, tmp_path)
  lines = (tmp_path / 'best.md').read_text().splitlines()
  assert lines[0].startswith('| algorithm |')
  assert [line.split(' | ')[0] for line in lines[2:]] == [
      '| fed_avg', '| local_update'
  ]


def test_nothing_to_choose_from_is_no_table(tmp_path):
  outcomes = [_scored(0.5, sampling_seed=seed) for seed in (1, 2)]
  assert report.best_rates_table(outcomes).empty
  assert report.save_best_rates(_grid(), tmp_path)
  assert not report.save_best_rates(outcomes, tmp_path)
  assert not list(tmp_path.iterdir())


def test_nothing_finished_is_no_table(tmp_path):
  outcomes = [
      _scored(0.5, status='diverged', server_learning_rate=eta)
      for eta in (0.1, 1.0)
  ]
  assert not report.save_best_rates(outcomes, tmp_path)


def test_both_files_are_written(tmp_path):
  assert report.save_best_rates(_grid(), tmp_path)
  read = pd.read_csv(tmp_path / 'best.csv', float_precision='round_trip')
  assert read['server_learning_rate'].tolist() == [1.0, 0.1]
  lines = (tmp_path / 'best.md').read_text().splitlines()
  assert len(lines) == 4
  assert 'server_learning_rate' in lines[0] and '| 0.6 |' in lines[2]


def test_lengths_of_runs_are_apart_and_exchanges_are_not():
  grid = [
      (rounds, eta, 1.0 / rounds + abs(eta - best))
      for rounds, best in ((10, 0.1), (40, 0.2)) for eta in (0.1, 0.2)
  ]
  outcomes = [
      _scored(score, rounds=rounds, server_learning_rate=eta)
      for rounds, eta, score in grid
  ]
  # As many exchanges as it takes: no other length.
  outcomes += [
      known_run(
          _scored(0.0, 'fed_avg', step_size=eta, sampling_seed=seed).config,
          cumulative_regret=5.0 + eta, round=7 + seed,
      )
      for eta in (1.0, 2.0) for seed in (1, 2)
  ]
  table = report.best_rates_table(outcomes)
  assert table['rounds'].tolist()[1:] == [10, 40]
  assert table['server_learning_rate'].tolist()[1:] == [0.1, 0.2]
  assert table['step_size'][0] == 1.0 and table['runs'].tolist() == [2, 1, 1]


def _written(path, gamma, status, reason=''):
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
  return runs_lib.summarize(settings, folder)


def test_table_reasons_and_figure(tmp_path, capsys):
  outcomes = [
      _written(tmp_path / 'a', 0.0, 'finished'),
      _written(tmp_path / 'b', 0.5, 'diverged', 'update_norm is inf'),
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
      _written(tmp_path / name, gamma, 'finished')
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
      _written(tmp_path / name, gamma, 'finished')
      for name, gamma in (('a', 0.0), ('b', 0.5))
  ]
  (tmp_path / 'a' / 'config.json').write_text('{')
  figure = tmp_path / 'loss.png'
  report.report_results(outcomes, tmp_path, str(figure))
  assert 'not in the figure: ' in capsys.readouterr().out
  assert figure.exists()


def test_no_figure_without_a_round(tmp_path, capsys):
  folder = folder_lib.RunFolder(tmp_path / 'none')
  outcome = runs_lib.summarize(experiment.ExperimentConfig(), folder)
  report.report_results([outcome], tmp_path, str(tmp_path / 'loss.png'))
  assert not (tmp_path / 'loss.png').exists()
  assert 'not started' in capsys.readouterr().out


def test_part_of_a_sweep_leaves_no_table(tmp_path, capsys):
  outcomes = [_written(tmp_path / 'a', 0.0, 'finished')]
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
    return known_run(settings, last_loss=loss)

  report.report_results([outcome(0.1, 1.0)], tmp_path, None)
  assert not (tmp_path / 'best.csv').exists()
  report.report_results([outcome(0.1, 1.0), outcome(1.0, 0.5)], tmp_path, None)
  assert 'best.csv' in capsys.readouterr().out
  header, row = (tmp_path / 'best.csv').read_text().splitlines()
  values = dict(zip(header.split(','), row.split(',')))
  assert values['server_learning_rate'] == '1.0'


def test_copy_of_a_run_does_not_count_twice(tmp_path, capsys):
  outcomes = [_written(tmp_path / 'a', 0.0, 'finished')]
  for name in ('a.bak', 'b', 'b.bak'):
    _written(tmp_path / name, 0.0 if name[0] == 'a' else 0.5, 'finished')
  report.report_results(outcomes, tmp_path, None)
  out = capsys.readouterr().out
  assert out.count('is a second folder of digits-gamma0-') == 1
  assert out.count('is a second folder of digits-gamma0.5-') == 1
  rows = (tmp_path / 'results.csv').read_text().splitlines()
  assert len(rows) == 1 + 2
