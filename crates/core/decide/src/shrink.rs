//! Cells shrunk towards each other: a normal hierarchy of one level (Rubin 1981; Gelman 2006).
//!
//! A cell's true value is normal around a common centre with deviation tau. With few cells tau is hardly known, so it is
//! integrated over a grid instead of estimated.

use std::f64::consts::FRAC_PI_2;

use crate::distribution::normal_cdf;

/// Points of the grid: quantiles of the half-Cauchy prior of tau, all of the same weight.
const STEPS: u32 = 24;

/// The assumption before any data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prior {
    /// Deviation of the common centre around zero.
    pub(crate) root_sd: f64,
    /// Median of tau.
    pub(crate) tau_scale: f64,
}

/// A mixture of normals for each cell: one component for each tau.
pub(crate) struct Posterior {
    components: Vec<Component>,
}

struct Component {
    weight: f64,
    /// Mean and standard deviation of each cell.
    cells: Vec<(f64, f64)>,
}

impl Posterior {
    /// Probability that each cell's value is above `limit`.
    pub(crate) fn above(&self, limit: f64) -> Vec<f64> {
        let total: f64 = self.components.iter().map(|one| one.weight).sum();
        let cells = self.components.first().map_or(0, |one| one.cells.len());
        let of = |one: &Component, cell: usize| {
            let (mean, sd) = one.cells[cell];
            one.weight / total * normal_cdf((mean - limit) / sd)
        };
        (0..cells).map(|cell| self.components.iter().map(|one| of(one, cell)).sum()).collect()
    }
}

/// Posterior of each cell from its estimate and standard error (normal).
pub(crate) fn shrink(cells: &[(f64, f64)], prior: Prior) -> Posterior {
    let taus = (0..STEPS).map(|step| {
        prior.tau_scale * (FRAC_PI_2 * (f64::from(step) + 0.5) / f64::from(STEPS)).tan()
    });
    let fits: Vec<(f64, Component)> =
        taus.map(|tau| component(cells, tau * tau, prior.root_sd)).collect();
    let best = fits.iter().map(|(fit, _)| *fit).fold(f64::NEG_INFINITY, f64::max);
    let weighed = |(fit, one): (f64, Component)| Component { weight: (fit - best).exp(), ..one };
    Posterior { components: fits.into_iter().map(weighed).collect() }
}

/// The log likelihood of a tau, and the posterior that it gives.
fn component(cells: &[(f64, f64)], tau2: f64, root_sd: f64) -> (f64, Component) {
    let (mut sum, mut weighted, mut squares, mut logarithms) = (0.0, 0.0, 0.0, 0.0);
    for (mean, error) in cells {
        let precision = 1.0 / (error * error + tau2);
        sum += precision;
        weighted += precision * mean;
        squares += precision * mean * mean;
        logarithms += precision.ln();
    }
    let centre_variance = 1.0 / (1.0 / (root_sd * root_sd) + sum);
    let centre = centre_variance * weighted;
    let fit = 0.5 * (centre_variance.ln() + logarithms)
        - 0.5 * (squares - centre * centre / centre_variance);
    let of = |(mean, error): &(f64, f64)| {
        let variance = error * error;
        let keep = tau2 / (variance + tau2);
        let sd = (keep * variance + (1.0 - keep).powi(2) * centre_variance).sqrt();
        (keep * mean + (1.0 - keep) * centre, sd)
    };
    (fit, Component { weight: 0.0, cells: cells.iter().map(of).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIOR: Prior = Prior { root_sd: 1.0, tau_scale: 0.1 };

    /// Two cells that differ widely keep their own estimates; two alike move together.
    #[test]
    fn tau_is_integrated_for_few_cells() {
        let apart = shrink(&[(0.0, 0.05), (1.0, 0.05)], PRIOR).above(0.9);
        assert!((apart[1] - 0.97).abs() < 0.03, "{apart:?}");
        let near = shrink(&[(0.02, 0.05), (0.06, 0.05)], PRIOR).above(0.04);
        assert!(near[0] > 0.3 && near[1] < 0.7, "{near:?}");
    }
}
