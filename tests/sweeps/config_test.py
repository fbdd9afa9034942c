"""Settings of the sweep command."""

import pytest

from baselines.settings import commands


def test_figure_of_an_unknown_format_is_refused_before_the_work():
  with pytest.raises(ValueError, match="figure must end in .*'a.jpeg2'"):
    commands.SweepOutputConfig(figure='a.jpeg2')
  for ending in commands.FIGURE_ENDINGS:
    assert commands.SweepOutputConfig(figure=f'a{ending}').figure


def test_figure_of_a_part_is_refused():
  with pytest.raises(ValueError, match='figure would be ignored: shard'):
    commands.SweepOutputConfig(shard='1/2', figure='a.png')


def test_type_is_checked():
  with pytest.raises(ValueError, match='tensorboard must be true or false'):
    commands.SweepOutputConfig(tensorboard='yes')
