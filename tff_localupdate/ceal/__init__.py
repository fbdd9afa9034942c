"""CEAL, the algorithm of arXiv 2301.08869.

  schedule.py     what a stage of the norm estimation asks for
  exchange.py     Algorithm 1, the plan of an exchange, the client's part
  server_step.py  the server's state, its side of Algorithm 2
  process.py      Algorithm 2 as a TFF process

The paper's full text was not available: the docstrings say what it states and
what is inferred.
"""
