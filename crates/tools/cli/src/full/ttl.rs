//! Times after which a change is rolled back.

use uncork_units::TimeDelta;

/// `m` are minutes here: no one confirms within milliseconds.
pub(crate) fn ttl(text: &str) -> Result<TimeDelta, String> {
    if text.parse::<f64>().is_ok() {
        return Err(format!("write {text}s, {text}min or {text}h"));
    }
    let minutes =
        text.strip_suffix('m').filter(|number| number.ends_with(|c: char| c.is_ascii_digit()));
    let text = minutes.map_or_else(|| text.to_owned(), |number| format!("{number}min"));
    let ttl: TimeDelta =
        text.parse().map_err(|error: uncork_units::ParseError| error.to_string())?;
    if ttl < TimeDelta::from_secs(1) || ttl > TimeDelta::from_secs(30 * 86_400) {
        return Err("expected 1s to 30d".to_owned());
    }
    Ok(ttl)
}
