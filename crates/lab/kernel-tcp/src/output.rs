//! The output of a command, truncated in the middle.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes retained from the beginning and from the end: together 1 MiB.
const PART: usize = 512 << 10;
/// How often to check whether everything has been read, and the maximum number of checks.
const LOOK: Duration = Duration::from_millis(5);
const LOOKS: u32 = 200;

/// A pipe that is read continuously, so a program that prints never blocks.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    retained: Arc<Mutex<RetainedOutput>>,
    reader: JoinHandle<()>,
}

/// The beginning and the end of the output.
#[derive(Debug, Default)]
struct RetainedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: usize,
}

impl CommandOutput {
    /// A pipe and its write end.
    pub(crate) fn pipe() -> io::Result<(Self, PipeWriter)> {
        let (from, to) = io::pipe()?;
        let retained = Arc::default();
        let also_retained = Arc::clone(&retained);
        let reader = thread::Builder::new().spawn(move || read(from, &also_retained))?;
        Ok((Self { retained, reader }, to))
    }

    /// The output. Does not wait for more than a second for a process that keeps the pipe open.
    pub(crate) fn text(self) -> String {
        for _ in 0..LOOKS {
            if self.reader.is_finished() {
                break;
            }
            thread::sleep(LOOK);
        }
        self.retained.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

fn read(mut from: PipeReader, retained: &Mutex<RetainedOutput>) {
    let mut buffer = vec![0; 1 << 16];
    // A read error ends the output.
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        retained.lock().unwrap_or_else(PoisonError::into_inner).take_in(&buffer[..read]);
    }
}

impl RetainedOutput {
    fn take_in(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(PART - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(PART);
        self.tail.drain(..over);
        self.cut += over;
    }

    fn text(&self) -> String {
        let mut text = self.head.clone();
        if self.cut > 0 {
            text.extend(format!("\n[{} bytes were left out here]\n", self.cut).bytes());
        }
        let (one, other) = self.tail.as_slices();
        text.extend_from_slice(one);
        text.extend_from_slice(other);
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// The last non-empty line of `text`, limited to the length of a message.
pub(crate) fn last_line(text: &str) -> Option<String> {
    const MAX_LINE: usize = 200;
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let mut short: String = line.chars().take(MAX_LINE).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    Some(short)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn short_output_is_kept_completely() {
        let (output, mut to) = CommandOutput::pipe().expect("a pipe");
        to.write_all(b"one\ntwo\n").expect("room");
        drop(to);
        assert_eq!(output.text(), "one\ntwo\n");
    }

    #[test]
    fn long_output_keeps_its_beginning_and_end() {
        let (output, mut to) = CommandOutput::pipe().expect("a pipe");
        to.write_all(b"begin").expect("a reader");
        to.write_all(&vec![b'x'; 3 * PART]).expect("a reader");
        to.write_all(b"end").expect("a reader");
        drop(to);
        let text = output.text();
        let left_out = format!("\n[{} bytes were left out here]\n", PART + 8);
        assert!(text.starts_with("beginx") && text.ends_with("xend"));
        assert!(text.contains(&left_out), "{}", text.replace('x', ""));
        assert_eq!(text.len(), 2 * PART + left_out.len());
    }

    #[test]
    fn messages_have_the_last_line() {
        assert_eq!(last_line("a\n b \n\n").as_deref(), Some("b"));
        assert_eq!(last_line(" \n"), None);
        assert_eq!(last_line(&"ä".repeat(300)).map(|line| line.chars().count()), Some(201));
    }
}
