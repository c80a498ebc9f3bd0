//! Consumers of a body's bytes.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256, digest};
use uncork_flow::publish;

use crate::ClientError;

/// Computes the digest of a body and writes it to a file, both optional.
pub(crate) struct BodySink {
    digest: Option<Context>,
    file: Option<PartFile>,
}

/// A file that gets its final name when it is complete.
#[derive(Debug)]
struct PartFile {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
}

impl BodySink {
    pub(crate) fn open(digest: bool, file: Option<&Path>) -> Result<Self, ClientError> {
        let file = file.map(PartFile::open).transpose()?;
        Ok(Self { digest: digest.then(|| Context::new(&SHA256)), file })
    }

    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), ClientError> {
        if let Some(digest) = &mut self.digest {
            digest.update(piece);
        }
        match &mut self.file {
            Some(file) => file.out.write_all(piece).map_err(|error| file.failed(error)),
            None => Ok(()),
        }
    }

    /// Completes the body. Returns its SHA-256, if requested.
    pub(crate) fn finish(self) -> Result<Option<String>, ClientError> {
        if let Some(file) = self.file {
            file.finish()?;
        }
        Ok(self.digest.map(|digest| HEXLOWER.encode(digest.finish().as_ref())))
    }
}

impl PartFile {
    fn open(path: &Path) -> Result<Self, ClientError> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let failed = |error| ClientError::File(path.to_owned(), error);
        let out = BufWriter::with_capacity(1 << 18, File::create(&part).map_err(failed)?);
        Ok(Self { path: path.to_owned(), part, out })
    }

    fn failed(&self, error: io::Error) -> ClientError {
        ClientError::File(self.path.clone(), error)
    }

    fn finish(mut self) -> Result<(), ClientError> {
        let published = self.out.flush().and_then(|()| publish(&self.part, &self.path));
        published.map_err(|error| self.failed(error))
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // Fails after the rename; otherwise removes the incomplete file.
        let _ = fs::remove_file(&self.part);
    }
}

/// The SHA-256 of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}
