//! CMCD: the throughput that players measured, in a list of keys (CTA-5004).

use serde_json::Value;

use super::{LogSamples, Sample, positive};

pub(super) fn read(text: &str, found: &mut LogSamples) {
    found.is_of_responses = true;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        of_line(&keys(line), found);
    }
}

fn of_line(keys: &str, found: &mut LogSamples) {
    let pairs: Vec<(&str, &str)> = split(keys).collect();
    let value = |key: &str| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    if value("su").is_some_and(|startup| startup != "?0") {
        return found.note("requests are of startup (su)");
    }
    let Some(measured) = value("mtp") else {
        return found.note("lines have no measured throughput (mtp)");
    };
    let Some(rate) = positive(first(measured)) else {
        return found.note("lines have a measured throughput (mtp) that is not a number above 0");
    };
    let session = value("sid").map(|sid| sid.trim_matches('"')).unwrap_or_default();
    let is_shown = !session.is_empty() && session.bytes().all(|byte| byte.is_ascii_graphic());
    let session = if is_shown { session } else { "no session" };
    found.add(session.into(), Sample { rate_bps: Some(rate * 1e3), ..Sample::default() });
}

/// The first value of an inner list, which version 2 has for each type of object: `(25400;v 800;a)`. Other values as they are.
fn first(value: &str) -> &str {
    let Some(list) = value.strip_prefix('(') else { return value };
    list.split([' ', ';', ')']).next().unwrap_or_default()
}

/// The list of keys in a line: the decoded value of `CMCD=` in a query, a field `cmcd` of JSON, else all of it.
fn keys(line: &str) -> String {
    if let Some(Value::Object(fields)) = serde_json::from_str(line).ok().filter(Value::is_object) {
        let texts = || fields.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
        let list = texts().find(|(name, _)| name.eq_ignore_ascii_case("cmcd"));
        return list
            .map(|(_, list)| list.to_owned())
            .or_else(|| texts().find_map(|(_, text)| in_query(text)))
            .unwrap_or_default();
    }
    in_query(line).unwrap_or_else(|| line.to_owned())
}

/// The decoded value of `CMCD=`, in any case.
fn in_query(text: &str) -> Option<String> {
    const NAME: &[u8] = b"CMCD=";
    let at = text.as_bytes().windows(NAME.len()).position(|it| it.eq_ignore_ascii_case(NAME))?;
    let ends = ['&', ' ', '"', '#', '\t'];
    text.get(at + NAME.len()..)?.split(ends).next().map(decoded)
}

/// `%2C` as `,`. Other text stays as it is.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let pair = match (first, after) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        bytes.push(pair.map_or(*first, |(high, low)| high << 4 | low));
        rest = if pair.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Keys and values; a key without a value is true. A comma in quotes is part of the text.
fn split(keys: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut is_quoted = false;
    let parts = keys.split(move |letter| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    });
    parts.map(|part| part.trim().split_once('=').unwrap_or((part.trim(), "")))
}
