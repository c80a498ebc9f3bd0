"""Cells shrunk towards each other: a normal hierarchy of one level (Rubin 1981; Gelman 2006).

A cell's true value is normal around a common centre with deviation tau. With few cells tau is hardly known,
so it is integrated over a grid instead of estimated. This is the model of `learn.tree` for one level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

STEPS = 24
"""Points of the grid: quantiles of the half-Cauchy prior of tau, all of the same weight."""


@dataclass(frozen=True)
class Posterior:
    """A mixture of normals for each cell: one component for each tau."""

    weight: Floats
    """Shape (taus,)."""
    mean: Floats
    """Shape (taus, cells)."""
    sd: Floats
    """Shape (taus, cells)."""

    def above(self, limit: float) -> list[float]:
        """Probability that each cell's value is above `limit`."""
        return [float(p) for p in self.weight @ special.ndtr((self.mean - limit) / self.sd)]


def shrink(means: Sequence[float], errors: Sequence[float], *, root_sd: float, tau_scale: float) -> Posterior:
    """Posterior of each cell from its estimate and standard error (normal).

    `root_sd`: deviation of the common centre around zero before any data. `tau_scale`: median of tau before
    any data.
    """
    mean, variance = np.asarray(means, dtype=np.float64), np.square(np.asarray(errors, dtype=np.float64))
    taus = tau_scale * np.tan(math.pi / 2 * (np.arange(STEPS) + 0.5) / STEPS)
    tau2 = np.square(taus)[:, None]
    precision = 1 / (variance + tau2)
    centre_variance = 1 / (1 / root_sd**2 + precision.sum(axis=1))
    centre = centre_variance * (precision @ mean)
    fit = (
        0.5 * np.log(centre_variance)
        + 0.5 * np.log(precision).sum(axis=1)
        - 0.5 * (precision @ mean**2 - centre**2 / centre_variance)
    )
    weight = np.exp(fit - fit.max())
    keep = tau2 / (variance + tau2)
    sd = np.sqrt(keep * variance + np.square(1 - keep) * centre_variance[:, None])
    return Posterior(weight / weight.sum(), keep * mean + (1 - keep) * centre[:, None], sd)
