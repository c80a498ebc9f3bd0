// Paths worth seeing. Each is the options of a comparison, and what to look at.

export const STORIES = [
  {
    name: "Random loss", options: { cc: "cubic,bbr3" },
    text: "A lossy last mile. CUBIC takes each lost packet for congestion and keeps its window small. BBRv3 slows a little at each loss and regains its rate with the next probe.",
    more: ["BBR", "../explain/bbr.html"],
  },
  {
    name: "Bufferbloat", options: { rate: "10mbit", rtt: "40ms", loss: "0%", buffer: "8bdp", size: "30MB", cc: "cubic,bbr3" },
    text: "A deep buffer and no random loss. CUBIC fills the buffer before it notices anything. BBRv3 leaves most of it empty.",
    more: ["Pacing and bufferbloat", "../explain/pacing-and-bufferbloat.html"],
  },
  {
    name: "Shallow buffer", options: { rate: "50mbit", rtt: "40ms", loss: "0%", buffer: "0.3bdp", flows: "2", duration: "10s", cc: "bbr1,bbr3" },
    text: "Two flows in a small buffer. BBRv1 does not slow down after losses, so it overflows the queue all the time. BBRv3 reacts to them.",
    more: ["Published results", "../evidence/stories.html#bbr-shallow-buffer"],
  },
  {
    name: "Loss cliff", options: { rate: "50mbit", rtt: "40ms", loss: "5%", duration: "10s", cc: "bbr1,bbr3" },
    text: "5 % random loss is more than BBRv3 tolerates: it takes the loss for congestion. BBRv1 ignores it.",
    more: ["Published results", "../evidence/stories.html#bbr-loss-cliff"],
  },
  {
    name: "One link, two kinds", options: { rate: "20mbit", rtt: "40ms", loss: "0%", buffer: "1bdp", duration: "30s", cc: "bbr1+cubic,bbr3+cubic" },
    text: "BBR and CUBIC on the same link. Each lane is one link with one flow of each. Who takes how much depends on the buffer: make it deeper.",
    more: ["Published results", "../evidence/stories.html#bbr-cubic-share"],
  },
  {
    name: "Fair queue", options: { rate: "20mbit", rtt: "40ms", loss: "0%", buffer: "4bdp", queue: "fq_codel", duration: "20s", cc: "bbr1+cubic,bbr3+cubic" },
    text: "The same with a queue for each flow and CoDel. The queue, not the controllers, now divides the link.",
    more: ["Queues", "../reference/scenario.html#link-queue"],
  },
  {
    name: "Mobile", options: { preset: "lte", cc: "cubic,bbr3", size: "3MB" },
    text: "The path of a mobile network, from measurements. Its sources: uncork lab presets lte.",
    more: ["Presets", "../reference/scenario.html#presets"],
  },
  {
    name: "Satellite", options: { rate: "20mbit", rtt: "600ms", loss: "0.1%", buffer: "1bdp", size: "10MB", cc: "cubic,bbr3" },
    text: "600 ms of round-trip time. Every mistake costs more than half a second, and a window that was lost grows back slowly.",
    more: ["CUBIC", "../explain/cubic.html"],
  },
  {
    name: "Short transfer", options: { rate: "50mbit", rtt: "50ms", loss: "0%", size: "100kB", cc: "cubic,bbr3" },
    text: "100 kB are over before a controller has learnt much. Here the first windows decide, and BBR paces them.",
    more: ["How far to trust the simulator", "../explain/trust-the-simulator.html"],
  },
];
