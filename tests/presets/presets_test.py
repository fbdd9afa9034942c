"""Each preset is accepted by its command, and says what it claims."""

import pathlib
import re

import pytest

from baselines import command
from baselines.settings import algorithms
from baselines.settings import commands
from baselines.settings import experiment
from baselines.settings import flags
from baselines.settings import record
from baselines.sweeps import grid
from baselines.sweeps import main as sweep_main
from baselines.training import main

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_FOLDER = _ROOT / 'baselines' / 'presets'
# The presets of paper 1 are put together with scales; not looked at here.
_ALL = sorted(
    path for path in _FOLDER.glob('*.flags')
    if not path.stem.startswith('paper1_')
)
# A part is what another preset refers to; it is no run by itself.
_PART = re.compile(r'# Part of (\w+): ')
_PARTS = [path for path in _ALL if _PART.match(path.read_text())]
_PRESETS = [path for path in _ALL if path not in _PARTS]
_COMMANDS = {
    '# localupdate-train': main.main,
    '# localupdate-sweep': sweep_main.main,
}
# Presets that leave the folder of the data to the user.
_NEEDS_DATA = ('emnist_digits', 'shakespeare')
_PAPER2 = ('paper2_synthetic', 'paper2_mnist')
_OWN = (grid.GridConfig, commands.SweepOutputConfig)


def _parse_sweep(name, *arguments):
  return flags.parse_experiment(
      [f'--preset={name}', *arguments], 'A command.', *_OWN
  )


def _points(name, *arguments):
  arguments = [f'--preset={name}', *arguments]
  configs, _ = grid.plan_points(arguments, 'A command.', _OWN[1])
  return configs


def _algorithms(name, *arguments):
  """The settings of each algorithm by its name, one point each."""
  points = _points(name, *arguments)
  found = {algorithms.algorithm_name(p.algorithm): p for p in points}
  assert len(found) == len(points)
  return found


@pytest.mark.parametrize('preset', _PRESETS, ids=lambda path: path.stem)
def test_command_named_in_the_first_line_accepts_it(
    preset, request, monkeypatch, tmp_path
):
  monkeypatch.chdir(tmp_path)
  arguments = [f'--preset={preset.stem}', '--dry_run']
  if preset.stem in _NEEDS_DATA:
    shared_data = request.getfixturevalue('shared_data')
    arguments.append(f'--data_dir={shared_data / "tff_cache"}')
  named = preset.read_text().partition(':')[0]
  assert _COMMANDS[named](arguments) == command.FINISHED


@pytest.mark.parametrize('preset', _PRESETS, ids=lambda path: path.stem)
def test_results_go_to_a_folder_named_as_the_preset(preset):
  assert f'--output_dir=runs/{preset.stem}\n' in preset.read_text()


@pytest.mark.parametrize('preset', _PARTS, ids=lambda path: path.stem)
def test_part_belongs_to_its_preset_and_is_no_run_by_itself(preset):
  text = preset.read_text()
  whole = _PART.match(text).group(1)
  assert preset.stem.startswith(f'{whole}_')
  assert f'{whole}.flags' in [path.name for path in _PRESETS]
  assert f'--preset={preset.stem}' in (_FOLDER / f'{whole}.flags').read_text()
  assert '--output_dir' not in text and '--preset' not in text
  # What is left to the whole is the task, the run and the horizon.
  assert '--task' not in text and '--horizon' not in text
  assert '--algorithm=' in text


def test_names_of_presets_are_those_of_the_files():
  names = sorted(path.stem for path in _FOLDER.glob('*.flags'))
  assert flags.names() == names
  assert {path.stem for path in _ALL} <= set(names)


def test_flagfile_and_preset_are_the_same():
  by_file = flags.parse_experiment(
      [f'--flagfile={_FOLDER / "quickstart.flags"}'], 'A command.', *_OWN
  )
  assert by_file == _parse_sweep('quickstart')


