"""localupdate-figures as a user meets it."""

import subprocess
import sys

import pytest

from baselines.figures import main
from tests.figures.load_test import write_run
from tests.structure import sources


def _assert_one_line(said, message):
  assert message in said
  assert said.startswith('localupdate-figures: error: ')
  assert said.count('\n') == 1


def test_figure_is_drawn_and_named(tmp_path, capsys):
  write_run(tmp_path / 'runs' / 'a')
  output = tmp_path / 'loss.png'
  code = main.main(
      ['loss', '--runs', str(tmp_path / 'runs'), '--output', str(output)]
  )
  assert code == 0 and output.exists()
  assert capsys.readouterr().out == f'{output}\n'


@pytest.mark.parametrize('output, message', [
    ('a.png', 'no config.json'),
    ('file/b/a.png', 'output must be in a folder'),
])
def test_bad_input_is_one_line(tmp_path, capsys, output, message):
  (tmp_path / 'file').touch()
  code = main.main(
      ['loss', '--runs', str(tmp_path), '--output', str(tmp_path / output)]
  )
  assert code == 2
  _assert_one_line(capsys.readouterr().err, message)
  assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize('arguments, message', [
    ([], 'FIGURE'),
    (['lost'], "invalid choice: 'lost'"),
    (['loss', '--runs', 'a'], '--output'),
    (['loss', '--runs', 'a', '--outp', 'a.png'], '--output'),
    (['loss', '--runs', 'a', '--output', 'a.xyz'], '.png, .pdf, .svg'),
    (
        ['loss', '--runs', 'a', '--output', 'b.png', '--quantity', 'c'],
        'population_loss',
    ),
])
def test_wrong_arguments_are_one_line(arguments, message, capsys):
  with pytest.raises(SystemExit) as caught:
    main.main(arguments)
  assert caught.value.code == 2
  _assert_one_line(capsys.readouterr().err, message)


@pytest.mark.parametrize('arguments, code', [
    (['--help'], 0), (['loss', '--help'], 0), (['loss', '--runs'], 2),
])
def test_help_and_errors_load_neither_matplotlib_nor_pandas(arguments, code):
  program = (
      'import sys\n'
      'from baselines.figures import main\n'
      'try:\n'
      f'  main.main({arguments})\n'
      'except SystemExit as stop:\n'
      f'  assert stop.code == {code}\n'
      'assert not {"matplotlib", "pandas", "tensorflow"} & set(sys.modules)\n'
  )
  done = subprocess.run(
      [sys.executable, '-c', program],
      cwd=sources.ROOT, capture_output=True, text=True, timeout=60,
  )
  assert done.returncode == 0, done.stderr
