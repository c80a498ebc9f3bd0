//! For whom a proxy connects: the PROXY protocol, version 2
//! (<https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt>, §2.2).

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::pin::Pin;

use ppp::v2::{Addresses, Command, Header, ParseError, Protocol};
use tokio::io::{AsyncRead, ReadBuf};

/// What each header begins with: the signature, version, family, and the length of the rest.
const FIXED: usize = 16;
/// The longest header that is read. Addresses take 216 bytes at most; others than TLS's details need not be there.
const LONGEST: usize = 4096;

/// Reads a header, and no more. The result is the client, or `None` if the proxy connects for itself.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<IpAddr>> {
    let mut header = vec![0; FIXED];
    read_exact(stream, &mut header).await?;
    // Other data is refused at once, without waiting for the length that it seems to have.
    if !header.starts_with(ppp::v2::PROTOCOL_PREFIX) {
        return Err(ErrorKind::InvalidData.into());
    }
    let length = FIXED + usize::from(u16::from_be_bytes([header[14], header[15]]));
    if length > LONGEST {
        return Err(ErrorKind::InvalidData.into());
    }
    header.resize(length, 0);
    read_exact(stream, &mut header[FIXED..]).await?;
    client(&header).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

/// The client that a whole header names.
fn client(header: &[u8]) -> Result<Option<IpAddr>, ParseError> {
    let header = Header::try_from(header)?;
    if header.command == Command::Local || header.protocol == Protocol::Unspecified {
        return Ok(None);
    }
    if header.protocol != Protocol::Stream {
        return Err(ParseError::Protocol(header.protocol as u8));
    }
    Ok(match header.addresses {
        Addresses::IPv4(it) => Some(it.source_address.into()),
        Addresses::IPv6(it) => Some(IpAddr::from(it.source_address).to_canonical()),
        Addresses::Unspecified | Addresses::Unix(_) => None,
    })
}

async fn read_exact<S: AsyncRead + Unpin>(stream: &mut S, bytes: &mut [u8]) -> io::Result<()> {
    let mut buffer = ReadBuf::new(bytes);
    while buffer.remaining() > 0 {
        let before = buffer.remaining();
        poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut buffer)).await?;
        if buffer.remaining() == before {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use futures_util::FutureExt;
    use ppp::v2::{Builder, Version};
    use proptest::prelude::*;

    use super::*;

    /// The header of a connection of `client` to `server`.
    fn header(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
        let version = Version::Two | Command::Proxy;
        Builder::with_addresses(version, Protocol::Stream, (client, server)).build().unwrap()
    }

    /// What is read of bytes that are all there, and how many of them are left.
    fn read_of(mut bytes: &[u8]) -> (io::Result<Option<IpAddr>>, usize) {
        let client = read(&mut bytes).now_or_never().expect("nothing to wait for");
        (client, bytes.len())
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_header_names_the_client_and_nothing_behind_it_is_read() {
        for client in ["192.0.2.1:5000", "[2001:db8::1]:5000"] {
            let client = address(client);
            let server = if client.is_ipv4() { "192.0.2.2:443" } else { "[2001:db8::2]:443" };
            let mut bytes = header(client, address(server));
            bytes.extend(b"GET /");
            let (read, left) = read_of(&bytes);
            assert_eq!((read.unwrap(), left), (Some(client.ip()), 5));
        }
    }

    #[test]
    fn a_proxy_that_connects_for_itself_names_no_client() {
        let mut local = header(address("192.0.2.1:1"), address("192.0.2.2:443"));
        local[12] = 0x20;
        assert_eq!(read_of(&local).0.unwrap(), None);
        let unspecified = [ppp::v2::PROTOCOL_PREFIX, &[0x21, 0x00, 0, 0]].concat();
        assert_eq!(read_of(&unspecified).0.unwrap(), None);
    }

    #[test]
    fn data_without_a_header_is_refused() {
        let good = header(address("192.0.2.1:1"), address("192.0.2.2:443"));
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        let too_long = [&good[..14], &[0x20, 0x00], &[0; 0x2000]].concat();
        let datagram = with(13, 0x12);
        for (what, bytes) in [
            ("version 1", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n".to_vec()),
            ("none", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
            ("version 3", with(12, 0x31)),
            ("unknown command", with(12, 0x22)),
            ("unknown family", with(13, 0x41)),
            ("datagram", datagram),
            ("short addresses", [&good[..14], &[0, 4], &[0; 4]].concat()),
            ("too long", too_long),
            ("cut", good[..20].to_vec()),
            ("nothing", Vec::new()),
        ] {
            assert!(read_of(&bytes).0.is_err(), "{what}");
        }
    }

    proptest! {
        /// With any bytes behind the signature, no more than the header's own length is read.
        #[test]
        fn no_bytes_are_read_that_are_not_the_headers(
            rest in prop::collection::vec(any::<u8>(), 4..600),
        ) {
            let bytes = [ppp::v2::PROTOCOL_PREFIX, &rest].concat();
            let length = FIXED + usize::from(u16::from_be_bytes([bytes[14], bytes[15]]));
            let (read, left) = read_of(&bytes);
            if read.is_ok() {
                prop_assert_eq!(left, bytes.len() - length);
            }
        }

        #[test]
        fn a_header_is_read_as_it_was_written(client: (u32, u16), tlvs in 0_usize..40) {
            let client = SocketAddr::from((std::net::Ipv4Addr::from(client.0), client.1));
            let mut bytes = header(client, address("192.0.2.2:443"));
            // PP2_TYPE_NOOP with as many bytes.
            bytes.extend([0x04, 0, tlvs as u8]);
            bytes.extend(vec![7; tlvs]);
            bytes[15] += 3 + tlvs as u8;
            prop_assert_eq!(read_of(&bytes).0.unwrap(), Some(client.ip()));
        }
    }
}
