"""LocalUpdate and its relatives as the loop drives them."""

import numpy as np
import pytest

from baselines.algorithms import driver as driver_lib
from baselines.results import folder
from baselines.results import records
from baselines.settings import algorithms
from baselines.settings import experiment
from baselines.training import checkpoints
from baselines.training import data
from baselines.training import loop
from baselines.training import plan
from baselines.training import stopping
from baselines.training import workbench as workbench_lib

_RATES = ('client_learning_rate', 'server_learning_rate')


def _settings(algorithm=None, rounds=6, **changes):
  algorithm = algorithm or algorithms.LocalUpdateConfig(theta='1:2')
  rate = experiment.RateConfig(**changes)
  return experiment.ExperimentConfig(
      task=experiment.TaskConfig('digits', model='logistic'),
      algorithm=algorithm,
      server_optimizer=experiment.ServerOptimizerConfig(server_learning_rate=0.1),
      rate=rate,
      run=experiment.RunConfig(
          rounds=rounds,
          clients_per_round=4,
          batch_size=5,
          rounds_per_evaluation=0,
          rounds_per_checkpoint=2,
          dtype='float64',
      ),
  )


@pytest.fixture(scope='module', name='workbench')
def _workbench():
  return workbench_lib.Workbench(report=lambda text: None)


def _run(workbench, settings, path):
  with stopping.Interruption() as interruption:
    outcome = loop.run_experiment(
        plan.plan_run(settings, str(path)), workbench, interruption,
        tensorboard=False,
    )
  assert outcome.status == folder.FINISHED
  return records.read_rows(
      path / 'metrics.csv', records.columns_of(settings)
  )[1:]


def _column(rows, name):
  return [records.number(row, name) for row in rows]


def _without_times(rows):
  return [
      {k: v for k, v in row.items() if k not in records.MACHINE_COLUMNS}
      for row in rows
  ]


def test_schedules_give_the_rates_of_each_round(workbench, tmp_path):
  rows = _run(
      workbench,
      _settings(
          client_schedule='inverse', client_schedule_offset=1.0,
          server_schedule='steps', server_schedule_steps='3:0.5,5:0.5',
      ),
      tmp_path,
  )
  gammas = [0.05 * 2 / (t + 1) for t in range(1, 7)]
  np.testing.assert_allclose(_column(rows, _RATES[0]), gammas, rtol=1e-14)
  np.testing.assert_allclose(
      _column(rows, _RATES[1]), [0.1, 0.1, 0.05, 0.05, 0.025, 0.025],
      rtol=1e-14,
  )


# No loss falls by 100, so that nothing but window and counters decides.
_DECAY = dict(
    decay_rule='canonical', window=2, patience=2, cooldown=1,
    min_improvement=100.0, client_decay=0.5, server_decay=0.8,
)


def test_decay_is_by_the_rule_on_the_full_loss(workbench, tmp_path):
  settings = _settings(rounds=8, **_DECAY)
  assert settings.algorithm.loss_before_training == 'full'
  rows = _run(workbench, settings, tmp_path)
  # The first full window is progress on nothing; then two bad rounds, one of
  # cooldown, two bad rounds: decays after rounds 4 and 7.
  assert _column(rows, 'client_decays') == [0, 0, 0, 1, 1, 1, 2, 2]
  np.testing.assert_allclose(
      _column(rows, _RATES[0]), [0.05] * 4 + [0.025] * 3 + [0.0125], rtol=1e-14
  )
  np.testing.assert_allclose(
      _column(rows, _RATES[1]), [0.1] * 4 + [0.08] * 3 + [0.064], rtol=1e-14
  )
  losses = _column(rows, 'loss_before_training')
  averages = _column(rows, 'average_loss')
  assert averages[0] is None
  np.testing.assert_allclose(
      averages[1:], np.convolve(losses, [0.5, 0.5], 'valid'), rtol=1e-14
  )


def test_decay_after_a_stop_in_the_window_is_in_the_same_round(
    workbench, tmp_path
):
  straight = _run(workbench, _settings(rounds=8, **_DECAY), tmp_path / 'a')
  _run(workbench, _settings(rounds=3, **_DECAY), tmp_path / 'b')
  resumed = _run(workbench, _settings(rounds=8, **_DECAY), tmp_path / 'b')
  assert _without_times(resumed) == _without_times(straight)
  for found, wanted in zip(
      *(checkpoints.load(tmp_path / n / 'checkpoints', 8) for n in 'ab')
  ):
    np.testing.assert_array_equal(found, wanted)


