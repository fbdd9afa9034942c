"""Any algorithm runs to a horizon, has its bits counted, and its regret."""

import numpy as np
import pytest

from baselines import command
from baselines.results import folder as folder_lib
from baselines.settings import algorithms
from baselines.sweeps import main as sweep
from baselines.training import data
from tests.algorithms import driver_cases as cases

_M = cases.M


class _Killed(BaseException):
  """Ends the loop as SIGKILL would."""


# Of K = 3, 4, 3, K + 1 = 3 and, of 200 examples in batches of 60, 4 queries.
_VARIANTS = {
    'momentum': algorithms.LocalUpdateConfig(
        theta='0.5,0,2', client_learning_rate=0.2, client_optimizer='momentum',
        client_momentum=0.7, step_factors='1,0.5,0.25',
    ),
    'adagrad': algorithms.LocalUpdateConfig(
        theta='k4', client_learning_rate=0.05, client_optimizer='adagrad',
        proximal_strength=0.3,
    ),
    'proximal': algorithms.LocalUpdateConfig(
        theta='1:3', client_learning_rate=0.2, proximal_strength=0.5
    ),
    'k_maml': algorithms.MamlConfig(num_steps=2, client_learning_rate=0.3),
    'epochs': algorithms.EpochsConfig(
        client_learning_rate=0.1, client_optimizer='momentum'
    ),
}
_QUERIES = {
    'momentum': 3, 'adagrad': 4, 'proximal': 3, 'k_maml': 3, 'epochs': 4
}


def _settings(name, **changes):
  changes.setdefault('horizon', 10)
  return cases.settings(
      _VARIANTS[name], regret_every=1, client_schedule='inverse',
      client_schedule_offset=2.0,
      **({'batch_size': 60} if name == 'epochs' else {}), **changes,
  )


@pytest.fixture(scope='module', name='folder')
def _folder(tmp_path_factory):
  return tmp_path_factory.mktemp('straight')


@pytest.fixture(scope='module', name='straight')
def _straight(folder):
  return {
      name: cases.run(_settings(name), folder / name) for name in _VARIANTS
  }


def _drawn(asked, round_num, num_steps):
  epochs = getattr(asked.algorithm, 'num_epochs', None)
  run = asked.run
  drawn = data.draw_cohort(
      cases.workbench().task(asked.task).population, seed=run.sampling_seed,
      round_num=round_num, clients_per_round=_M, num_steps=num_steps,
      batch_size=run.batch_size, num_epochs=epochs,
  )
  if not epochs:
    return drawn.rows
  return [
      [rows[:size] for rows, size in zip(*client)]
      for client in zip(drawn.rows, drawn.batch_sizes)
  ]


def _walk(problem, algorithm, start, batches, gamma):
  """The points of a client and its gradients, the proximal terms included."""
  options = {**_plain(), **getattr(algorithm, 'step_options', {})}
  factors = options['step_factors'] or [1.0] * len(batches)
  x, points, gradients = start, [], []
  velocity, squares = 0.0, options['initial_accumulator']
  for rows, factor in zip(batches, factors):
    g = problem.gradient(x, rows) + options['proximal_strength'] * (x - start)
    points.append(x)
    gradients.append(g)
    step = g
    if options['optimizer'] == 'momentum':
      velocity = step = options['momentum'] * velocity + g
    if options['optimizer'] == 'adagrad':
      squares = squares + g * g
      step = g / np.sqrt(squares + options['epsilon'])
    x = x - gamma * factor * step
  return points, gradients


def _plain():
  return {
      'optimizer': 'sgd', 'step_factors': None, 'proximal_strength': 0.0,
      'momentum': None, 'initial_accumulator': None, 'epsilon': None,
  }


def _update(problem, name, batches, gradients, gamma):
  """q of a client."""
  if name == 'k_maml':
    q = gradients[-1]
    for rows in reversed(batches[:-1]):
      a = problem.x[rows]
      hessian = 2.0 * a.T @ a / len(rows) / len(problem.y)
      q = q - gamma * hessian @ q
    return q
  weights = {
      'momentum': (0.5, 0.0, 2.0), 'adagrad': (0.0, 0.0, 0.0, 1.0),
  }.get(name, (1.0,) * len(gradients))
  return sum(w * g for w, g in zip(weights, gradients))


