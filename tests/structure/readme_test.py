"""The examples of the README run as they stand, in its order."""

import re

from tests.structure import sources


def test_python_examples_run():
  text = (sources.ROOT / 'README.md').read_text(encoding='utf-8')
  blocks = re.findall(r'```python\n(.*?)```', text, re.DOTALL)
  assert len(blocks) == 2
  namespace = {}
  for block in blocks:
    exec(compile(block, 'README.md', 'exec'), namespace)  # noqa: S102
  assert float(namespace['metrics'].loss_before_training) < 5.0
  assert float(namespace['rates']['client_learning_rate']) == 0.0


def test_commands_name_files_that_exist():
  text = (sources.ROOT / 'README.md').read_text(encoding='utf-8')
  named = re.findall(r'(?:scripts|baselines|tests)/[\w/.]+\w', text)
  assert named
  for name in named:
    assert (sources.ROOT / name).exists(), name
