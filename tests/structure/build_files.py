"""Writes the BUILD files, or checks that they are true.

    python -m tests.structure.build_files           # check, exit 1 if not true
    python -m tests.structure.build_files --write

One target per file, named as the file (a package's `__init__.py`: as its
folder), with the modules of this repository that the file imports as `deps`:
lazily imported ones and those that a registry names by import path included.
Third-party packages come from the environment and are not listed.
"""

import pathlib
import sys

from tests.structure import sources

_LOAD = 'load("@rules_python//python:defs.bzl", {})\n'
_HEAD = '# Written by: python -m tests.structure.build_files --write\n'
_PACKAGE = 'package(default_visibility = ["//:repository"])\n'
_GROUP = """package_group(
    name = "repository",
    packages = ["//..."],
)
"""
_FILEGROUP = '''filegroup(
    name = "{}",
    srcs = glob(["{}"]),
)'''
_RUNNER = '//tests:pytest_main.py'
# Files of other kinds, by the folder whose BUILD file lists them.
_DATA = {
    'baselines/presets': ('presets', '*.flags'),
    'scripts': ('scripts', '*.sh'),
}


def build_texts() -> dict[pathlib.Path, str]:
  """Returns the text of each BUILD file by its path."""
  modules = sources.find_modules()
  labels = {name: _label(path) for name, path in modules.items()}
  folders: dict[pathlib.Path, list[str]] = {}
  tests = []
  for name, path in sorted(modules.items(), key=lambda item: item[1]):
    found = sources.find_imports(sources.parse(path), modules)
    deps = {labels[i.name] for i in found if i.name in labels} - {labels[name]}
    if path.name.endswith('_test.py'):
      tests.append(labels[name])
      deps.add('//tests:conftest')
    folders.setdefault(path.parent, []).append(_target(path, deps))
  for folder, (name, pattern) in _DATA.items():
    if (sources.ROOT / folder).is_dir():
      rule = _FILEGROUP.format(name, pattern)
      folders.setdefault(sources.ROOT / folder, []).append(rule)
  texts = {folder / 'BUILD': _file(t) for folder, t in folders.items()}
  texts[sources.ROOT / 'BUILD'] = _root_file(tests)
  return texts


def find_differences() -> list[str]:
  """Returns one line per BUILD file that is missing, stale or not wanted."""
  texts = build_texts()
  lines = []
  for path, text in sorted(texts.items()):
    if not path.exists():
      lines.append(f'{path.relative_to(sources.ROOT)} is missing.')
    elif path.read_text(encoding='utf-8') != text:
      lines.append(f'{path.relative_to(sources.ROOT)} is not true any more.')
  for folder in sources.FOLDERS:
    for path in sorted((sources.ROOT / folder).rglob('BUILD')):
      if path not in texts:
        lines.append(f'{path.relative_to(sources.ROOT)} is not needed.')
  return lines


def _label(path: pathlib.Path) -> str:
  folder = path.parent.relative_to(sources.ROOT).as_posix()
  folder = '' if folder == '.' else folder
  return f'//{folder}:{_target_name(path)}'


def _target_name(path: pathlib.Path) -> str:
  return path.parent.name if path.name == '__init__.py' else path.stem


def _target(path: pathlib.Path, deps: set[str]) -> str:
  """Returns one rule; labels of the same folder are written short."""
  folder = path.parent.relative_to(sources.ROOT).as_posix()
  own = f'//{folder}:'
  short = [d[len(own) - 1 :] if d.startswith(own) else d for d in deps]
  # Buildifier's order: the folder's own targets first.
  short.sort(key=lambda dep: (not dep.startswith(':'), dep.replace(':', '!')))
  is_test = path.name.endswith('_test.py')
  lines = [
      'py_test(' if is_test else 'py_library(',
      f'    name = "{_target_name(path)}",',
      *_list('srcs', [path.name] + [_RUNNER] * is_test),
  ]
  if is_test:
    lines.append(f'    args = ["$(location {path.name})"],')
    lines.append(f'    main = "{_RUNNER}",')
  if folder == 'tests/structure' and is_test:
    lines.append('    tags = ["local"],  # Reads the whole source tree.')
  lines += _list('deps', short)
  return '\n'.join([*lines, ')'])


def _list(field: str, values: list[str]) -> list[str]:
  """Returns the lines of a list-valued field, none if it is empty."""
  if len(values) < 2:
    return [f'    {field} = ["{value}"],' for value in values]
  rows = [f'        "{value}",' for value in values]
  return [f'    {field} = [', *rows, '    ],']


def _file(targets: list[str], *declarations: str) -> str:
  """Returns a BUILD file: what it loads and declares, then the targets."""
  text = '\n\n'.join(targets)
  rules = [r for r in ('py_library', 'py_test') if f'{r}(' in text]
  load = _LOAD.format(', '.join(f'"{rule}"' for rule in rules)) if rules else ''
  if '"pytest_main.py"' in text:
    declarations = ('exports_files(["pytest_main.py"])\n', *declarations)
  return '\n'.join([_HEAD + load, _PACKAGE, *declarations, text + '\n'])


def _root_file(tests: list[str]) -> str:
  lines = ['test_suite(', '    name = "tests",', *_list('tests', tests), ')']
  setup = _target(sources.ROOT / 'setup.py', set())
  return _file([setup, '\n'.join(lines)], _GROUP)


def main(arguments: list[str]) -> int:
  """Checks, or writes with `--write`; returns the exit status."""
  if arguments == ['--write']:
    for path, text in build_texts().items():
      path.write_text(text, encoding='utf-8')
    arguments = []
  if arguments:
    print(__doc__)
    return 2
  lines = find_differences()
  if lines:
    lines.append('Run: python -m tests.structure.build_files --write')
    print(*lines, sep='\n')
  return 1 if lines else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