def test_quickstart_is_the_study_that_the_readme_tells_of():
  parsed = _parse_sweep('quickstart')
  assert parsed.config.task == experiment.TaskConfig('digits', model='cnn')
  assert parsed.config.algorithm.theta == '1:10'
  run = parsed.config.run
  assert (run.rounds, run.clients_per_round, run.batch_size) == (100, 10, 20)
  rates = parsed.extra[grid.GridConfig].varied['client_learning_rate']
  assert rates[0] == 0.0 and len(rates) == 3


def test_emnist_has_the_papers_cohort_and_batches():
  parsed = _parse_sweep('emnist_digits', '--data_dir=d')
  run = parsed.config.run
  assert (run.clients_per_round, run.batch_size) == (10, 20)
  assert parsed.config.algorithm.num_steps == 10


def test_synthetic_has_the_numbers_of_section_8():
  found = _algorithms('paper2_synthetic')
  for point in found.values():
    assert (point.task.task, point.task.model) == (
        'scaled_regression', 'row_sum'
    )
    run = point.run
    assert (run.clients_per_round, run.batch_size) == (10, 1)
    assert run.initial_point == 'zero'
    assert point.run.horizon == 2000
    assert point.run.regret_every == 1
  assert {n: p.algorithm.step_size for n, p in found.items()} == {
      'ceal': 2.0, 'minibatch_sgd': 1.0, 'fed_avg': 0.1, 'fed_paq': 0.1,
      'fed_com': 0.002,
  }
  steps = {
      n: p.algorithm.local_steps for n, p in found.items() if n != 'ceal'
  }
  assert steps == {
      'minibatch_sgd': 50, 'fed_avg': 100, 'fed_paq': 100, 'fed_com': 100,
  }
  assert found['fed_paq'].algorithm.quantization_levels == 3
  assert found['fed_com'].algorithm.quantization_levels == 3
  assert found['fed_com'].algorithm.server_factor == 10.0
  assert _ceal_constants(found) == (0.6, 0.0222, 0.1, 0.7, 0.6, 5, 'coordinate')


def test_mnist_has_the_numbers_of_section_8():
  found = _algorithms('paper2_mnist')
  for point in found.values():
    assert point.task.task == 'mnist_logistic'
    run = point.run
    assert (run.clients_per_round, run.batch_size) == (10, 25)
    assert run.initial_point == 'zero'
    assert point.run.horizon == 1000
  assert {n: p.algorithm.step_size for n, p in found.items()} == {
      'ceal': 0.3, 'minibatch_sgd': 0.2, 'fed_avg': 0.01, 'fed_paq': 0.01,
      'fed_com': 0.0005,
  }
  rivals = [p.algorithm for n, p in found.items() if n != 'ceal']
  assert {a.local_steps for a in rivals} == {50}
  assert found['fed_paq'].algorithm.quantization_levels == 5
  assert found['fed_com'].algorithm.quantization_levels == 5
  assert found['fed_com'].algorithm.server_factor == 10.0
  assert _ceal_constants(found) == (1.8, 0.04, 0.1, 0.12, 0.08, 3, 'coordinate')


def _ceal_constants(found):
  ceal = found['ceal'].algorithm
  return (
      ceal.noise_scale, ceal.sample_constant, ceal.failure_probability,
      ceal.uplink_resolution, ceal.downlink_resolution, ceal.first_stage,
      ceal.grid,
  )


@pytest.mark.parametrize('name', _PAPER2)
def test_ten_seeds_are_ten_runs_of_each_algorithm(name):
  assert len(_points(name, '--sweep_seeds=1:10')) == 50


@pytest.mark.parametrize('name', _PAPER2)
def test_search_differs_from_the_experiment_in_the_rate_alone(name):
  stated = _algorithms(name)
  points = _points(f'{name}_tune')
  assert {algorithms.algorithm_name(p.algorithm) for p in points} == set(stated)
  for point in points:
    expected = stated[algorithms.algorithm_name(point.algorithm)]
    changed = experiment.replace_settings(
        expected, step_size=point.algorithm.step_size
    )
    assert point == changed
  for expected in stated.values():
    # The stated rate is one of several.
    same = [p for p in points if type(p.algorithm) is type(expected.algorithm)]
    assert expected in same and len(same) >= 4


