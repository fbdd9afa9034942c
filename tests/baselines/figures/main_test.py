"""localupdate-figures as a user meets it."""

import pytest

from baselines.figures import main
from tests.baselines.figures.load_test import write_run


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
    ('a.xyz', 'xyz'),
])
def test_bad_input_is_one_line(tmp_path, capsys, output, message):
  runs = tmp_path / 'runs'
  if output != 'a.png':
    write_run(runs / 'a')
  code = main.main(
      ['loss', '--runs', str(runs), '--output', str(tmp_path / output)]
  )
  said = capsys.readouterr().err
  assert code == 2 and message in said
  assert said.startswith('localupdate-figures: error: ')
  assert said.count('\n') == 1


@pytest.mark.parametrize('arguments', [
    [], ['lost'], ['loss', '--runs', 'a'],
    ['loss', '--runs', 'a', '--output', 'b', '--quantity', 'c'],
])
def test_wrong_arguments_are_one_line(arguments, capsys):
  with pytest.raises(SystemExit) as caught:
    main.main(arguments)
  assert caught.value.code == 2
  said = capsys.readouterr().err
  assert said.startswith('localupdate-figures: error: ')
  assert said.count('\n') == 1
