"""The BUILD files are what the imports say."""

import ast

from tests.structure import build_files
from tests.structure import sources


def test_files_on_disk_are_the_generated_ones():
  assert not build_files.find_differences(), (
      'Run: python -m tests.structure.build_files --write'
  )


def test_every_python_file_has_exactly_one_target():
  texts = build_files.build_texts()
  for path in sources.find_files():
    text = texts[path.parent / 'BUILD']
    assert text.count(f'srcs = ["{path.name}"') + text.count(
        f'srcs = [\n        "{path.name}"'
    ) == 1, path


def test_labels_in_deps_are_targets():
  targets = set()
  labels = set()
  for path, text in build_files.build_texts().items():
    folder = path.parent.relative_to(sources.ROOT).as_posix()
    folder = '' if folder == '.' else folder
    # BUILD files are a subset of Python.
    for statement in ast.parse(text).body:
      for keyword in statement.value.keywords:
        value = ast.literal_eval(keyword.value) if keyword.arg in (
            'name', 'deps', 'tests'
        ) else None
        if keyword.arg == 'name':
          assert f'//{folder}:{value}' not in targets
          targets.add(f'//{folder}:{value}')
        elif value:
          labels.update(
              f'//{folder}{v}' if v.startswith(':') else v for v in value
          )
  assert labels
  assert labels <= targets


def test_lazy_imports_and_import_paths_are_deps():
  text = (
      'import a.b\n'
      'def f():\n'
      '  from a import c\n'
      'TABLE = {"x": "a.d:build", "y": "a.unknown:build", "z": "a d"}\n'
  )
  modules = {name: None for name in ('a', 'a.b', 'a.c', 'a.d')}
  found = sources.find_imports(ast.parse(text), modules)
  assert [(i.name, i.when) for i in found] == [
      ('a.b', 'start'), ('a.c', 'call'), ('a.d', 'text'),
  ]
