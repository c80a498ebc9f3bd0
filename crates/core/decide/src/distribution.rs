//! Tails and quantiles of the distributions that the rules use.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal, StudentsT};

/// The normal's 97.5 % quantile.
pub(crate) const NORMAL_975: f64 = 1.959_963_984_540_054;

/// Lower tail of the normal.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Quantile of the normal; infinite for 0 and 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// Upper tail of Student's t; of the normal where `df` is infinite.
pub(crate) fn tail(t: f64, df: f64) -> f64 {
    student(df).map_or_else(|| normal_cdf(-t), |student| student.sf(t))
}

/// Quantile of Student's t.
pub(crate) fn quantile(p: f64, df: f64) -> f64 {
    student(df).map_or_else(|| normal_quantile(p), |student| student.inverse_cdf(p))
}

/// Upper tail of chi-squared.
pub(crate) fn chi_squared_tail(x: f64, df: f64) -> f64 {
    ChiSquared::new(df).map_or(1.0, |distribution| distribution.sf(x))
}

/// `None`: as good as the normal, or no distribution.
fn student(df: f64) -> Option<StudentsT> {
    if df.is_finite() { StudentsT::new(0.0, 1.0, df).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of scipy.special 1.14 (`stdtr`, `stdtrit`, `ndtri`, `chdtrc`).
    #[test]
    fn tails_and_quantiles_are_those_of_scipy() {
        let close = |value: f64, expected: f64| {
            assert!((value / expected - 1.0).abs() < 1e-9, "{value} {expected}");
        };
        for (value, expected) in SCIPY {
            close(value(), *expected);
        }
    }

    type Value = (fn() -> f64, f64);
    #[expect(clippy::unreadable_literal, reason = "as scipy prints them")]
    const SCIPY: &[Value] = &[
        (|| tail(2.0, 5.0), 0.050969739414929174),
        (|| tail(8.0, 5.0), 0.0002464533302862221),
        (|| tail(3.5, 60.0), 0.00044195568266646243),
        (|| tail(12.0, 98.0), 3.0000766009189058e-21),
        (|| tail(-1.0, 30.0), 0.8373456922869849),
        (|| quantile(0.975, 5.0), 2.5705818356363146),
        (|| quantile(0.975, 98.0), 1.9844674545084815),
        (|| quantile(0.9985, 98.0), 3.0437300583611684),
        (|| quantile(0.975, 4.0), 2.7764451051977934),
        (|| normal_quantile(0.975), 1.959963984540054),
        (|| normal_quantile(0.99), 2.3263478740408408),
        (|| normal_quantile(1e-12), -7.034483825301131),
        (|| normal_cdf(-9.0), 1.1285884059538324e-19),
        (|| chi_squared_tail(80.0, 39.0), 0.00011974877354948282),
        (|| chi_squared_tail(400.0, 199.0), 1.2927080567006074e-15),
    ];
}
