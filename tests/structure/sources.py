"""The repository's Python files and their imports, read without importing."""

import ast
from collections.abc import Iterator
import pathlib
import re
from typing import NamedTuple, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ('tff_localupdate', 'baselines')
FOLDERS = (*PACKAGES, 'scripts', 'tests')

# An import path as registries hold it: `package.module` or
# `package.module:function`.
_IMPORT_PATH = re.compile(r'([a-z_]\w*(?:\.\w+)+)(?::\w+)?')


class Import(NamedTuple):
  """One imported module.

  Attributes:
    name: The dotted name; for `from a import b` it is `a.b` where that is a
      module of this repository, else `a`.
    line: Line number of the statement.
    when: `start` if importing the file runs it, `call` if it is inside a
      function, `text` for an import path in a string.
  """

  name: str
  line: int
  when: str


def find_files(*folders: str) -> list[pathlib.Path]:
  """Returns all Python files under these folders of the root, sorted."""
  found = []
  for folder in folders or FOLDERS:
    found.extend((ROOT / folder).rglob('*.py'))
  return sorted(f for f in found if '__pycache__' not in f.parts)


def module_name(path: pathlib.Path) -> str:
  """Returns the dotted name of a file; a package's is that of its folder."""
  parts = path.relative_to(ROOT).with_suffix('').parts
  return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


def find_modules(*folders: str) -> dict[str, pathlib.Path]:
  """Returns the files of `find_files` by dotted name."""
  return {module_name(path): path for path in find_files(*folders)}


def parse(path: pathlib.Path) -> ast.Module:
  """Returns the syntax tree of a file."""
  return ast.parse(path.read_text(encoding='utf-8'), filename=str(path))


def find_imports(
    tree: ast.AST, modules: Optional[dict[str, pathlib.Path]] = None
) -> list[Import]:
  """Returns all imports of a file, lazy ones and import paths included.

  Args:
    tree: The file's syntax tree.
    modules: The repository's modules; those of all folders by default.
  """
  modules = find_modules() if modules is None else modules
  return list(_walk(tree, modules, 'start'))


def _walk(
    node: ast.AST, modules: dict[str, pathlib.Path], when: str
) -> Iterator[Import]:
  if isinstance(node, ast.Import):
    for alias in node.names:
      yield Import(alias.name, node.lineno, when)
  elif isinstance(node, ast.ImportFrom):
    for alias in node.names:
      name = f'{node.module}.{alias.name}'
      found = name if name in modules else node.module
      yield Import(found, node.lineno, when)
  elif isinstance(node, ast.Constant) and isinstance(node.value, str):
    match = _IMPORT_PATH.fullmatch(node.value)
    if match and match.group(1) in modules:
      yield Import(match.group(1), node.lineno, 'text')
  elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
    when = 'call'
  for child in ast.iter_child_nodes(node):
    yield from _walk(child, modules, when)


def is_within(name: str, package: str) -> bool:
  """Whether a dotted name is a package or inside it."""
  return name == package or name.startswith(package + '.')
