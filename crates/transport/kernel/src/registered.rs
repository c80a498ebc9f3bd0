//! What is registered in this kernel without a pin that this program knows: found by the kernel's numbers of links and maps.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::btf::{CongestionOps, Types};
use crate::error::Error;
use crate::sys;

/// Ends every registration of a controller's name. It needs CAP_SYS_ADMIN, as all that opens by number (bpf(2)).
///
/// # Errors
///
/// If none is found, or the kernel refuses it.
pub(crate) fn unregister_all(name: &'static str) -> Result<(), Error> {
    let ops = Types::read()?.congestion_ops()?;
    let failed = |error| Error::step(format!("look for {name}"), error);
    let of = |map: &OwnedFd| is_of(map, name, &ops);
    let mut found = 0;
    for link in all(sys::next_link, sys::link_by_id) {
        let link = link.map_err(failed)?;
        let Some(map) = sys::registered_map(link.as_fd()).map_err(failed)? else { continue };
        if of(&map) {
            // Since Linux 6.11; before, a link ends when its last file descriptor and pin are gone.
            sys::detach_link(link.as_fd()).map_err(|error| held(name, error))?;
            found += 1;
        }
    }
    for map in all(sys::next_map, sys::map_by_id) {
        let map = map.map_err(failed)?;
        // Before Linux 6.4 the element is the registration.
        if found == 0 && sys::is_structure(map.as_fd()).map_err(failed)? && of(&map) {
            sys::delete_element(map.as_fd()).map_err(|error| held(name, error))?;
            found += 1;
        }
    }
    if found == 0 {
        let error = io::Error::new(io::ErrorKind::NotFound, "no link or map has it");
        return Err(held(name, error));
    }
    Ok(())
}

fn held(name: &'static str, error: io::Error) -> Error {
    Error::Held { name, error }
}

/// Whether the structure in a map has this name.
fn is_of(
    map: &OwnedFd,
    wanted: &str,
    CongestionOps { ops, value, data, .. }: &CongestionOps,
) -> bool {
    let mut content = vec![0_u8; value.size as usize];
    let Some(name) = ops.member("name") else { return false };
    if sys::map_info(map.as_fd()).map(|info| info.value_size).ok() != Some(value.size)
        || sys::element(map.as_fd(), &[0; 4], &mut content).is_err()
    {
        return false;
    }
    let name = content.get(data + name.offset..).unwrap_or_default();
    name.split(|byte| *byte == 0).next() == Some(wanted.as_bytes())
}

/// What `open` opens of all numbers that `next` gives. What has gone meanwhile is left out.
fn all(
    next: fn(u32) -> io::Result<u32>,
    open: fn(u32) -> io::Result<OwnedFd>,
) -> impl Iterator<Item = io::Result<OwnedFd>> {
    let mut last = Some(0);
    // The end of the numbers is the same error as that of a number that has gone.
    let numbers = std::iter::from_fn(move || {
        let number = next(last?);
        last = number.as_ref().ok().copied();
        Some(number)
    });
    let opened = numbers.map(move |number| number.and_then(open));
    opened.filter(|it| !it.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound))
}
