"""Tiny databases in the form of TFF's, whose splits differ."""

import sqlite3

# Of train, test and the split that no task uses, the posts of each user as
# (tokens, title, tags).
POSTS = {
    ('train', 'a'): [(b'the cat', b'cat', b'java|sql'), (b'the', b'', b'java')],
    ('train', 'b'): [(b'the dog cat', b'', b'java')],
    ('test', 'c'): [(b'dog dog', b'the', b'sql')],
    ('heldout', 'd'): [(b'cow', b'cow', b'c'), (b'cow', b'', b'c')],
}


def write(path, rows, stated=None):
  """Writes a database.

  Args:
    path: The file.
    rows: Lists of serialized examples by (split, client).
    stated: Numbers of examples that the table of clients states, by client,
      where they are not the right ones.
  """
  with sqlite3.connect(path) as connection:
    connection.execute(
        'CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT'
        ' NULL, serialized_example_proto BLOB NOT NULL)'
    )
    connection.execute(
        'CREATE TABLE client_metadata (client_id TEXT NOT NULL, split_name TEXT'
        ' NOT NULL, num_examples INTEGER NOT NULL)'
    )
    for (split, client), protos in rows.items():
      connection.executemany(
          'INSERT INTO examples VALUES (?, ?, ?)',
          [(split, client, proto) for proto in protos],
      )
      connection.execute(
          'INSERT INTO client_metadata VALUES (?, ?, ?)',
          (client, split, (stated or {}).get(client, len(protos))),
      )
  connection.close()


def example(**features):
  """Returns a serialized `tf.train.Example` of bytes, integers and floats."""
  # Databases themselves are tested without TensorFlow.
  import tensorflow as tf  # pylint: disable=g-import-not-at-top

  made = {}
  for name, values in features.items():
    if isinstance(values[0], bytes):
      made[name] = tf.train.Feature(
          bytes_list=tf.train.BytesList(value=values)
      )
    elif isinstance(values[0], int):
      made[name] = tf.train.Feature(
          int64_list=tf.train.Int64List(value=values)
      )
    else:
      made[name] = tf.train.Feature(
          float_list=tf.train.FloatList(value=values)
      )
  features = tf.train.Features(feature=made)
  return tf.train.Example(features=features).SerializeToString()


def write_posts(folder):
  """Writes `POSTS` as Stack Overflow's database into a folder."""
  write(folder / 'stackoverflow.sqlite', {
      key: [
          example(tokens=[tokens], title=[title], tags=[tags])
          for tokens, title, tags in posts
      ]
      for key, posts in POSTS.items()
  })
