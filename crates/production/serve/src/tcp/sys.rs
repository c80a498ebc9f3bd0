//! Socket options that no safe library provides. This is the only unsafe code of the crate.
#![expect(unsafe_code, reason = "each block says why it is sound")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use uncork_diag::TcpInfo;

/// More than the size of `struct tcp_info` on any kernel; later kernels append to it.
const TCP_INFO_BYTES: usize = 512;

/// Limits the kernel's pacing rate of the connection, in bytes per second, for any congestion
/// control (`SO_MAX_PACING_RATE` of socket(7)). `None` removes the limit.
pub(super) fn limit_pacing(socket: impl AsFd, bytes_per_sec: Option<u64>) -> io::Result<()> {
    // All ones means no limit. Kernels before 5.0 read 32 bits, where more than 4 GB/s also means
    // no limit.
    let rate = bytes_per_sec.unwrap_or(u64::MAX);
    let fd = socket.as_fd();
    // SAFETY: `fd` is open, and `rate` outlives the call, which reads exactly its size.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            size_of_val(&rate) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's state of the connection (`TCP_INFO` of tcp(7)). Also works after it was closed, as
/// long as the socket exists.
pub(super) fn tcp_info(socket: impl AsFd) -> Option<TcpInfo> {
    let mut buffer = [0_u8; TCP_INFO_BYTES];
    let mut length = TCP_INFO_BYTES as libc::socklen_t;
    let fd = socket.as_fd();
    // SAFETY: `fd` is open; `buffer` and `length` outlive the call, which writes at most `length`
    // bytes to `buffer` and stores the number written in `length`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 { TcpInfo::parse(buffer.get(..length as usize)?) } else { None }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::time::Duration;

    use uncork_diag::{Diag, TcpState};
    use uncork_testkit::wait_for;

    use super::*;

    const LENGTH: usize = 5000;

    /// The socket keeps the counters of a closed connection after sock_diag no longer finds it.
    #[test]
    fn tcp_info_matches_sock_diag_and_survives_close() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).expect("a connection");
        let (mut server, peer) = listener.accept().expect("accepted");
        server.write_all(&[7; LENGTH]).expect("written");
        client.read_exact(&mut [0; LENGTH]).expect("read");
        let mut diag = Diag::open().expect("sock_diag");
        let mut find = || diag.find(address, peer).expect("an answer").and_then(|it| it.info);
        let wait = |is_so: &mut dyn FnMut(&TcpInfo) -> bool| {
            wait_for("the kernel's report", Duration::from_mins(1), || {
                Some(tcp_info(&server).expect("known")).filter(&mut *is_so)
            })
        };
        let own = wait(&mut |info| info.bytes_acked == Some(LENGTH as u64));
        let found = find().expect("found");
        // Values that depend on the current time may differ.
        let counts = |info: &TcpInfo| {
            (info.state, info.bytes_sent, info.bytes_acked, info.snd_cwnd, info.rtt, info.min_rtt)
        };
        assert_eq!(counts(&own), counts(&found));
        assert_eq!(own.state, TcpState::Established);

        client.shutdown(Shutdown::Write).expect("shut");
        wait(&mut |info| info.state == TcpState::CloseWait);
        server.shutdown(Shutdown::Write).expect("shut");
        let closed = wait(&mut |info| info.state == TcpState::Close);
        assert_eq!(find(), None);
        // The FIN counts as one byte.
        assert_eq!(closed.bytes_acked, Some(LENGTH as u64 + 1));
        assert_eq!(closed.bytes_sent, own.bytes_sent);
    }
}
