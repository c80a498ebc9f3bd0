//! A shell's soft limit of open files does not limit a server.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::common::Scratch;

#[test]
fn server_raises_its_limit_to_the_hard_limit() {
    let scratch = Scratch::new("open-files");
    fs::write(scratch.path("file"), "fine").expect("a file");
    let script = "ulimit -Sn 64; exec \"$0\" serve --root . --listen 127.0.0.1:0 --quiet";
    let mut serve = Command::new("sh");
    serve.args(["-c", script, env!("CARGO_BIN_EXE_uncork")]).current_dir(scratch.path("."));
    let mut child = serve.stdout(Stdio::piped()).spawn().expect("starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let address = line.split_whitespace().next().expect("an address");
    let address = address.trim_start_matches("http://");
    let connections: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut connection = TcpStream::connect(address).expect("a connection");
            let request = b"GET /file HTTP/1.1\r\nHost: test\r\n\r\n";
            connection.write_all(request).expect("sent");
            let mut first = [0; 12];
            connection.read_exact(&mut first).unwrap_or_else(|error| panic!("{number}: {error}"));
            assert_eq!(&first, b"HTTP/1.1 200");
            connection
        })
        .collect();
    drop(connections);
    child.kill().expect("killed");
    child.wait().expect("ended");
}
