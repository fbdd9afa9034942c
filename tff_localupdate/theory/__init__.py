"""The theory of LocalUpdate on quadratic losses, in NumPy and float64.

Charles and Konecny (2020), sections 2 to 7. Nothing here imports TensorFlow.

  quadratics.py     clients and populations, their constants, random ones
  surrogate.py      Q_i, surrogate losses, their gradients and minimizers; MAML
  spectrum.py       phi, eigenvalues of Q_i and Q_i A_i, condition numbers
  bounds.py         how far surrogate minimizers are from each other
  convergence.py    which rates the theorems take, how fast the iterates settle
  trade_off.py      which gamma and K make both together least
  moments.py        exact mean and second moment of the iterates
  reciprocal.py     the clients on a line of section 4 and Figure 1, exactly
  sampling_bias.py  what sampling without replacement and reuse do to q
"""
