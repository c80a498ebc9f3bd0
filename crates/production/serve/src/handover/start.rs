//! The handover steps of a server that starts: taking over from the running server, and offering
//! its sockets to the next one.

use std::io;
use std::os::fd::AsFd;

use socket2::Type;

use super::giving::{Offer, OfferedListener};
use super::taking::{Inherited, Predecessors};
use crate::admin::Bound;
use crate::error::ServeError;
use crate::keys::Secret;
use crate::spec::{ServerSpec, Sockets};
use crate::unix_socket::{self, SocketFile};

/// The generation of this process.
pub(crate) fn generation(inherited: Option<&Inherited>) -> u8 {
    inherited.map_or(0, |it| it.generation.wrapping_add(1))
}

/// The offer of this process to the next one, if handover is configured.
pub(crate) fn offer(
    spec: &ServerSpec,
    inherited: Option<&mut Inherited>,
    (bound, admin): (&[Sockets], &Option<Bound>),
    secret: Secret,
) -> Result<Option<Offer>, ServeError> {
    let Some(path) = &spec.handover else { return Ok(None) };
    let failed = |error| ServeError::Handover(path.clone(), error);
    let generation = generation(inherited.as_deref());
    let (socket, file) = match inherited.and_then(|it| it.handover.take()) {
        Some(socket) => (socket, SocketFile::of(path).map_err(failed)?),
        None => unix_socket::listen(path, Type::SEQPACKET).map_err(failed)?,
    };
    let listeners = spec.listeners.iter().zip(bound).map(|(listener, sockets)| {
        let tcp = sockets.tcp.listener.as_fd().try_clone_to_owned()?;
        let udp = sockets.udp.iter().map(|socket| socket.as_fd().try_clone_to_owned());
        let udp = udp.collect::<io::Result<_>>()?;
        Ok(OfferedListener { address: listener.address, tcp, udp })
    });
    let listeners = listeners.collect::<io::Result<_>>().map_err(failed)?;
    let admin = match (&spec.admin, admin) {
        (Some(spec), Some(bound)) => {
            let (fd, file) = bound.share().map_err(failed)?;
            Some((spec.address.to_string(), fd, file))
        }
        _ => None,
    };
    Ok(Some(Offer { socket, file, secret, generation, admin, listeners }))
}

/// Notifies the running server that everything is prepared. It stops reading the UDP sockets that were
/// taken over.
pub(crate) fn ready(
    spec: &ServerSpec,
    inherited: Option<&mut Inherited>,
    bound: &[Sockets],
) -> Result<Predecessors, ServeError> {
    let Some(inherited) = inherited else { return Ok(Predecessors::default()) };
    let taken = bound.iter().filter_map(|sockets| sockets.taken_from).collect();
    inherited.ready(taken).map_err(|error| taken_over(spec, error))
}

/// Notifies the old server that this process serves.
pub(crate) fn serving(
    spec: &ServerSpec,
    inherited: Option<Inherited>,
    offer: Option<&Offer>,
) -> Result<(), ServeError> {
    let Some(inherited) = inherited else { return Ok(()) };
    inherited.serving().map_err(|error| taken_over(spec, error))?;
    offer.into_iter().flat_map(Offer::files).for_each(SocketFile::own);
    Ok(())
}

fn taken_over(spec: &ServerSpec, error: io::Error) -> ServeError {
    ServeError::TakeOver(spec.handover.clone().unwrap_or_default(), error)
}
