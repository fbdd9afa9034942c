"""What the four panels of the trade-off show."""

import warnings

import numpy as np
import pytest

from baselines.figures import style
from baselines.figures import trade_off_figure
from tff_localupdate.theory import bounds
from tff_localupdate.theory import quadratics
from tff_localupdate.theory import trade_off

CONSTANTS = quadratics.PopulationConstants(0.1, 1.0, 0.2, 0.02)
QUESTION = trade_off.Question(CONSTANTS, 10, 0.5, 500, 3.0)


@pytest.fixture(name='panels', scope='module')
def _panels():
  """The lines of each panel by their labels."""
  figures = []
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(style, 'save', lambda figure, path: figures.append(figure))
    best_of_each = trade_off.best_of_each_num_steps(QUESTION)
    trade_off_figure.draw(QUESTION, best_of_each, None)
  return [
      {line.get_label(): line.get_xydata() for line in axes.get_lines()}
      for axes in figures[0].axes
  ]


def test_distances(panels):
  assert set(panels[0]) == {
      'Theorem 16', 'Theorem 17', 'Theorem 21, from 0', 'Corollary 19'
  }
  for gamma, value in panels[0]['Theorem 17'][::20]:
    assert value == bounds.fed_avg_distance_bound(CONSTANTS, 10, gamma)


def test_condition_number_falls_from_that_of_the_loss(panels):
  gammas, values = panels[1]['Corollary 13'].T
  assert (np.diff(values) < 0.0).all()
  expected = (1.0 - (1.0 - gammas) ** 10) / (1.0 - (1.0 - 0.1 * gammas) ** 10)
  np.testing.assert_allclose(values, expected, rtol=1e-9)
  np.testing.assert_allclose(panels[1][r'$L/\mu$, at $\gamma = 0$'][:, 1], 10.0)


def test_error_is_a_sum_and_its_least_is_marked(panels):
  lines = panels[2]
  total = lines['sum'][:, 1]
  parts = lines['optimisation'][:, 1] + lines[r'$\|x^*_\gamma-x^*\|$'][:, 1]
  np.testing.assert_allclose(total, parts, rtol=1e-12)
  best = trade_off.best_client_rate(
      trade_off.constant_rates, QUESTION, 10
  )
  (label,) = [name for name in lines if name.startswith('best')]
  assert lines[label].tolist() == [[best.client_learning_rate, best.error]]
  assert f'{best.client_learning_rate:.3g}' in label
  assert best.error <= total.min()


def test_steps(panels):
  lines = panels[3]
  steps, errors = lines[r'best $\gamma$'].T
  assert (steps[0], steps[-1]) == (1, 100)
  assert (errors <= lines[r'$\gamma = 0$'][:, 1]).all()
  (label,) = [name for name in lines if name.startswith('enough')]
  ((marked, error),) = lines[label]
  assert f'K = {marked:g},' in label
  assert error == errors[steps == marked] <= 1.05 * errors.min()


def test_caption_names_the_numbers():
  text = trade_off_figure.caption(QUESTION)
  assert r'$\mu$ = 0.1, $L$ = 1, $\sigma_A$ = 0.2, $\sigma_c$ = 0.02' in text
  assert r'$V$ = 0.5, $K$ = 10, $T$ = 500, $\|x_1-x^*\|$ = 3.' in text
  assert 'V grows like K.' in text
  figure = style.new_figure()
  style.add_caption(figure, text)
  for line in figure.get_supxlabel().splitlines():
    assert line.count('$') % 2 == 0


def test_figure_without_any_error_is_drawn(tmp_path):
  """kappa = 1, equal clients, no noise: one step is enough, bounds are 0."""
  question = trade_off.Question(
      quadratics.PopulationConstants(1.0, 1.0), 2, 0.0, 5, 1.0
  )
  found = trade_off.best_of_each_num_steps(question)[:2]
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    trade_off_figure.draw(question, found, tmp_path / 'a.png')
  assert (tmp_path / 'a.png').read_bytes().startswith(b'\x89PNG')


def test_marked_rates_are_one_number(monkeypatch):
  figures = []
  monkeypatch.setattr(style, 'save', lambda figure, _: figures.append(figure))
  # Slow and smooth: eta is large, and gamma small.
  question = trade_off.Question(
      quadratics.PopulationConstants(1e-6, 1e-6, 0.0, 0.0), 2, 0.0, 5, 1.0
  )
  found = trade_off.best_of_each_num_steps(question)[:2]
  trade_off_figure.draw(question, found, None)
  labels = [
      line.get_label() for axes in figures[0].axes for line in axes.get_lines()
  ]
  assert any(label.startswith('best: ') for label in labels)
  assert not any('e+' in label or 'e-0' in label for label in labels)
