"""Every TFF name that the code uses is public and really there.

TFF moves and deletes symbols between releases. Before the pin is moved, read
the list of names against its release notes:

    scripts/test.sh tests/structure/tff_names_test.py -s
"""

import ast

from tests.structure import sources

_MODULE = 'tensorflow_federated'


def _aliases(tree):
  """Returns the names under which a file knows TFF."""
  return {
      alias.asname or alias.name
      for node in ast.walk(tree)
      if isinstance(node, ast.Import)
      for alias in node.names
      if alias.name == _MODULE
  }


def _dotted(node):
  """Returns `a.b.c` for such an expression, else None."""
  if isinstance(node, ast.Name):
    return node.id
  if isinstance(node, ast.Attribute):
    head = _dotted(node.value)
    return head and f'{head}.{node.attr}'
  return None


def _used_names(tree):
  """Returns all `tff.*` names of a file, each at its full length."""
  aliases = _aliases(tree)
  inner = {
      id(node.value) for node in ast.walk(tree)
      if isinstance(node, ast.Attribute)
  }
  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute) and id(node) not in inner:
      head, _, rest = (_dotted(node) or '').partition('.')
      if head in aliases:
        yield f'tff.{rest}'


def _trees():
  for path in sources.find_files(*sources.PACKAGES):
    yield path.relative_to(sources.ROOT).as_posix(), sources.parse(path)


def _all_names():
  return sorted({name for _, tree in _trees() for name in _used_names(tree)})


def test_names_are_public_and_exist():
  import tensorflow_federated as tff

  names = _all_names()
  print('\n'.join(['', *names]))
  # What the whole design stands on: if the search misses it, it finds nothing.
  assert 'tff.backends.mapreduce.get_map_reduce_form_for_computation' in names
  for name in names:
    found = tff
    for part in name.split('.')[1:]:
      assert not part.startswith('_') and part != 'python', name
      assert hasattr(found, part), name
      found = getattr(found, part)


def test_no_module_of_tff_is_imported_by_itself():
  wrong = [
      f'{path}:{found.line} imports {found.name}'
      for path, tree in _trees()
      for found in sources.find_imports(tree)
      if found.name.startswith(_MODULE + '.')
  ]
  assert not wrong, '\n'.join(wrong)
