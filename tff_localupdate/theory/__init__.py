"""The theory of LocalUpdate on quadratic losses, in NumPy and float64.

Charles and Konecny (2020), sections 3 to 7. Nothing here imports TensorFlow.

  constants.py        mu, L, sigma_A, sigma_c of a population
  quadratics.py       populations of quadratic clients, clients of examples
  populations.py      random ones, of given spectra and heterogeneity
  surrogate.py        Q_i, surrogate losses, their gradients and minimizers
  maml.py             K-MAML, which has a surrogate loss too
  spectrum.py         phi, eigenvalues of Q_i and Q_i A_i, condition numbers
  bounds.py           how far surrogate minimizers are from each other
  rates.py            which rates the theorems take
  convergence.py      how fast the iterates come near a minimizer
  moments.py          exact mean and second moment of the iterates
  reciprocal.py       the populations of section 4 and Figure 1, exactly
  reciprocal_process.py  LocalUpdate on them
  sampling_bias.py    what sampling without replacement and reuse do to q
"""
