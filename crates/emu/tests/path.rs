//! Real packets over real namespaces.
mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket, IpAddr};
use std::time::Duration;

use common::{path, start};

#[test]
fn datagrams_take_the_delay_of_the_path() {
    let Some(emulation) = start(&path(100, 40, 100)) else { return };
    let addresses = emulation.far().addresses();
    let far: Vec<IpAddr> = [addresses.v4.into()].into_iter().chain(addresses.v6.map(Into::into)).collect();
    for address in &far {
        let server = emulation.far().run(|| UdpSocket::bind((*address, 7000))).unwrap().unwrap();
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let client = emulation.near().run(|| UdpSocket::bind(any)).unwrap().unwrap();
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        for n in 0..50_u8 {
            client.send_to(&[n; 100], (*address, 7000)).unwrap();
            let mut buffer = [0; 200];
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            server.send_to(&buffer[..length], from).unwrap();
            let (length, _) = client.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..length], [n; 100]);
        }
    }
    let report = emulation.stop().unwrap();
    eprint!("{}", uncork_emu::summary(&report));
    panic!("{report:#?}");
}

#[test]
fn tcp() {
    let Some(emulation) = start(&path(100, 10, 100)) else { return };
    let far = emulation.far().addresses().v4;
    let listener = emulation.far().run(|| TcpListener::bind((far, 80))).unwrap().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&vec![7; 30_000_000]).unwrap();
        });
        let mut stream = emulation.near().run(|| TcpStream::connect((far, 80))).unwrap().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 30_000_000);
    });
    let report = emulation.stop().unwrap();
    eprint!("{}", uncork_emu::summary(&report));
    panic!("{report:#?}");
}
