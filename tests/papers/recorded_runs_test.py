"""The recorded runs of docs/paper1.md give the numbers that it states."""

import pathlib
import tarfile

import pandas as pd
import pytest

from baselines.figures import main as figures

_ARCHIVE = (
    pathlib.Path(__file__).parents[2] / 'docs' / 'paper1_runs.tar.xz'
)


@pytest.fixture(scope='module', name='runs')
def _runs(tmp_path_factory):
  folder = tmp_path_factory.mktemp('recorded')
  with tarfile.open(_ARCHIVE) as archive:
    archive.extractall(folder)
  return folder


def _curves(runs, name, *flags):
  """Values of the last round by gamma."""
  table = runs / 'curves.csv'
  assert figures.main([
      'curves', f'--runs={runs / name}', f'--csv={table}',
      f'--output={runs / "curves.png"}', *flags,
  ]) == 0
  last = pd.read_csv(table).groupby('client_learning_rate').last()
  return {
      gamma: (int(row['round']), round(row['mean'], 3))
      for gamma, row in last.iterrows()
  }


def test_fig2a_small_gamma_ends_lower(runs):
  found = _curves(runs, 'emnist_digits_300', '--server_learning_rate=0.01')
  assert found == {0.0: (300, 0.102), 0.01: (300, 0.138), 0.1: (300, 0.167)}


def test_fig5a_tuned(runs):
  found = _curves(runs, 'emnist_digits_300', '--select=best')
  assert found == {0.0: (300, 0.068), 0.01: (300, 0.06), 0.1: (300, 0.044)}


def test_fig2c_small_gammas_differ_little(runs):
  found = _curves(runs, 'shakespeare', '--server_learning_rate=0.01')
  assert found == {
      0.0: (60, 2.902), 0.01: (60, 2.74), 0.1: (60, 2.816), 1.0: (60, 4.001)
  }


def test_fig5c_tuned(runs):
  found = _curves(runs, 'shakespeare', '--select=best')
  assert found == {
      0.0: (60, 2.031), 0.01: (60, 2.08), 0.1: (60, 2.057), 1.0: (60, 1.579)
  }


def test_fig6a_all_but_the_largest_gamma_are_alike(runs):
  found = _curves(
      runs, 'stackoverflow_tag', '--server_learning_rate=0.01',
      '--quantity=loss_before_training',
  )
  assert found == {
      0.0: (60, 0.389), 1.0: (60, 0.389), 10.0: (60, 0.39), 100.0: (60, 0.392)
  }


def test_fig4_a_rate_of_a_tenth_wins_and_one_of_1_rises(runs):
  found = _curves(
      runs, 'cifar100', '--select=equal', '--client_learning_rates=0.01,0.1,1'
  )
  assert found == {0.01: (20, 5.607), 0.1: (20, 5.402), 1.0: (20, 5.586)}


def test_fig2b_nothing_is_learned_in_20_rounds(runs):
  found = _curves(runs, 'cifar100', '--server_learning_rate=0.01')
  assert found == {
      0.0: (20, 5.562), 0.01: (20, 5.607), 0.1: (20, 5.544), 1.0: (20, 5.566)
  }


def test_fig6b_words_prefer_a_larger_gamma(runs):
  losses = {}
  for path in (runs / 'stackoverflow_word').glob('*/metrics.csv'):
    row = pd.read_csv(path).set_index('round').loc[40]
    losses[row.client_learning_rate] = round(row.loss_before_training, 2)
  assert losses == {0.0: 4.58, 0.1: 4.47, 1.0: 15.69}


def test_fig9a_no_decay_is_due_in_400_rounds(runs):
  (path,) = (runs / 'stackoverflow_tag_decay').glob('*/metrics.csv')
  table = pd.read_csv(path).set_index('round')
  assert not table[['client_decays', 'server_decays']].max().any()
  window = table.average_loss[range(100, 401, 50)]
  assert window.iloc[-1] == pytest.approx(0.0146, abs=5e-5)
  assert (window.diff()[1:] < -6e-4).all()


def _evaluations(runs, name):
  """f(x) by round, and the decays of gamma by round, of a single run."""
  (path,) = runs.glob(f'{name}-*/metrics.csv')
  table = pd.read_csv(path).set_index('round')
  return table.population_loss.dropna().round(3), table.client_decays


def test_fig8c_after_a_decay_eta_is_too_large(runs):
  losses, decays = _evaluations(
      runs, 'shakespeare_decay/shakespeare-gamma1-eta1'
  )
  assert (decays[175], decays[174], decays[200]) == (1, 0, 1)
  assert losses[200] == 1.675
  found = _curves(runs, 'shakespeare_200')
  assert found == {0.0: (200, 1.76), 1.0: (200, 1.268)}


def test_fig5a_and_8a_the_best_runs_for_longer(runs):
  found = _curves(runs, 'emnist_digits_600')
  assert found == {0.0: (600, 0.031), 0.1: (600, 0.024)}
  losses, decays = _evaluations(
      runs, 'emnist_digits_decay/emnist_digits-gamma0.1-eta0.0316228'
  )
  assert losses[[300, 400]].tolist() == [0.075, 0.048]
  assert decays[[208, 279, 329]].tolist() == [1, 2, 3]


def test_fig8a_a_second_decay_destroys_the_model(runs):
  losses, decays = _evaluations(
      runs, 'emnist_digits_decay/emnist_digits-gamma0.1-eta0.1'
  )
  assert losses[[200, 250, 300, 400]].tolist() == [0.055, 0.047, 2.342, 2.301]
  assert decays[[207, 208, 280, 281]].tolist() == [0, 1, 1, 2]


def test_fig7a_gammas_are_alike_after_400_rounds(runs):
  means = []
  for name in ('stackoverflow_tag_400', 'stackoverflow_tag_decay'):
    (path,) = (runs / name).glob('*/metrics.csv')
    means.append(pd.read_csv(path).loss_before_training[-40:].mean())
  assert means == pytest.approx([0.01424, 0.01427], abs=5e-6)


def test_settings_of_all_runs_are_recorded(runs):
  counts = {
      folder.name: len(list(folder.glob('*/config.json')))
      for folder in runs.iterdir() if folder.is_dir()
  }
  for name, number in {
      'emnist_digits_100': 16, 'emnist_digits_300': 7, 'emnist_digits_600': 2,
      'emnist_digits_decay': 2, 'shakespeare': 16, 'shakespeare_200': 2,
      'shakespeare_decay': 1,
      'stackoverflow_tag': 16, 'stackoverflow_tag_400': 1,
      'stackoverflow_tag_decay': 1, 'stackoverflow_word': 3, 'cifar100': 6,
  }.items():
    assert counts[name] == number
