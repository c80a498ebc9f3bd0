//! A test's own server on loopback, and a client that exposes every byte.
#![allow(dead_code, unreachable_pub, unused_imports, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod content;

pub use content::content;
pub use uncork_testkit::Scratch;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use uncork_diag::Diag;
use uncork_flow::{FlowRecord, Scope, read_json_lines};
use uncork_policy::Prefixes;
use uncork_serve::site::SiteOptions;
use uncork_serve::{
    Identity, Limits, ListenerSpec, RecordsSummary, Server, ServerSpec, ServerTiming,
};

/// The congestion controls that this kernel has.
pub fn available() -> Vec<String> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    fs::read_to_string(path).unwrap().split_whitespace().map(str::to_owned).collect()
}

/// The response records of a stopped server, in order.
pub fn records(path: &Path) -> Vec<FlowRecord> {
    records_of(path, Scope::Response)
}

/// The connection records of a stopped server.
pub fn connections(path: &Path) -> Vec<FlowRecord> {
    records_of(path, Scope::Connection)
}

fn records_of(path: &Path, scope: Scope) -> Vec<FlowRecord> {
    let file = fs::File::open(path).unwrap();
    let mut records = read_json_lines(BufReader::new(file)).unwrap();
    records.retain(|record| record.service.as_ref().unwrap().scope == scope);
    records.sort_by_key(|record| (record.flow, record.start_ns));
    records
}

/// A listener on a free port of loopback.
pub fn listener(name: &str, cc: Option<&str>) -> ListenerSpec {
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let cc = cc.map(str::to_owned);
    ListenerSpec { name: name.to_owned(), address, cc, quic_cc: None, to_https: false }
}

/// A plain HTTP server on a free port of loopback.
pub fn spec(root: &Path) -> ServerSpec {
    ServerSpec {
        root: root.to_owned(),
        site: SiteOptions::default(),
        hosts: Vec::new(),
        listeners: vec![listener("public", None)],
        policy: None,
        policy_key: None,
        geo: Vec::new(),
        identity: Identity::Plain,
        http3: true,
        plain_anywhere: false,
        limits: Limits::default(),
        server_timing: ServerTiming::Arms,
        proxies: Prefixes::default(),
        records: None,
        access_log: None,
        qlog: None,
        admin: None,
        keys: None,
        user: None,
        handover: None,
    }
}

pub struct Served {
    pub server: Server,
    pub address: SocketAddr,
}

impl Served {
    pub fn new(spec: &ServerSpec) -> Self {
        let server = Server::start(spec).unwrap();
        let address = server.listening()[0].address;
        Self { server, address }
    }

    pub fn connect(&self) -> Client {
        Client::new(self.address)
    }

    /// Sends one request on a new connection.
    pub fn get(&self, path: &str, headers: &str) -> Response {
        self.connect().request("GET", path, headers).unwrap()
    }

    pub fn stop(self) -> RecordsSummary {
        self.server.stop(Duration::from_mins(1))
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The controller in the `Server-Timing` header.
    pub fn timing_controller(&self) -> &str {
        self.header("server-timing").split(", rtt;dur=").next().unwrap()
    }
}

/// An HTTP/1.1 client that exposes every byte.
pub struct Client(pub BufReader<TcpStream>);

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// A client with the address `from`.
    pub fn from(from: Ipv4Addr, to: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        socket.connect(&to.into()).unwrap();
        Self::over(socket.into())
    }

    /// A client with a socket that buffers only a few unread bytes.
    pub fn with_room_for(bytes: usize, to: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(bytes).unwrap();
        socket.connect(&to.into()).unwrap();
        Self::over(socket.into())
    }

    pub fn over(stream: TcpStream) -> Self {
        // So long that only a server that hangs exceeds it.
        stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// `headers` are lines, each with its line ending.
    pub fn request(&mut self, method: &str, path: &str, headers: &str) -> io::Result<Response> {
        self.ask("test", method, path, headers)
    }

    pub fn get_of(&mut self, host: &str, path: &str) -> io::Result<Response> {
        self.ask(host, "GET", path, "")
    }

    pub fn ask(
        &mut self,
        host: &str,
        method: &str,
        path: &str,
        more: &str,
    ) -> io::Result<Response> {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
        self.send(head.as_bytes())?;
        let mut response = self.head()?;
        let has_body = method != "HEAD" && !matches!(response.status, 204 | 304);
        let length: usize = response.header("content-length").parse().unwrap_or(0);
        if has_body {
            response.body = vec![0; length];
            self.0.read_exact(&mut response.body)?;
        }
        Ok(response)
    }

    pub fn head(&mut self) -> io::Result<Response> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        Ok(Response { status, headers, body: Vec::new() })
    }

    /// The controller of the server's socket, as reported by the kernel.
    pub fn controller(&self) -> String {
        let (local, server) =
            (self.0.get_ref().local_addr().unwrap(), self.0.get_ref().peer_addr().unwrap());
        let found = Diag::open().unwrap().find(server, local).unwrap();
        found.and_then(|connection| connection.cc).unwrap().as_str().to_owned()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// All bytes until the connection ends, and whether it ended without an error.
    pub fn rest(&mut self) -> (Vec<u8>, io::Result<()>) {
        let mut rest = Vec::new();
        let ended = self.0.read_to_end(&mut rest).map(|_| ());
        (rest, ended)
    }
}
