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


_FIXED = '--server_learning_rate=0.01'
_BEST = '--select=best'


@pytest.mark.parametrize('name, flags, num_rounds, expected', [
    # Fig. 2a, 5a: EMNIST digits.
    ('emnist_digits_300', [_FIXED], 300, {0: 0.102, 0.01: 0.138, 0.1: 0.167}),
    ('emnist_digits_300', [_BEST], 300, {0: 0.068, 0.01: 0.06, 0.1: 0.044}),
    ('emnist_digits_600', [], 600, {0: 0.031, 0.1: 0.024}),
    # Fig. 2b, 4: CIFAR-100, where nothing is learned in 20 rounds.
    ('cifar100', [_FIXED], 20, {0: 5.562, 0.01: 5.607, 0.1: 5.544, 1: 5.566}),
    ('cifar100', ['--select=equal', '--client_learning_rates=0.01,0.1,1'], 20,
     {0.01: 5.607, 0.1: 5.402, 1: 5.586}),
    # Fig. 2c, 5c: Shakespeare.
    ('shakespeare', [_FIXED], 60, {0: 2.902, 0.01: 2.74, 0.1: 2.816, 1: 4.001}),
    ('shakespeare', [_BEST], 60, {0: 2.031, 0.01: 2.08, 0.1: 2.057, 1: 1.579}),
    ('shakespeare_200', [], 200, {0: 1.76, 1: 1.268}),
    # Fig. 6a: tags, all but the largest gamma are alike.
    ('stackoverflow_tag', [_FIXED, '--quantity=loss_before_training'], 60,
     {0: 0.389, 1: 0.389, 10: 0.39, 100: 0.392}),
])
def test_last_value_of_each_gamma(runs, name, flags, num_rounds, expected):
  assert _curves(runs, name, *flags) == {
      gamma: (num_rounds, value) for gamma, value in expected.items()
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


def test_fig8a_from_a_smaller_eta_decay_helps(runs):
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
