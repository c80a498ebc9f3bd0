//! The end of responses while the server shuts down.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use uncork_testkit::pause;

use crate::common::{Client, Scratch, Served, content, spec};
use crate::frames::{
    DATA, END_HEADERS, END_STREAM, GET_INDEX, HEADERS, PING, SETTINGS, WINDOW_UPDATE, frame, next,
};

/// Fits into the kernel's send buffer, and not into the client's receive buffer.
const LENGTH: usize = 100_000;

/// A client with a kernel that takes a few kilobytes at a time.
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

/// Requests `/index.html` over HTTP/2, with windows that hold all of it.
fn ask_over_http2(client: &mut Client) {
    let window = 1_000_000_u32.to_be_bytes();
    let request = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(SETTINGS, 0, 0, &[&[0, 4][..], &window].concat()),
        frame(WINDOW_UPDATE, 0, 0, &window),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, GET_INDEX),
    ];
    client.send(&request.concat()).expect("sent");
    assert_eq!(next(&mut client.0).0, HEADERS);
}

/// Reads more of a body, at least up to `length` bytes.
fn read_over_http2(client: &mut Client, body: &mut Vec<u8>, length: usize) {
    let mut is_whole = false;
    while body.len() < length && !is_whole {
        let (kind, flags, _, payload) = next(&mut client.0);
        assert_eq!(kind, DATA);
        body.extend(payload);
        is_whole = flags & END_STREAM != 0;
    }
}

/// The client's kernel has acknowledged the whole response, which the client reads later. While it reads, it sends.
#[test]
fn a_client_of_http2_that_reads_late_gets_the_end_of_its_response() {
    let scratch = Scratch::new("serve");
    scratch.write("root/index.html", content(LENGTH));
    let served = Served::new(&spec(&scratch.path("root")));
    let mut client = Client::with_room_for(1_000_000, served.address);
    ask_over_http2(&mut client);
    let server = thread::spawn(move || served.stop());
    pause(Duration::from_secs(3), "longer than the server lingers");
    for _ in 0..2 {
        client
            .send(&frame(PING, 0, 0, &[0; 8]))
            .expect("sent: the server has not reset the connection");
        pause(Duration::from_millis(100), "a reset would have come");
    }
    let mut body = Vec::new();
    read_over_http2(&mut client, &mut body, LENGTH);
    assert!(body == content(LENGTH), "other bytes");
    drop(client);
    server.join().expect("stopped");
}

/// The server has read the whole file, but neither kernel has room for what the clients have not read.
#[test]
fn what_the_kernel_has_not_taken_is_sent_before_the_end() {
    const LENGTH: usize = 900_000;
    const LEFT: usize = 250_000;
    let scratch = Scratch::new("serve");
    scratch.write("root/index.html", content(LENGTH));
    let served = Served::new(&spec(&scratch.path("root")));
    let mut clients = [narrow(served.address), narrow(served.address)];
    let [over_http1, over_http2] = &mut clients;
    over_http1.send(b"GET /index.html HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    over_http1.head().expect("a head");
    ask_over_http2(over_http2);
    let (mut one, mut two) = (vec![0; LENGTH], Vec::new());
    over_http1.0.read_exact(&mut one[LEFT..]).expect("most of the body");
    read_over_http2(over_http2, &mut two, LENGTH - LEFT);
    let server = thread::spawn(move || served.stop());
    pause(Duration::from_secs(3), "longer than the server lingers");
    one.rotate_left(LEFT);
    over_http1.0.read_exact(&mut one[LENGTH - LEFT..]).expect("the rest of the body");
    read_over_http2(over_http2, &mut two, LENGTH);
    assert!(one == content(LENGTH) && two == one, "other bytes");
    drop(clients);
    server.join().expect("stopped");
}
