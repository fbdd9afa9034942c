"""The options of `loss` reach the figure."""

import argparse

from baselines.figures import loss_command
from baselines.figures import style
from tests.figures.load_test import write_run


def _parse(*arguments):
  parser = argparse.ArgumentParser()
  loss_command.add_options(parser)
  return parser.parse_args(arguments)


def test_defaults():
  options = _parse('--runs', 'a', '--output', 'b.png')
  assert options.quantity == 'population_loss' and not options.log_scale


def test_quantity_and_scale_are_drawn(tmp_path, monkeypatch):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, path: figures.append(
      (figure, path)
  ))
  path = write_run(tmp_path / 'a')
  (path / 'metrics.csv').write_text('round,test_loss\n0,2.5\n1,1.5\n')
  options = _parse(
      '--runs', str(path), '--output', str(tmp_path / 'b.png'),
      '--quantity', 'test_loss', '--log_scale',
  )
  loss_command.draw_from(options)
  (figure, saved), = figures
  (axes,) = figure.axes
  assert saved == tmp_path / 'b.png'
  assert axes.get_ylabel() == 'test loss' and axes.get_yscale() == 'log'
  assert axes.get_lines()[0].get_ydata().tolist() == [2.5, 1.5]


def test_figure_without_lines_is_told_and_kept(tmp_path, capsys):
  for status, is_told in (('diverged', True), ('finished', False)):
    path = write_run(tmp_path / status, status=status)
    output = tmp_path / f'{status}.png'
    loss_command.draw_from(
        _parse('--runs', str(path), '--output', str(output))
    )
    assert output.exists()
    assert ('has no lines' in capsys.readouterr().err) == is_told
