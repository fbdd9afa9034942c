"""Each preset is accepted by its command, and says what it claims."""

import pathlib

import pytest

from baselines.experiment import command
from baselines.experiment import config
from baselines.experiment import flags
from baselines.experiment import main
from baselines.sweeps import config as sweep_config
from baselines.sweeps import grid
from baselines.sweeps import main as sweep_main

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_PRESETS = sorted((_ROOT / 'baselines' / 'presets').glob('*.flags'))
# Presets that leave the folder of the data to the user.
_NEEDS_DATA = ('emnist_digits', 'shakespeare')


def _parse_sweep(name, *arguments):
  preset = _ROOT / 'baselines' / 'presets' / f'{name}.flags'
  return flags.parse_experiment(
      [f'--flagfile={preset}', *arguments],
      'A command.', grid.GridConfig, sweep_config.SweepOutputConfig,
  )


@pytest.mark.parametrize('preset', _PRESETS, ids=lambda path: path.stem)
def test_command_named_in_the_first_line_accepts_it(
    preset, request, monkeypatch, tmp_path
):
  monkeypatch.chdir(tmp_path)
  arguments = [f'--flagfile={preset}', '--dry_run']
  if preset.stem in _NEEDS_DATA:
    shared_data = request.getfixturevalue('shared_data')
    arguments.append(f'--data_dir={shared_data / "tff_cache"}')
  commands = {
      '# localupdate-train': main.main,
      '# localupdate-sweep': sweep_main.main,
  }
  named = preset.read_text().partition(':')[0]
  assert commands[named](arguments) == command.FINISHED


@pytest.mark.parametrize('preset', _PRESETS, ids=lambda path: path.stem)
def test_results_go_to_a_folder_named_as_the_preset(preset):
  assert f'--output_dir=runs/{preset.stem}\n' in preset.read_text()


def test_quickstart_is_the_study_that_the_readme_tells_of():
  parsed = _parse_sweep('quickstart')
  assert parsed.config.task == config.TaskConfig('digits', model='cnn')
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
