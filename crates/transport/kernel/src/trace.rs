//! Every call of a traced controller, as the kernel made it: for tests that make the same calls of the
//! native controller.

use std::io;
use std::os::fd::BorrowedFd;

use crate::sys;

/// A queue of records; `shim.bpf.c` has their form.
#[derive(Debug)]
pub struct Trace<'a> {
    queue: BorrowedFd<'a>,
    record: Vec<u8>,
}

impl<'a> Trace<'a> {
    pub(crate) fn new(queue: BorrowedFd<'a>, record_bytes: usize) -> Self {
        Self { queue, record: vec![0; record_bytes] }
    }

    /// The oldest call that was not taken yet.
    pub fn pop(&mut self) -> io::Result<Option<&[u8]>> {
        match sys::pop(self.queue, &mut self.record) {
            Ok(()) => Ok(Some(&self.record)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