@pytest.mark.parametrize('name', _PAPER2)
def test_codes_change_nothing_but_the_code(name):
  stated = _algorithms(name)
  points = _points(f'{name}_codes')
  assert len(points) == 3 + 4 + 4
  for point in points:
    expected = stated[algorithms.algorithm_name(point.algorithm)]
    assert point == experiment.replace_settings(
      expected, code=point.algorithm.code
    )


def test_growth_doubles_the_horizon():
  points = _points('paper2_synthetic_growth')
  assert [p.run.horizon for p in points] == [
      500, 1000, 2000, 4000, 8000, 16000, 32000
  ]
  stated = _algorithms('paper2_synthetic')['ceal']
  for point in points:
    changes = {'horizon': point.run.horizon}
    assert point == experiment.replace_settings(stated, **changes)


def test_sensitivity_changes_one_thing_at_a_time_but_for_one_row():
  points = _points('paper2_synthetic_sensitivity')
  stated = _algorithms('paper2_synthetic')
  ceal = [
      p for p in points if algorithms.algorithm_name(p.algorithm) == 'ceal'
  ]
  assert [p for p in points if p not in ceal] == [
      stated['fed_avg'], stated['fed_paq']
  ]
  changes = [_changes(stated['ceal'], point) for point in ceal]
  # The rows of section 8, first stage 1 with and without reset among them.
  assert changes == [
      {},
      {'first_stage': 1},
      {'first_stage': 1, 'reset_stage': True},
      {'reset_stage': True},
      {'broadcast_every_exchange': True},
      {'code': 'elias_gamma'},
      {'grid': 'vector'},
      {'threshold_factor': 2.0},
      {'threshold_factor': 6.0},
      {'failure_probability': 0.01},
      {'failure_probability': 0.5},
      {'uplink_resolution': 0.35},
      {'downlink_resolution': 0.3},
      {'clip': False},
      # Which has no stages.
      {'epoch_length': 'oracle', 'first_stage': 1, 'sample_constant': 40.0},
  ]


def _changes(expected, found):
  differing = record.differences(expected, found)
  return {name: new for name, (_, new) in differing.items()}


@pytest.mark.parametrize('name, algorithm, settings', [
    # Spec 1.5: Theta_1; gamma 0; Theta_{1:K} with eta = gamma, or eta free; all
    # clients; one client; the gradient after K steps; through K steps.
    ('distributed_sgd', 'local_update', {'theta': '1:1'}),
    ('minibatch_sgd', 'local_update',
     {'theta': '1:10', 'client_learning_rate': 0.0}),
    ('fed_avg', 'local_update',
     {'theta': '1:10', 'client_learning_rate': 0.05,
      'server_learning_rate': 0.05}),
    ('reptile', 'local_update',
     {'client_learning_rate': 0.05, 'server_learning_rate': 0.1}),
    ('local_sgd', 'local_update', {'clients_per_round': 100}),
    ('lookahead', 'local_update', {'clients_per_round': 1, 'theta': '1:5'}),
    ('fomaml', 'local_update', {'theta': 'k6'}),
    ('k_maml', 'k_maml', {'num_steps': 5}),
    ('epochs', 'local_update_epochs', {'num_epochs': 1}),
])
def test_every_named_member_of_the_family_has_its_preset(
    name, algorithm, settings
):
  parsed = flags.parse_experiment(
      [f'--preset=family_{name}'], 'A command.', commands.OutputConfig
  )
  assert algorithms.algorithm_name(parsed.config.algorithm) == algorithm
  for setting, value in settings.items():
    assert experiment.find_setting(parsed.config, setting)[1] == value
