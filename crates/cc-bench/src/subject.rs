//! What the loop needs of a controller.

/// A controller under the clock, called as its own stack calls it.
///
/// Times are nanoseconds; [`Self::at`] turns them into what the controller takes, outside of the
/// measurement.
pub trait Subject {
    /// A point in time.
    type Now: Copy;
    /// What the host keeps of a packet in flight.
    type Packet: Copy;

    /// The point `nanos` nanoseconds after the start.
    fn at(&self, nanos: u64) -> Self::Now;

    /// The congestion window in bytes.
    fn window(&self) -> u64;

    /// Packet `number` leaves, which brings `in_flight` bytes in flight; `drained` says that the
    /// application has no other.
    fn sent(&mut self, now: Self::Now, number: u64, in_flight: u64, drained: bool) -> Self::Packet;

    /// A batch of packets has left that ended with packet `number`; `bytes` in all.
    fn batch_sent(&mut self, now: Self::Now, bytes: u64, number: u64);

    /// The window keeps the next packet back.
    fn blocked(&mut self) {}

    /// An ACK of the packets `acked`, newly; `rest` are those still in flight.
    fn acked(
        &mut self,
        now: Self::Now,
        acked: &[Self::Packet],
        rest: &[Self::Packet],
        app_limited: bool,
    );

    /// An ACK of the packets `acked` that makes `lost` count as lost.
    fn lost(
        &mut self,
        now: Self::Now,
        lost: Self::Packet,
        acked: &[Self::Packet],
        rest: &[Self::Packet],
    );

    /// Whether slow start or Startup is over.
    fn is_settled(&self) -> bool;

    /// Bytes of the controller's state, with what it allocated.
    fn state_bytes(&self) -> u64;
}
