//! ECT(1) for the packets of a controller: programs at the devices of a network namespace. They change the packets of the sockets
//! that the controller has chosen, and of no others.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::object::{Object, ProgramKind};
use crate::program::Program;
use crate::sys;

/// Pins begin with this. Those of devices continue with the cookie of the network namespace and the number of the device.
const PIN: &str = "ect1-";
/// Pins of the programs, for devices that are added later.
const ETHERNET: &str = "ect1-ethernet";
const IP: &str = "ect1-ip";

/// The two programs, by what a device puts before the IP header.
#[derive(Debug)]
pub(crate) struct EgressPrograms {
    ethernet: Program,
    ip: Program,
}

/// The devices of a network namespace where packets leave as ECT(1), while this exists.
#[derive(Debug)]
pub struct Ect1Devices {
    _links: Vec<OwnedFd>,
}

impl EgressPrograms {
    pub(crate) fn load(object: &Object) -> Result<Self, Error> {
        let load = |name| object.load(name, ProgramKind::Egress);
        Ok(Self { ethernet: load("mark_ethernet")?, ip: load("mark_ip")? })
    }

    /// For a device with this type of hardware (linux/if_arp.h).
    fn suitable(&self, hardware: u16) -> Option<&Program> {
        match hardware {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(&self.ethernet),
            libc::ARPHRD_NONE
            | libc::ARPHRD_PPP
            | libc::ARPHRD_SIT
            | libc::ARPHRD_TUNNEL
            | libc::ARPHRD_TUNNEL6 => Some(&self.ip),
            _ => None,
        }
    }

    /// The devices of the calling thread's network namespace, each with the program that suits it.
    fn devices(&self) -> Result<Vec<(u32, &Program)>, Error> {
        let devices = sys::devices().map_err(|error| Error::step("list the devices", error))?;
        let suitable = devices.into_iter().filter_map(|(number, hardware)| {
            self.suitable(hardware).map(|program| (number, program))
        });
        Ok(suitable.collect())
    }

    /// Attaches them in the calling thread's network namespace, until what this returns is dropped.
    pub(crate) fn attach(&self) -> Result<Ect1Devices, Error> {
        let links = self.devices()?.into_iter().map(|(number, program)| {
            sys::link_egress(program.as_fd(), number).map_err(|error| failed(number, error))
        });
        Ok(Ect1Devices { _links: links.collect::<Result<_, _>>()? })
    }

    /// The programs that are attached until [`detach`], if there are any.
    fn open(directory: &Path) -> Result<Option<Self>, Error> {
        let open = |name| Program::open(&directory.join(name));
        Ok(open(ETHERNET)?.zip(open(IP)?).map(|(ethernet, ip)| Self { ethernet, ip }))
    }

    /// Attaches them until [`detach`], in the place of earlier ones. After a failure none is left.
    pub(crate) fn attach_at(&self, directory: &Path) -> Result<(), Error> {
        detach(directory)?;
        let pin = |program: &Program, name| program.pin(&directory.join(name));
        let all = pin(&self.ethernet, ETHERNET)
            .and_then(|()| pin(&self.ip, IP))
            .and_then(|()| self.attach_to_others(directory).map(drop));
        all.inspect_err(|_| {
            // The first error is the one to report.
            let _ = detach(directory);
        })
    }

    /// Attaches them to the devices of the calling thread's network namespace that have none. The result is their number.
    fn attach_to_others(&self, directory: &Path) -> Result<usize, Error> {
        let cookie = sys::namespace_cookie()
            .map_err(|error| Error::step("ask for the number of the network namespace", error))?;
        let mut attached = 0;
        for (number, program) in self.devices()? {
            let path = directory.join(format!("{PIN}{cookie}-{number}"));
            if !path.exists() {
                sys::link_egress(program.as_fd(), number)
                    .and_then(|link| sys::pin(link.as_fd(), &path))
                    .map_err(|error| failed(number, error))?;
                attached += 1;
            }
        }
        Ok(attached)
    }
}

/// Attaches the programs that are in use to the devices of the calling thread's network namespace that have none. The result is
/// the number of these devices.
pub(crate) fn attach_to_others(directory: &Path) -> Result<usize, Error> {
    EgressPrograms::open(directory)?.map_or(Ok(0), |programs| programs.attach_to_others(directory))
}

fn failed(device: u32, error: io::Error) -> Error {
    Error::step(format!("attach a program to device {device}"), error)
}

/// The pins in `directory`, of all network namespaces.
pub(crate) fn pins(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PIN));
    ours.map(|entry| entry.path()).collect()
}

/// Removes the programs from all devices, in all network namespaces. Open connections find out with the next ACK that their
/// packets do not leave as ECT(1) any more.
pub(crate) fn detach(directory: &Path) -> Result<(), Error> {
    pins(directory).iter().try_for_each(|path| {
        fs::remove_file(path)
            .map_err(|error| Error::step(format!("remove {}", path.display()), error))
    })
}