def test_representative_clients_by_the_clients_of_a_round(workbench, tmp_path):
  rows = _run(
      workbench,
      _settings(
          rounds=8, decay_rule='callback', representative_clients=7,
          min_improvement=100.0,
      ),
      tmp_path,
  )
  # W = P = C = ceil(7/4) = 2. The callback's C blocks one round only: by the
  # canonical rule the second decay is after round 8.
  assert _column(rows, 'client_decays') == [0, 0, 0, 1, 1, 1, 2, 2]


def test_runs_that_share_a_workbench_decay_by_their_own_settings(
    workbench, tmp_path
):
  rates = []
  for i, changes in enumerate((
      {}, {'client_decay': 0.25, 'server_decay': 0.4}, {'patience': 1},
  )):
    settings = _settings(rounds=5, **{**_DECAY, **changes})
    rows = _run(workbench, settings, tmp_path / str(i))
    rates.append([_column(rows, name) for name in _RATES])
  # After round W + P = 4 or 3.
  expected = [
      ([0.05] * 4 + [0.025], [0.1] * 4 + [0.08]),
      ([0.05] * 4 + [0.0125], [0.1] * 4 + [0.04]),
      ([0.05] * 3 + [0.025] * 2, [0.1] * 3 + [0.08] * 2),
  ]
  np.testing.assert_allclose(rates, expected, rtol=1e-14)


def test_runs_that_share_a_workbench_count_their_own_clients(
    workbench, tmp_path
):
  decays = []
  for num_clients in (4, 7):
    settings = _settings(
        rounds=8, decay_rule='callback', representative_clients=7,
        min_improvement=100.0,
    )
    settings = experiment.replace_settings(
      settings, clients_per_round=num_clients
    )
    rows = _run(workbench, settings, tmp_path / str(num_clients))
    assert _column(rows, 'clients_used') == [num_clients] * 8
    decays.append(_column(rows, 'client_decays'))
  # W = P = C = 2, then 1, with which each round after the first is a bad one.
  assert decays == [[0, 0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 3, 4, 5, 6, 7]]


