//! The hosts of the crate's tests, as the fuzzer's entry points.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../tests/hosts/host/mod.rs"]
mod host;

/// A host that keeps honest books acts out `script`.
pub fn truthful(script: &[u8]) {
    host::truthful::play(script);
}

/// A host that lies acts out `script`.
pub fn adversary(script: &[u8]) {
    host::adversary::play(script);
}
