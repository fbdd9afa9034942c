"""Settings of the sweep command."""

import pytest

from baselines.sweeps import config


def test_figure_of_an_unknown_format_is_refused_before_the_work():
  with pytest.raises(ValueError, match="figure must end in .*'a.jpeg2'"):
    config.SweepOutputConfig(figure='a.jpeg2')
  for ending in config.FIGURE_ENDINGS:
    assert config.SweepOutputConfig(figure=f'a{ending}').figure


def test_figure_of_a_part_is_refused():
  with pytest.raises(ValueError, match='figure would be ignored: shard'):
    config.SweepOutputConfig(shard='1/2', figure='a.png')


def test_type_is_checked():
  with pytest.raises(ValueError, match='tensorboard must be true or false'):
    config.SweepOutputConfig(tensorboard='yes')