def test_epochs_take_all_examples_of_each_client(workbench, tmp_path):
  algorithm = algorithms.EpochsConfig(num_epochs=2)
  settings = _settings(algorithm, rounds=2)
  rows = _run(workbench, settings, tmp_path)
  task = workbench.task(settings.task)
  longest = 2 * -(-int(task.train.sizes.max()) // 5)
  for round_num, row in enumerate(rows, 1):
    drawn = data.draw_cohort(
        task.population, seed=1, round_num=round_num, clients_per_round=4,
        num_steps=longest, batch_size=5, num_epochs=2,
    )
    assert drawn.batch_sizes.shape == (4, longest)
    held = int(drawn.num_examples.sum())
    assert records.number(row, 'examples_used') == 2 * held
    for i in range(4):
      taken = np.concatenate([
          rows_of[:size]
          for rows_of, size in zip(drawn.rows[i], drawn.batch_sizes[i])
      ])
      _, counts = np.unique(taken, return_counts=True)
      assert len(counts) == drawn.num_examples[i] and set(counts) == {2}


def test_epochs_of_other_data_get_a_program_of_their_own(workbench, tmp_path):
  """Another deal has a largest client of another size."""
  algorithm = algorithms.EpochsConfig(num_epochs=1)
  longest = []
  for seed in (1, 2, 3):
    settings = experiment.replace_settings(
        _settings(algorithm, rounds=1), data_seed=seed, clients_per_round=100
    )
    (row,) = _run(workbench, settings, tmp_path / str(seed))
    sizes = workbench.task(settings.task).train.sizes
    assert records.number(row, 'examples_used') == sizes.sum()
    longest.append(int(sizes.max()))
  assert len(set(longest)) > 1


def test_k_maml_at_gamma_0_is_mini_batch_sgd(workbench, tmp_path):
  """The last of K + 1 batches counts alone, as in Theta_{K+1}."""
  maml = algorithms.MamlConfig(num_steps=2, client_learning_rate=0.0)
  first_order = algorithms.LocalUpdateConfig(
      theta='k3', client_learning_rate=0.0
  )
  rows = [
      _run(workbench, _settings(algorithm, rounds=3), tmp_path / str(i))
      for i, algorithm in enumerate((maml, first_order))
  ]
  for column in ('update_norm', 'loss_before_training', 'population_loss'):
    np.testing.assert_allclose(
        *(
            [v for v in _column(part, column) if v is not None]
            for part in rows
        ),
        rtol=1e-12,
    )


def test_second_order_gradients_are_others(workbench, tmp_path):
  norms = [
      _column(
          _run(workbench, _settings(algorithm, rounds=2), tmp_path / str(i)),
          'update_norm',
      )
      for i, algorithm in enumerate([
          algorithms.MamlConfig(num_steps=2, client_learning_rate=0.1),
          algorithms.LocalUpdateConfig(
              theta='k3', client_learning_rate=0.1
          ),
      ])
  ]
  assert abs(norms[0][0] - norms[1][0]) > 1e-3 * norms[0][0]


def test_options_of_local_steps_reach_the_clients(workbench, tmp_path):
  plain = dict(theta='1:2', client_learning_rate=0.2)
  variants = [
      plain,
      {**plain, 'client_optimizer': 'momentum'},
      {**plain, 'client_optimizer': 'adagrad'},
      {**plain, 'proximal_strength': 1.0},
      {**plain, 'step_factors': '0.5,1'},
      {**plain, 'client_learning_rate': 0.1},
  ]
  norms = [
      _column(
          _run(
              workbench,
              _settings(algorithms.LocalUpdateConfig(**v), rounds=1),
              tmp_path / str(i),
          ),
          'update_norm',
      )[0]
      for i, v in enumerate(variants)
  ]
  # Two steps: the second gradient is where the first step has led. Heavy ball
  # and the proximal term, which is 0 at the start, cannot change that one...
  assert norms[1] == norms[0]
  # ...but the proximal gradient is part of the second one; half of the first
  # step is half of gamma.
  assert len({norms[0], norms[2], norms[3], norms[4]}) == 4
  np.testing.assert_allclose(norms[4], norms[5], rtol=1e-14)


def _drawn_cohort(workbench, settings):
  """The data of round 1 by sampling seed 1, whatever the seed of the run."""
  run, driver = settings.run, workbench.tools(settings).driver
  drawn = data.draw_cohort(
      workbench.task(settings.task).population, seed=1, round_num=1,
      clients_per_round=run.clients_per_round, num_steps=2,
      batch_size=run.batch_size, full=settings.algorithm.needs_all_examples,
  )
  return driver.cohort(
      driver_lib.CohortData(drawn.batches, drawn.num_examples, drawn.examples)
  )


@pytest.mark.parametrize('changes', [
    {}, {'server_schedule': 'steps', 'server_schedule_steps': '2:0.5'}, _DECAY,
], ids=['constant', 'schedule', 'decay'])
def test_rounding_is_drawn_by_the_sampling_seed(workbench, changes):
  algorithm = algorithms.LocalUpdateConfig(
      theta='1:2', uplink_quantizer='qsgd', quantizer_resolution=5.0
  )
  settings = _settings(algorithm, **changes)
  tools, cohort = workbench.tools(settings), _drawn_cohort(workbench, settings)
  points = []
  for seed in (5, 5, 6):
    state = workbench.initial_state(
        experiment.replace_settings(settings, sampling_seed=seed)
    )
    inner = state.process if changes else state
    assert int(inner.aggregator.seed) == seed
    # Weights, rates and data are the same: only the rounding is drawn anew.
    after, _ = tools.program.next(state, cohort)
    weights = tools.process.get_model_weights(after).trainable
    points.append(np.concatenate([np.ravel(w) for w in weights]))
  np.testing.assert_array_equal(points[0], points[1])
  assert (points[0] != points[2]).sum() > 100  # Of 650 weights.


@pytest.mark.parametrize('changes', [{}, _DECAY], ids=['constant', 'decay'])
def test_bits_of_floats_are_those_of_the_clients_that_send(workbench, changes):
  """An empty client and one whose update is not finite send nothing."""
  settings = _settings(**changes)
  tools, cohort = workbench.tools(settings), _drawn_cohort(workbench, settings)
  x, y = cohort.batches
  x, num_examples = np.array(x), np.array(cohort.num_examples)
  x[0] = np.nan
  num_examples[2] = 0
  _, metrics = tools.program.next(
      workbench.initial_state(settings),
      cohort._replace(batches=(x, y), num_examples=num_examples),
  )
  sent = tools.driver.messages(metrics)
  float_bits = 64 * 650
  assert sent.total_uplink_bits == 2 * float_bits  # Of 4 clients.
  assert sent.clients_not_sent == 1
  assert sent.downlink_bits == float_bits
