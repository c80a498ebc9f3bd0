//! The arm of each unit that standard input lists, for comparison with other implementations.
//!
//! ```sh
//! printf '%s\n' 'ip 203.0.113.9' 'cookie uid=7' 'header x-user=7' |
//!     cargo run -p uncork-policy --example assignments -- policy.toml
//! ```
//!
//! Each line is answered by one: `EXPERIMENT ARM HASH SLOT BUCKET PROPENSITY`, or `-` for a unit that takes
//! part in no experiment.

use std::error::Error;
use std::io::{BufRead as _, BufWriter, Write as _};

use uncork_policy::{Assignment, Fact, Facts, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: assignments POLICY < UNITS")?;
    let text = std::fs::read_to_string(&file)?;
    let policy = Policy::parse(&file, &text).map_err(|error| error.render(&file, false))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (kind, unit) = line.split_once(' ').ok_or("a line is `ip`, `cookie` or `header`")?;
        match assignment(&policy, kind, unit)? {
            Some(Assignment { experiment, arm, unit, slot, bucket, propensity }) => {
                let propensity = propensity.as_f64();
                writeln!(out, "{experiment} {arm} {unit} {slot} {bucket} {propensity}")?;
            }
            None => writeln!(out, "-")?,
        }
    }
    Ok(out.flush()?)
}

fn assignment<'p>(
    policy: &'p Policy,
    kind: &str,
    unit: &str,
) -> Result<Option<Assignment<'p>>, Box<dyn Error>> {
    let field = match kind {
        "cookie" => ("cookie", unit),
        "header" => unit.split_once('=').ok_or("a header is NAME=VALUE")?,
        _ => ("", ""),
    };
    let headers = [field];
    let client = if kind == "ip" { Fact::Known(unit.parse()?) } else { Fact::Absent };
    let facts = Facts { client, headers: Fact::Known(&headers), ..Facts::default() };
    Ok(policy.decide(&facts.with_whole_request().with_whole_origin()).experiment)
}
