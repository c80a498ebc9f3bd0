//! Files of a publisher: keys, a policy with what belongs to it, verdicts.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use uncork_fleet::{Gate, POLICY, PackedFile, SigningKey, public_key_pem, read_public_key};
use uncork_policy::{Policy, PublicKey, Signed};

use crate::failure::Failure;

/// The public keys in these files.
pub(crate) fn public_keys(argument: &str, files: &[PathBuf]) -> Result<Vec<PublicKey>, Failure> {
    let key = |file: &PathBuf| {
        let text = fs::read(file).map_err(|error| Failure::unreadable(argument, file, &error))?;
        read_public_key(&text).map_err(|error| Failure::value(argument, file.display(), error))
    };
    files.iter().map(key).collect()
}

/// The private key in a file.
pub(super) fn signing_key(file: &Path) -> Result<SigningKey, Failure> {
    let argument = "--key <FILE>";
    let text = fs::read(file).map_err(|error| Failure::unreadable(argument, file, &error))?;
    let mode = fs::metadata(file).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 != 0 {
        let file = file.display();
        eprintln!("note: others can read or write the private key: chmod 600 {file}");
    }
    SigningKey::from_pem(&text).map_err(|error| Failure::value(argument, file.display(), error))
}

/// Writes a new pair of keys. Neither file may exist: a key that is lost cannot be made again.
pub(super) fn write_keys(file: &Path) -> Result<PathBuf, Failure> {
    let private =
        SigningKey::generate().map_err(|error| Failure::Environment(error.to_string()))?;
    let key = SigningKey::from_pem(private.as_bytes());
    let key = key.map_err(|error| Failure::Environment(error.to_string()))?;
    let mut public = file.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    write_new(file, 0o600, &private)?;
    write_new(&public, 0o644, &public_key_pem(&key.public())).inspect_err(|_| {
        let _ = fs::remove_file(file);
    })?;
    Ok(public)
}

fn write_new(file: &Path, mode: u32, text: &str) -> Result<(), Failure> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(file);
    let written = opened.and_then(|mut opened| {
        let written = opened.write_all(text.as_bytes()).and_then(|()| opened.sync_all());
        written.inspect_err(|_| {
            let _ = fs::remove_file(file);
        })
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::value("<FILE>", file.display(), "it exists; choose another name")
        }
        _ => Failure::Environment(format!("cannot write '{}': {error}", file.display())),
    })
}

/// A policy with the files that belong to it: its table, and the list of what was signed with its signature.
pub(super) fn packed(policy: &Path) -> Result<Vec<PackedFile>, Failure> {
    let read =
        |file: &Path| fs::read(file).map_err(|error| Failure::unreadable("<POLICY>", file, &error));
    let bytes = read(policy)?;
    let text = String::from_utf8_lossy(&bytes);
    let name = policy.display().to_string();
    let parsed = Policy::parse(&name, &text);
    let parsed = parsed.map_err(|error| Failure::Shown(error.render(&name, false)))?;
    let mut files = vec![PackedFile { name: POLICY.to_owned(), bytes }];
    if let Some(table) = parsed.table_file() {
        files.push(PackedFile {
            name: table.to_owned(),
            bytes: read(&policy.with_file_name(table))?,
        });
    }
    for name in [Signed::LIST, Signed::SIGNATURE] {
        let file = policy.with_file_name(name);
        if file.exists() {
            files.push(PackedFile { name: name.to_owned(), bytes: read(&file)? });
        }
    }
    Ok(files)
}

/// The verdicts in these files, or why there is none yet: that must not keep failing hosts from stopping a version.
pub(super) fn gates(files: &[PathBuf]) -> Vec<Result<Gate, String>> {
    let gate = |file: &PathBuf| {
        let unreadable = |error: &dyn Display| {
            format!("no verdict in '{}' of '--stop-if <FILE.json>': {error}", file.display())
        };
        let bytes = fs::read(file).map_err(|error| unreadable(&error))?;
        Gate::read(&bytes).map_err(|error| unreadable(&error))
    };
    files.iter().map(gate).collect()
}
