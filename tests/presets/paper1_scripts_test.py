"""What `paper1_task.sh` asks for: the right sweeps, and every panel.

The commands are replaced by ones that note their arguments; these are read as
the commands would.
"""

import dataclasses
import os
import pathlib
import shlex
import subprocess

import pytest

from baselines.figures import main as figures
from baselines.settings import commands as commands_lib
from baselines.settings import flags
from baselines.sweeps import grid

_SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / 'scripts'
_OWN = (grid.GridConfig, commands_lib.SweepOutputConfig)
_OWN_NAMES = {f.name for kind in _OWN for f in dataclasses.fields(kind)}
_PANELS = {
    'femnist': ['2a', '5a', '8a'],
    'cifar100': ['2b', '5b', '8b', '3', '4'],
    'shakespeare': ['2c', '5c', '8c'],
    'stackoverflow_tag': ['6a', '7a', '9a'],
    'stackoverflow_word': ['6b', '7b', '9b'],
}
_SCALES = ('tiny', 'cpu', 'paper')
# Notes how it was called; the best rates are always the same.
_COMMAND = r"""#!/usr/bin/env bash
printf '%q ' "${0##*/}" "$@" >> calls; echo >> calls
[[ $1 != rate_flags ]] || echo '--sweep_variants=--sweep_client_learning_rates'\
'=0.5 --sweep_server_learning_rates=0.25' > "${3#--output=}"
"""


def _run(folder, task, scale, *arguments):
  """Returns the arguments of the sweeps and of the figures."""
  commands = folder / 'bin'
  commands.mkdir()
  for name in ('localupdate-sweep', 'localupdate-figures'):
    (commands / name).write_text(_COMMAND)
    (commands / name).chmod(0o755)
  subprocess.run(
      [_SCRIPTS / 'paper1_task.sh', task, scale, *arguments],
      cwd=folder, check=True, timeout=30,
      env={**os.environ, 'PATH': f'{commands}:{os.environ["PATH"]}'},
  )
  calls = map(shlex.split, (folder / 'calls').read_text().splitlines())
  found = {'localupdate-sweep': [], 'localupdate-figures': []}
  for name, *rest in calls:
    found[name].append(rest)
  return tuple(found.values())


def _points(arguments):
  given = flags.parse(arguments, 'A command.', *_OWN)
  asked = flags.build_own(given, *_OWN)
  # The databases are not there, and planning looks at them.
  points = [
      point
      for added in grid.split_variants(
          asked[grid.GridConfig].sweep_variants or ''
      )
      for values in [flags.parse([*arguments, *added], 'A command.', *_OWN)]
      for point in grid.grid_points(
          {k: v for k, v in values.items() if k not in _OWN_NAMES},
          flags.build_own(values, *_OWN)[grid.GridConfig].varied,
      )
  ]
  return asked[commands_lib.SweepOutputConfig].output_dir, points


@pytest.mark.parametrize('scale', _SCALES)
@pytest.mark.parametrize('task', _PANELS)
def test_every_panel_is_one_file_drawn_by_one_command(task, scale, tmp_path):
  _, drawn = _run(tmp_path, task, scale)
  parser = figures._parser()  # pylint: disable=protected-access
  options = [parser.parse_args(arguments) for arguments in drawn]
  assert [option.figure for option in options[:2]] == ['rate_flags'] * 2
  panels = {option.output.name: option for option in options[2:]}
  assert list(panels) == [f'fig{panel}.png' for panel in _PANELS[task]]
  fixed, tuned, decay = list(panels.values())[:3]
  assert (fixed.server_learning_rate, fixed.select) == (0.01, 'all')
  assert (tuned.select, tuned.decay) == ('best', False)
  assert (decay.select, decay.decay) == ('best', True)
  is_round_loss = task.startswith('stack')
  for panel in (fixed, tuned, decay):
    assert (panel.quantity == 'loss_before_training') == is_round_loss
    assert (panel.smoothing > 1) == is_round_loss
  if task == 'cifar100':
    norms, equal = list(panels.values())[3:]
    assert norms.figure == 'update_norms'
    assert norms.server_learning_rate == 0.01
    assert norms.block == {'paper': 1000, 'cpu': 50, 'tiny': 2}[scale]
    assert equal.select == 'equal'
    wanted = (0.1,) if scale == 'tiny' else (0.01, 0.1, 1.0)
    assert equal.client_learning_rates == wanted


@pytest.mark.parametrize('scale', _SCALES)
@pytest.mark.parametrize('task', _PANELS)
def test_sweeps_are_the_grid_the_best_and_the_decay(
    task, scale, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  data = [] if scale == 'tiny' else ['--data_dir=d']
  sweeps, drawn = _run(tmp_path, task, scale, *data)
  whole, *longer, (folder, decayed) = map(_points, sweeps)
  assert whole[0] == task and folder == f'{task}_decay'
  gammas = {'tiny': 3, 'cpu': 4}.get(scale, 8 if task[-3:] == 'tag' else 6)
  etas = {'tiny': 2, 'cpu': 4, 'paper': 9}[scale]
  assert len(whole[1]) == gammas * etas
  (point,) = decayed
  assert point.rate.decays and list(point.rates.values()) == [0.5, 0.25]
  assert bool(longer) == (scale == 'cpu')
  for folder, points in longer:
    (best,) = points
    assert folder == f'{task}_long' and best.run == point.run
    assert best.run.rounds == 1000 and not best.rate.decays
  # What is drawn beside the decay has as many rounds.
  tuned = longer[0][0] if longer else task
  assert f'--runs={tuned}' in drawn[3] and f'--runs={tuned}' in drawn[4]
  assert f'--runs={task}_decay' in drawn[4]
  beside = longer[0][1] if longer else whole[1]
  assert {other.run.rounds for other in beside} == {point.run.rounds}


def test_start_is_bounded_where_the_paper_names_it(tmp_path):
  for task, bound in (
      ('cifar100', ['--at_most=1']), ('stackoverflow_tag', ['--at_most=100']),
      ('femnist', []),
  ):
    folder = tmp_path / task
    folder.mkdir()
    _, drawn = _run(folder, task, 'tiny')
    assert drawn[1][3:] == ['--start', *bound]


@pytest.mark.parametrize(
    'arguments, message',
    [
        (['--scale', 'huge'], 'scale must be tiny, cpu or paper'),
        (['--bogus'], 'unknown argument --bogus'),
        (['femnist', 'bogus'], 'there is no task bogus'),
    ],
)
def test_wrong_arguments_are_one_line(arguments, message):
  done = subprocess.run(
      [_SCRIPTS / 'paper1_figures.sh', *arguments],
      capture_output=True, text=True, timeout=30, check=False,
  )
  assert done.returncode == 2
  assert done.stderr == f'paper1_figures.sh: {message}\n'
