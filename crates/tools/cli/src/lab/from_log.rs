//! `uncork lab from-log`.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::args::FromLogArgs;
use crate::failure::Failure;
use crate::stdout;

const ARGUMENT: &str = "<FILE>";

pub(super) fn run(args: &FromLogArgs) -> Result<(), Failure> {
    let text = read(&args.file)?;
    let refused = |error: String| Failure::value(ARGUMENT, args.file.display(), error);
    let found = args.kind.format().paths(&text).map_err(refused)?;
    let notes: Vec<String> =
        found.notes.iter().map(|(note, count)| format!("{note}: {count}")).collect();
    if found.paths.is_empty() {
        let reason = if notes.is_empty() { "it is empty".to_owned() } else { notes.join("; ") };
        return Err(refused(format!("no line shows a path: {reason}")));
    }
    for note in &notes {
        eprintln!("note: {note}");
    }
    stdout::write(found.text().as_bytes())
}

fn read(file: &Path) -> Result<String, Failure> {
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(file)
    };
    let bytes = bytes.map_err(|error| Failure::unreadable(ARGUMENT, file, &error))?;
    let refused = |program: &str| {
        let remedy = format!(
            "it is compressed; pipe it: {program} {} | uncork lab from-log … -",
            file.display()
        );
        Failure::value(ARGUMENT, file.display(), remedy)
    };
    match *bytes {
        [0x1f, 0x8b, ..] => Err(refused("zcat")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Err(refused("zstdcat")),
        _ => Ok(decoded(&bytes)),
    }
}

/// Windows' PowerShell writes UTF-16 by default, and other programs a byte-order mark.
fn decoded(bytes: &[u8]) -> String {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, _) = bytes.as_chunks();
        String::from_utf16_lossy(&pairs.iter().map(|pair| unit(*pair)).collect::<Vec<_>>())
    };
    match bytes {
        [0xff, 0xfe, text @ ..] => utf16(text, u16::from_le_bytes),
        [0xfe, 0xff, text @ ..] => utf16(text, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, text @ ..] | text => String::from_utf8_lossy(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn text_of_windows_is_decoded() {
        let text = "192.0.2.7 é";
        let bytes = |unit: fn(u16) -> [u8; 2], mark: [u8; 2]| {
            [&mark[..], &text.encode_utf16().flat_map(unit).collect::<Vec<_>>()].concat()
        };
        assert_eq!(decoded(&bytes(u16::to_le_bytes, [0xff, 0xfe])), text);
        assert_eq!(decoded(&bytes(u16::to_be_bytes, [0xfe, 0xff])), text);
        assert_eq!(decoded(&[b"\xef\xbb\xbf", text.as_bytes()].concat()), text);
        assert_eq!(decoded(text.as_bytes()), text);
    }
}
