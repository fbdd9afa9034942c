"""localupdate-figures as a user meets it."""

import importlib
import subprocess
import sys

import pytest

from baselines.figures import main
from baselines.figures import style
from tests.results.runs_test import write_run
from tests.structure import sources


@pytest.mark.parametrize('name', main.FIGURES)
def test_figure_can_be_found_and_asked_for(name, capsys):
  module, _, function = main.FIGURES[name].function.partition(':')
  found = importlib.import_module(f'baselines.figures.{module}')
  assert getattr(found, function).__doc__
  with pytest.raises(SystemExit) as caught:
    main.main([name, '--help'])
  assert caught.value.code == 0
  assert main.FIGURES[name].help in ' '.join(capsys.readouterr().out.split())


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


def test_quantity_and_scale_are_drawn(tmp_path, monkeypatch):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, path: figures.append(
      (figure, path)
  ))
  path = write_run(tmp_path / 'a')
  (path / 'metrics.csv').write_text('round,test_loss\n0,2.5\n1,1.5\n')
  assert main.main([
      'loss', '--runs', str(path), '--output', str(tmp_path / 'b.png'),
      '--quantity', 'test_loss', '--log_scale',
  ]) == 0
  (figure, saved), = figures
  (axes,) = figure.axes
  assert saved == tmp_path / 'b.png'
  assert axes.get_ylabel() == 'test loss' and axes.get_yscale() == 'log'
  assert axes.get_lines()[0].get_ydata().tolist() == [2.5, 1.5]


def test_figure_without_lines_is_told_and_kept(tmp_path, capsys):
  for status, is_told in (('diverged', True), ('finished', False)):
    path = write_run(tmp_path / status, status=status)
    output = tmp_path / f'{status}.png'
    arguments = ['--runs', str(path), '--output', str(output)]
    assert main.main(['loss', *arguments]) == 0
    assert output.exists()
    assert ('has no lines' in capsys.readouterr().err) == is_told
