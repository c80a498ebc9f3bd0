//! Controllers by name.

use uncork_cc::{Algorithm, CcSpec, SpecError};

use crate::{ConfigError, Node, Result};

impl Node {
    /// A congestion controller by its name and options, such as `bbr3:loss_floor`.
    pub fn controller(&self) -> Result<CcSpec> {
        let text = self.text()?;
        text.parse().map_err(|error: SpecError| {
            let worded = ConfigError::worded(&self.place, error);
            let (name, options) = text.split_once(':').unwrap_or((text, ""));
            match error {
                SpecError::UnknownAlgorithm => {
                    let known = Algorithm::ALL.map(Algorithm::name);
                    let error =
                        ConfigError::new(&self.place, format!("unknown controller `{name}`"));
                    error.expected(format!("one of {}", known.join(", "))).nearest(name, known)
                }
                SpecError::UnknownOption(algorithm) => {
                    let known = algorithm.options();
                    let unknown = options.split(':').find(|option| !known.contains(option));
                    let unknown = unknown.unwrap_or(options);
                    let message = format!("{name} has no option `{unknown}`");
                    let error = ConfigError::new(&self.place, message);
                    error.nearest(unknown, known.iter().copied())
                }
                _ => worded,
            }
        })
    }
}
