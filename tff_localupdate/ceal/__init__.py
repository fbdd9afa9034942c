"""CEAL, the algorithm of arXiv 2301.08869.

  schedule.py            what a stage of the norm estimation asks for
  norm_estimation.py     Algorithm 1, its test, and what it is compared with
  exchange_plan.py       what the next exchange asks for, given the state
  client_work.py         what a client computes and sends
  server_step.py         the server's state, its side of Algorithm 2
  federated_exchange.py  one exchange as TFF computations
  process.py             Algorithm 2 as a TFF process

The paper's full text was not to be had: the docstrings say what is stated in it
and what is inferred.
"""
