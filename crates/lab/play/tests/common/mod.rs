//! A scripted HTTP/1.1 server.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// The lines of a request's head, starting with the request line.
pub type Head = Vec<String>;

/// Handles the nth connection, from 0.
pub type Script = fn(&mut ServerConnection, usize);

/// A server on loopback that runs until the test ends.
pub struct Raw {
    pub address: SocketAddr,
    heads: Receiver<Head>,
}

/// The server's end of a connection.
pub struct ServerConnection {
    stream: BufReader<TcpStream>,
    heads: mpsc::Sender<Head>,
}

impl Raw {
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, heads) = mpsc::channel();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let stream = BufReader::new(stream.unwrap());
                let mut connection = ServerConnection { stream, heads: sender.clone() };
                thread::spawn(move || script(&mut connection, number));
            }
        });
        Self { address, heads }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of requests received since the last call.
    pub fn heads(&self) -> Vec<Head> {
        self.heads.try_iter().collect()
    }
}

impl ServerConnection {
    /// Reads a request's head; `None` if the client closed the connection.
    pub fn read_request(&mut self) -> Option<Head> {
        let mut head = Head::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_owned()),
            }
        }
        let _ended = self.heads.send(head.clone());
        Some(head)
    }

    pub fn write(&mut self, text: impl AsRef<[u8]>) {
        let _gone = self.stream.get_mut().write_all(text.as_ref());
    }

    /// Responds with `size` zeros, or the requested range of them.
    pub fn respond(&mut self, head: &Head, size: u64) {
        let asked = header(head, "range").and_then(|range| {
            let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
            let last = last.parse().unwrap_or(u64::MAX).min(size - 1);
            Some((first.parse::<u64>().ok()?, last))
        });
        let (status, first, last) = match asked {
            Some((first, last)) => ("206 Partial Content", first, last),
            None => ("200 OK", 0, size - 1),
        };
        let length = last + 1 - first;
        self.write(format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\
             Content-Range: bytes {first}-{last}/{size}\r\n\r\n"
        ));
        if !head[0].starts_with("HEAD") {
            self.write(vec![0; length as usize]);
        }
    }
}

/// The value of a header.
pub fn header<'a>(head: &'a Head, name: &str) -> Option<&'a str> {
    let fields = head.iter().skip(1).filter_map(|line| line.split_once(": "));
    let mut named = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value)
}
