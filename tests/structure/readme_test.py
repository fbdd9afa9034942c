"""README and docs: examples run as they stand, and named files exist."""

import re

import numpy as np

from tests.structure import sources


def _run_examples(name, number):
  """Runs the examples of a file one after another; returns their names."""
  text = (sources.ROOT / name).read_text(encoding='utf-8')
  blocks = re.findall(r'```python\n(.*?)```', text, re.DOTALL)
  assert len(blocks) == number
  namespace = {}
  for block in blocks:
    exec(compile(block, name, 'exec'), namespace)  # noqa: S102
  return namespace


def test_python_examples_run(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  namespace = _run_examples('README.md', 2)
  run, table = namespace['run'], namespace['table']
  assert run.status == 'finished' and table['round'].tolist() == [20]
  assert table['population_loss'][0] == run.metrics['population_loss'][20]
  assert float(namespace['metrics'].loss_before_training) < 5.0
  assert float(namespace['rates']['client_learning_rate']) == 0.0


def test_stock_process_of_the_guide_runs():
  state = _run_examples('docs/guide.md', 1)['state']
  kernel, bias = np.zeros(2), 0.0
  for _ in range(5):  # All clients are alike: the mean is one of them.
    for x, y in zip(np.eye(2), (1.0, 2.0)):
      error = 2.0 * (x @ kernel + bias - y)
      kernel, bias = kernel - 0.1 * error * x, bias - 0.1 * error
  found = state.global_model_weights.trainable
  np.testing.assert_allclose(found[0][:, 0], kernel, rtol=1e-5)
  np.testing.assert_allclose(found[1], [bias], rtol=1e-5)


def test_ceal_in_code_of_ones_own_learns():
  state = _run_examples('docs/ceal.md', 1)['state']
  found = state.model_weights.trainable[0]
  np.testing.assert_allclose(found, [0.5, -0.25, 0.1], atol=0.1)
  assert int(state.time_used) == 1000


def test_commands_name_files_that_exist():
  text = (sources.ROOT / 'README.md').read_text(encoding='utf-8')
  named = re.findall(r'(?:scripts|baselines|tests)/[\w/.]+\w', text)
  assert named
  for name in named:
    assert (sources.ROOT / name).exists(), name


def _map_section():
  text = (sources.ROOT / 'README.md').read_text(encoding='utf-8')
  return re.search(
      r'^## Map of the repository\n(.*?)^## ', text, re.DOTALL | re.MULTILINE
  ).group(1)


def test_places_of_the_map_exist():
  tree = re.search(r'```\n(.*?)```', _map_section(), re.DOTALL).group(1)
  parent, places = '', []
  for indent, name in re.findall(r'^( *)([\w./]+)', tree, re.MULTILINE):
    assert len(indent) in (0, 2)
    parent = parent if indent else name
    places.append(parent + name if indent else name)
  assert {'tff_localupdate/', 'baselines/training/', 'docs/'} <= set(places)
  for place in places:
    assert (sources.ROOT / place).is_dir(), place


def test_every_package_is_on_the_map():
  names = re.findall(r'^  (\w+)/', _map_section(), re.MULTILINE)
  packages = {
      path.parent.name
      for package in sources.PACKAGES
      for path in (sources.ROOT / package).glob('*/__init__.py')
  }
  assert packages <= set(names)


def test_files_of_the_map_exist():
  rows = re.findall(r'^\|.*\|$', _map_section(), re.MULTILINE)[2:]
  assert len(rows) >= 10
  for row in rows:
    named = re.findall(r'`([^`]+)`', row)
    assert named, row
    for name in named:
      assert (sources.ROOT / name).is_file(), name