@pytest.mark.parametrize('name', _VARIANTS)
def test_regret_follows_where_the_round_really_went(straight, name):
  done = straight[name]
  problem = cases.SquaredError(done.config)
  total, points = 0.0, done.points()
  for number, (start, queries) in enumerate(
      zip(points[:-1], done.column('num_queries')), 1
  ):
    gamma = _VARIANTS[name].client_learning_rate * 3.0 / (number + 2.0)
    updates = []
    for batches in _drawn(done.config, number, _QUERIES[name]):
      path, gradients = _walk(
          problem, done.config.algorithm, start, batches, gamma
      )
      for point in path[: int(queries)]:
        total += problem.value(point) - problem.best
      updates.append(_update(problem, name, batches, gradients, gamma))
    assert done.column('cumulative_regret')[number - 1] == pytest.approx(
        total, rel=1e-9
    )
    if queries == _QUERIES[name]:
      np.testing.assert_allclose(
          points[number], start - 0.05 * np.mean(updates, axis=0), atol=1e-12
      )
    else:
      np.testing.assert_array_equal(points[number], start)
  assert total > 0


@pytest.mark.parametrize('name', _VARIANTS)
def test_time_and_bits_of_local_update(straight, name):
  done, queries = straight[name], _QUERIES[name]
  whole, left = divmod(10, queries)
  assert done.outcome.status == folder_lib.FINISHED
  assert done.column('num_queries').tolist() == [queries] * whole + [left]
  assert done.column('time_used')[-1] == 10
  assert done.column('sent').tolist() == [1] * whole + [0]
  for way in ('uplink', 'downlink'):
    # 30 floats of 64 bits.
    bits = [1920] * whole + [0]
    assert done.column(f'{way}_bits').tolist() == bits
    assert done.column(f'cumulative_{way}_bits')[-1] == sum(bits)
    assert done.outcome.final[f'{way}_bits'] == sum(bits)
  assert len(done.rounds) == whole
  last = done.rows[-1]
  assert last['loss_before_training'] == '' and last['clients_used'] == '0'
  # The rate that the queries moved by.
  gamma = _VARIANTS[name].client_learning_rate * 3.0 / (whole + 3.0)
  assert float(last['client_learning_rate']) == pytest.approx(gamma, rel=1e-14)


@pytest.mark.parametrize('name', ['momentum', 'epochs'])
def test_killed_run_goes_on_with_the_same_counts(
    straight, folder, tmp_path, name
):
  def kill(number):
    if number == len(straight[name].rounds):
      raise _Killed

  asked = _settings(name, rounds_per_checkpoint=1)
  with pytest.raises(_Killed):
    cases.run(asked, tmp_path, kill)
  resumed = cases.run(asked, tmp_path)
  assert len(resumed.rounds) == 1
  assert cases.left(tmp_path, resumed.rows) == cases.left(
      folder / name, straight[name].rows
  )


@pytest.mark.parametrize('name', ['local_update', 'k_maml', 'fed_avg'])
def test_rounds_and_their_queries_are_the_same_run(tmp_path, name):
  algorithm = {
      'local_update': _VARIANTS['proximal'], 'k_maml': _VARIANTS['k_maml'],
      'fed_avg': algorithms.FedAvgConfig(3, 0.1),
  }[name]
  by_rounds, by_horizon = (
      cases.run(cases.settings(algorithm, **length), tmp_path / str(i))
      for i, length in enumerate(({'rounds': 3}, {'horizon': 9}))
  )
  assert cases.left(tmp_path / '0', by_rounds.rows) == cases.left(
      tmp_path / '1', by_horizon.rows
  )


