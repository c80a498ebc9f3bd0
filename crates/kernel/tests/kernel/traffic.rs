//! Downloads over an emulated path by the kernel's TCP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use uncork_emu::{EmuError, Emulation, EmulationSpec};
use uncork_path::{Buffer, LossSpec, PathSpec};
use uncork_testkit::{Capability, not_run};
use uncork_units::{Rate, TimeDelta};

const LIMIT: Duration = Duration::from_mins(1);

/// Downloads at the same time over one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Downloads {
    pub(crate) rate_mbit: u64,
    pub(crate) rtt_ms: u64,
    pub(crate) loss: &'static str,
    pub(crate) flows: usize,
    pub(crate) bytes: usize,
}

impl Downloads {
    fn spec(self) -> EmulationSpec {
        let (rate, rtt) = (Rate::from_mbit(self.rate_mbit), TimeDelta::from_millis(self.rtt_ms));
        let mut path = PathSpec::new(rate, rtt, "1bdp".parse::<Buffer>().expect("a buffer"));
        path.loss = self.loss.parse::<LossSpec>().expect("a loss");
        EmulationSpec::over(path, 7)
    }

    /// Runs them with a controller. Returns false, with a message, where namespaces are not permitted.
    pub(crate) fn run(self, controller: &str) -> bool {
        let emulation = match Emulation::start(&self.spec()) {
            Ok(emulation) => emulation,
            Err(error @ EmuError::System { .. }) => {
                not_run(Capability::Netns, &error.to_string());
                return false;
            }
            Err(error) => panic!("{error}"),
        };
        let server = emulation.server();
        let at = SocketAddr::from((server.addresses().v4, 0));
        let listener = server.run(|| TcpListener::bind(at)).expect("a thread").expect("a listener");
        let at = listener.local_addr().expect("an address");
        thread::scope(|scope| {
            for _ in 0..self.flows {
                scope.spawn(|| {
                    let got = emulation.client().run(|| download(at)).expect("a thread");
                    assert_eq!(got, self.bytes);
                });
                let (stream, _) = listener.accept().expect("a client");
                scope.spawn(move || serve(stream, controller, self.bytes));
            }
        });
        emulation.stop().expect("a run");
        true
    }
}

fn serve(mut stream: TcpStream, controller: &str, bytes: usize) {
    rustix::net::sockopt::set_tcp_congestion(&stream, controller).expect("it is registered");
    stream.set_write_timeout(Some(LIMIT)).expect("a timeout");
    stream.write_all(&vec![1; bytes]).expect("it is read");
}

fn download(server: SocketAddr) -> usize {
    let mut stream = TcpStream::connect_timeout(&server, LIMIT).expect("a server");
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    let (mut buffer, mut got) = (vec![0; 1 << 16], 0);
    loop {
        match stream.read(&mut buffer).expect("data or the end") {
            0 => return got,
            n => got += n,
        }
    }
}
