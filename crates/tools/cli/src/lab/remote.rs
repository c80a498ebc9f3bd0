//! An object store for the output of sweeps. A build without object stores refuses its address.

#[cfg(not(all(feature = "full", target_os = "linux")))]
pub(super) use absent::Remote;
#[cfg(all(feature = "full", target_os = "linux"))]
pub(super) use present::Remote;

#[cfg(all(feature = "full", target_os = "linux"))]
mod present {
    use std::io;

    use uncork_store::{Condition, GetResult, Store, StoreError};

    use crate::failure::Failure;

    /// The largest object that is read: twice what a writer lets wait for a store that is away.
    const MAX_OBJECT: u64 = 512 << 20;

    /// A store, opened at the address of an argument.
    #[derive(Debug)]
    pub(in super::super) struct Remote(Box<dyn Store + Send + Sync>);

    impl Remote {
        /// Opens the store at the `address` of `argument`. Nothing is asked yet.
        pub(in super::super) fn open(argument: &str, address: &str) -> Result<Self, Failure> {
            let opened = uncork_store::open(address);
            opened
                .map(Self)
                .map_err(|error| Failure::value(argument, uncork_store::shown(address), error))
        }

        /// The content of the objects that exist, in the order of `names`.
        pub(in super::super) fn get_all(
            &self,
            names: &[String],
        ) -> io::Result<Vec<Option<Vec<u8>>>> {
            let found = self.0.get_all(names, MAX_OBJECT).into_iter();
            let content = |found: Result<GetResult, StoreError>| match found {
                Ok(GetResult::Object(object)) => Ok(Some(object.bytes)),
                Ok(_) => Ok(None),
                Err(error) => Err(io::Error::other(error)),
            };
            found.map(content).collect()
        }

        /// Writes an object whole, over an earlier one.
        pub(in super::super) fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
            self.0.put(name, bytes, &Condition::Any).map_err(io::Error::other)
        }

        /// Writes an object whole. One with the same content may exist.
        pub(in super::super) fn add(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
            self.0.put(name, bytes, &Condition::New).map_err(io::Error::other)
        }

        /// The sorted names of objects and folders in a folder.
        pub(in super::super) fn list(&self, folder: &str) -> io::Result<Vec<String>> {
            self.0.list(folder).map_err(io::Error::other)
        }
    }
}

#[cfg(not(all(feature = "full", target_os = "linux")))]
mod absent {
    use std::io;

    use crate::failure::Failure;
    use crate::left_out;

    /// No store: this build cannot open one.
    #[derive(Debug)]
    pub(in super::super) enum Remote {}

    impl Remote {
        pub(in super::super) fn open(_: &str, address: &str) -> Result<Self, Failure> {
            Err(left_out::object_stores(address))
        }

        pub(in super::super) fn get_all(&self, _: &[String]) -> io::Result<Vec<Option<Vec<u8>>>> {
            match *self {}
        }

        pub(in super::super) fn replace(&self, _: &str, _: &[u8]) -> io::Result<()> {
            match *self {}
        }

        pub(in super::super) fn add(&self, _: &str, _: &[u8]) -> io::Result<()> {
            match *self {}
        }

        pub(in super::super) fn list(&self, _: &str) -> io::Result<Vec<String>> {
            match *self {}
        }
    }
}
