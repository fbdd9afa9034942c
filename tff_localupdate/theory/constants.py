"""The four numbers of a population on which the bounds depend."""

import dataclasses

from tff_localupdate import arguments


@dataclasses.dataclass(frozen=True)
class PopulationConstants:
  """Spectrum and heterogeneity of a population of quadratic losses.

  With A_i and c_i the Hessian and the minimizer of client i, A and c their
  means over the population, I the identity:

      mu I <= A_i <= L I                  for all i      (Assumption 2)
      E ||A_i - A||^2 <= sigma_A^2        spectral norm  (Assumption 3)
      E ||c_i - c||^2 <= sigma_c^2

  Attributes:
    strong_convexity: mu, positive.
    smoothness: L, at least mu.
    hessian_deviation: sigma_A, not negative.
    center_deviation: sigma_c, not negative.

  Raises:
    ValueError: If a number is out of its range.
  """

  strong_convexity: float
  smoothness: float
  hessian_deviation: float = 0.0
  center_deviation: float = 0.0

  def __post_init__(self) -> None:
    check_spectrum(self.strong_convexity, self.smoothness)
    arguments.check_not_negative('hessian_deviation', self.hessian_deviation)
    arguments.check_not_negative('center_deviation', self.center_deviation)

  @property
  def condition_number(self) -> float:
    """kappa = L/mu."""
    return self.smoothness / self.strong_convexity

  @property
  def heterogeneity(self) -> float:
    """sigma_c (1 + sigma_A/mu), to which most distance bounds are in scale."""
    return self.center_deviation * (
        1.0 + self.hessian_deviation / self.strong_convexity
    )


def check_spectrum(strong_convexity: float, smoothness: float) -> None:
  """Raises ValueError unless 0 < `strong_convexity` <= `smoothness`."""
  arguments.check_positive('strong_convexity', strong_convexity)
  arguments.check_positive('smoothness', smoothness)
  if smoothness < strong_convexity:
    raise ValueError(
        f'smoothness must be at least strong_convexity, {strong_convexity}, '
        f'found {smoothness}.'
    )


def check_below_inverse(
    client_learning_rate: float, smoothness: float, factor: float = 1.0
) -> None:
  """Raises ValueError unless 0 <= gamma < 1/(`factor` L)."""
  arguments.check_not_negative('client_learning_rate', client_learning_rate)
  if factor * smoothness * client_learning_rate >= 1.0:
    raise ValueError(
        'client_learning_rate must be below '
        f'{1.0 / (factor * smoothness)}, 1/({factor:g} * smoothness), found '
        f'{client_learning_rate}.'
    )
