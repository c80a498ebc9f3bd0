//! A call that the kernel made of a controller, as reported to user space.

use uncork_kernel::{Layout, check_object, layout};

use crate::glue::{Call, Connection, Staged};

/// Kinds of calls.
pub(crate) const INIT: u32 = 0;
pub(crate) const SENT: u32 = 1;
pub(crate) const ACK: u32 = 2;
pub(crate) const TIMEOUT: u32 = 3;
pub(crate) const SPURIOUS: u32 = 4;
pub(crate) const RESIZED: u32 = 5;
pub(crate) const CLASSIC_ECN: u32 = 6;
pub(crate) const ENDED: u32 = 7;
/// A record of `shim.bpf.c`.
#[repr(C)]
pub(crate) struct Record<C> {
    pub(crate) kind: u32,
    pub(crate) number: u32,
    pub(crate) key: u64,
    pub(crate) connection: Connection<C>,
}

impl<C: Staged> Record<C> {
    #[expect(unsafe_code, reason = "the kernel's memory becomes a value")]
    pub(crate) fn read(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), size_of::<Self>(), "the object has another layout");
        // SAFETY: it is as large, and the same compiler wrote it from the same source.
        unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
    }
}

/// The shim writes calls, the glue reads them.
#[test]
fn the_shim_and_the_glue_have_the_same_call() {
    const CALL: Layout = layout!(
        Call = "call": now, mss, seed, acked, lost, sent, in_flight, unacked, rtt, srtt, min_rtt, send_time, delivered,
        delivered_time, send_elapsed, lost_then, tx_in_flight, lost_sent, ce_packets, flags, initial_window, ssthresh, inherited_bw, saved_cwnd,
        saved_rtt, cwnd, pacing_rate, send_quantum, is_classic
    );
    let object = include_bytes!("../../bpf/bbr3.bpf.o");
    check_object("bbr3", object, &[CALL]).expect("the same");
}
