//! The end of responses while the server shuts down.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use uncork_testkit::pause;

use crate::common::{Client, Scratch, Served, content, spec};

/// Fits into the kernel's send buffer, and not into the client's receive buffer.
const LENGTH: usize = 100_000;

/// A client whose kernel takes a few kilobytes at a time.
fn narrow(address: SocketAddr) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("bound");
    socket.connect(&address.into()).expect("connected");
    Client::over(socket.into())
}

/// The kernel has the whole response when the server stops. The client pauses for longer than the
/// server lingers, and sends something, to which a closed socket would answer with a reset.
#[test]
fn a_client_that_pauses_gets_the_end_of_its_response() {
    let scratch = Scratch::new("serve");
    scratch.write("root/file", content(LENGTH));
    let served = Served::new(&spec(&scratch.path("root")));
    let mut client = narrow(served.address);
    client.send(b"GET /file HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    client.head().expect("a head");
    let server = thread::spawn(move || served.stop());
    pause(Duration::from_secs(4), "longer than the server lingers");
    client.send(b"more").expect("sent");
    pause(Duration::from_millis(100), "a reset would have come");
    let mut body = vec![0; LENGTH];
    client.0.read_exact(&mut body).expect("the whole body");
    assert!(body == content(LENGTH), "other bytes");
    drop(client);
    server.join().expect("stopped");
}