def test_epochs_wait_for_the_client_with_the_most_batches(tmp_path):
  asked = cases.settings(
      algorithms.EpochsConfig(), 'digits', 'logistic', horizon=30,
      batch_size=5, clients_per_round=4, dtype='float32',
  )
  done = cases.run(asked, tmp_path)
  task = cases.workbench().task(asked.task)
  time_used = 0
  for number, queries in enumerate(done.column('num_queries'), 1):
    sizes = data.draw_cohort(
        task.population, seed=5, round_num=number, clients_per_round=4,
        num_steps=1, batch_size=5,
    ).num_examples
    wanted = max(-(-int(size) // 5) for size in sizes)
    assert queries == min(wanted, 30 - time_used)
    time_used += queries
  assert time_used == 30 == done.column('time_used')[-1]
  assert len(set(done.column('num_queries'))) > 1
  assert done.outcome.final['uplink_bits'] == 32 * 650 * len(done.rounds)


def test_empty_clients_send_no_floats(tmp_path):
  done = cases.run(cases.settings(
      algorithms.LocalUpdateConfig(theta='1:2'), 'digits', 'logistic',
      rounds=2, clients_per_round=5, dtype='float32',
  ), tmp_path)
  np.testing.assert_array_equal(
      done.column('uplink_bits') * 5, 32 * 650 * done.column('clients_used')
  )


@pytest.mark.parametrize('length, rounds, time_used', [
    ({'rounds': 2}, 2, None), ({'rounds': 99, 'horizon': 60}, None, 60),
    ({'rounds': 1, 'horizon': 2000}, 1, None),
])
def test_ceal_ends_by_what_comes_first(tmp_path, length, rounds, time_used):
  asked = cases.settings('ceal', 'digits', 'logistic', dtype='float32',
                         step_size=0.02, **length)
  done = cases.run(asked, tmp_path)
  assert done.outcome.status == folder_lib.FINISHED
  if rounds:
    assert done.outcome.round == rounds
  else:
    assert done.column('time_used')[-1] == time_used
  again = cases.run(asked, tmp_path)
  assert not again.rounds and again.outcome.status == folder_lib.FINISHED


def test_all_algorithms_in_one_sweep_on_one_horizon(tmp_path, capsys):
  names = list(algorithms.ALGORITHMS)
  variants = [f'--algorithm={name}' for name in names]
  variants[names.index('ceal')] += (
      ' --step_size=1 --noise_scale=0.6 --sample_constant=0.01'
  )
  code = sweep.main([
      '--task=scaled_regression', '--horizon=120', '--regret_every=1',
      '--batch_size=50', '--jit=off', '--rounds_per_evaluation=0',
      '--notensorboard', f'--output_dir={tmp_path}',
      f'--sweep_variants={";".join(variants)}',
  ])
  assert code == 0, capsys.readouterr().err
  folders = sorted(tmp_path.glob('*/metrics.csv'))
  assert len(folders) == len(names)
  for path in folders:
    last = path.read_text().splitlines()[-1].split(',')
    columns = path.read_text().splitlines()[0].split(',')
    row = dict(zip(columns, last))
    assert row['time_used'] == '120'
    for column in (
        'cumulative_regret', 'cumulative_uplink_bits',
        'cumulative_downlink_bits',
    ):
      assert float(row[column]) > 0


def test_regret_of_a_step_that_nobody_can_replay_is_refused():
  from baselines.regret import counter
  from baselines.regret import objectives

  f = objectives.LeastSquares(np.eye(2), np.ones(2))
  rule = counter.LocalRule(0.1, 'lion')
  with pytest.raises(ValueError, match="regret_every .* client_optimizer 'lio"):
    counter.replay_local_steps(f, np.zeros(2), np.zeros((1, 2, 1), int), rule)


def test_regret_is_refused_by_name_where_f_is_not_known():
  for algorithm in (_VARIANTS['k_maml'], algorithms.FedAvgConfig(3)):
    with pytest.raises(
        (ValueError, command.InputError), match='regret_every would be ignored'
    ):
      cases.settings(algorithm, 'digits', regret_every=1)
