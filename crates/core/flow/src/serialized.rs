//! Times and rates as numbers, for `#[serde(with = "…")]`.

/// A time in nanoseconds.
pub mod nanos {
    use serde::{Deserialize, Deserializer, Serializer};
    use uncork_units::TimeDelta;

    /// Writes it.
    pub fn serialize<S: Serializer>(time: &TimeDelta, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_nanos())
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TimeDelta, D::Error> {
        u64::deserialize(from).map(TimeDelta::from_nanos)
    }
}

/// A time in nanoseconds, or nothing.
pub mod maybe_nanos {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use uncork_units::TimeDelta;

    /// Writes it.
    pub fn serialize<S: Serializer>(time: &Option<TimeDelta>, to: S) -> Result<S::Ok, S::Error> {
        time.map(TimeDelta::as_nanos).serialize(to)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TimeDelta>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(TimeDelta::from_nanos))
    }
}

/// A rate in bits per second, or nothing.
pub mod maybe_bits_per_sec {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use uncork_units::Rate;

    /// Writes it.
    pub fn serialize<S: Serializer>(rate: &Option<Rate>, to: S) -> Result<S::Ok, S::Error> {
        rate.map(Rate::bits_per_sec).serialize(to)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Rate::from_bits_per_sec))
    }
}
