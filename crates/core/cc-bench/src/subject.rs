//! The interface between the loop and a controller.

/// A measured controller, called like by its own stack.
///
/// Times are nanoseconds; [`Self::at`] converts them to the controller's type, outside of the measurement.
pub trait Subject {
    /// A point in time.
    type Now: Copy;
    /// The host's record of a packet in flight.
    type Packet: Copy;

    /// The point `nanos` nanoseconds after the start.
    fn at(&self, nanos: u64) -> Self::Now;

    /// The congestion window in bytes.
    fn window(&self) -> u64;

    /// Packet `number` is sent; `in_flight` includes it. `drained`: the application has no more data.
    fn sent(&mut self, now: Self::Now, number: u64, in_flight: u64, drained: bool) -> Self::Packet;

    /// A batch of `bytes` was sent, ending with packet `number`.
    fn batch_sent(&mut self, now: Self::Now, bytes: u64, number: u64);

    /// The window blocks the next packet.
    fn blocked(&mut self) {}

    /// An ACK newly acknowledges `acked`; `rest` is still in flight.
    fn acked(
        &mut self,
        now: Self::Now,
        acked: &[Self::Packet],
        rest: &[Self::Packet],
        app_limited: bool,
    );

    /// An ACK acknowledges `acked`, and so `lost` is declared lost.
    fn lost(
        &mut self,
        now: Self::Now,
        lost: Self::Packet,
        acked: &[Self::Packet],
        rest: &[Self::Packet],
    );

    /// Whether slow start or Startup is over.
    fn is_settled(&self) -> bool;

    /// Bytes of the controller's state, including allocations.
    fn state_bytes(&self) -> u64;
}
