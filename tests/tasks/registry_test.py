"""What can be chosen, checked without TensorFlow."""

import os
import shutil
import subprocess
import sys
import types

import pytest

from baselines.tasks import registry


def test_unknown_task_lists_the_tasks():
  with pytest.raises(ValueError, match=r"\[.*'cifar100', .*got 'digit'"):
    registry.task_entry('digit')


def test_unknown_choices_list_those_there_are():
  with pytest.raises(ValueError, match=r"model .*\['cnn', 'logistic'\], got"):
    registry.check_choices('digits', 'lstm', 'embedded')
  with pytest.raises(ValueError, match=r"data_source .*\['embedded'\], got"):
    registry.check_choices('digits', 'cnn', 'cache')


def test_sizes_of_fixed_sources():
  assert registry.check_data('digits', 'embedded') == 100
  assert registry.check_data('femnist', 'synthetic') == 2
  assert registry.check_data('shakespeare', 'synthetic') == 3
  assert registry.check_data('cifar100', 'synthetic') == 2
  assert registry.check_data('stackoverflow_tag', 'synthetic') == 3
  assert registry.check_data('quadratics', 'synthetic') == 2
  # New clients each round, as many as wanted.
  interval = registry.check_data('quadratics', 'synthetic', None, 'interval')
  assert interval is None


def test_folder_that_would_be_ignored_is_refused(tmp_path):
  with pytest.raises(ValueError, match="data_dir must not be given .*'embedd"):
    registry.check_data('digits', 'embedded', str(tmp_path))


def test_download_that_is_still_to_come(tmp_path):
  assert registry.check_data('femnist', 'download', str(tmp_path)) is None


@pytest.mark.parametrize(
    'name, num_clients',
    [
        ('cifar100', 13),
        ('emnist_digits', 34),
        ('femnist', 9),
        ('shakespeare', 1122),
        ('stackoverflow_tag', 89),
        ('stackoverflow_word', 89),
    ],
)
@pytest.mark.parametrize('source', ['cache', 'download'])
def test_prepared_folder(shared_data, name, num_clients, source):
  folder = str(shared_data / 'tff_cache')
  assert registry.check_data(name, source, folder) == num_clients


def test_half_of_a_real_database(shared_data, tmp_path):
  path = tmp_path / 'shakespeare.sqlite'
  shutil.copyfile(shared_data / 'tff_cache' / path.name, path)
  path.chmod(0o644)
  os.truncate(path, path.stat().st_size // 2)
  for source in ('cache', 'download'):
    with pytest.raises(ValueError, match='expected 8716288 .* found 4358144;'):
      registry.check_data('shakespeare', source, str(tmp_path))


def test_counts_that_are_missing_or_not_tffs(shared_data, tmp_path):
  name = 'stackoverflow.sqlite'
  (tmp_path / name).symlink_to(shared_data / 'tff_cache' / name)
  folder = str(tmp_path)

  def check(source, task='stackoverflow_word'):
    return registry.check_data(task, source, folder)

  with pytest.raises(FileNotFoundError, match='word_count.*cache_counted'):
    check('cache')
  assert check('cache_counted') == check('download') == 89
  (tmp_path / 'stackoverflow.word_count').write_bytes(b'the 1')
  assert check('cache') == 89
  with pytest.raises(FileNotFoundError, match='tag_count'):
    check('cache', 'stackoverflow_tag')
  (tmp_path / 'stackoverflow.word_count.tar.bz2').write_bytes(b'other')
  for source in ('cache', 'download'):
    with pytest.raises(ValueError, match="not TFF's archive"):
      check(source)
  assert check('cache_counted') == 89
  assert (tmp_path / 'stackoverflow.word_count.tar.bz2').exists()


def test_builders_are_found_and_refuse_unknown_choices():
  config = types.SimpleNamespace(
      task='digits', model='nothing', data_source='embedded', data_dir=None,
      data_seed=0,
  )
  with pytest.raises(ValueError, match='model of task'):
    registry.build_task(config)


def test_registry_imports_nothing_heavy():
  program = (
      'import sys; from baselines.tasks import registry;'
      "registry.check_data('digits', 'embedded');"
      "print({'tensorflow', 'tensorflow_federated'} & set(sys.modules))"
  )
  done = subprocess.run(
      [sys.executable, '-c', program], capture_output=True, text=True,
      check=True,
  )
  assert done.stdout.strip() == 'set()'
