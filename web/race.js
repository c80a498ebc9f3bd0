// A race as curves over one time axis.

/** Bytes of a packet of the simulator. */
export const PACKET = 1500;
/** Number of colours and dash patterns. */
const INKS = 6;

/** Flows of one controller in one lane, added up, at each sample. */
function curveOf(flows, samples, sample_ns) {
  const zeros = () => new Float64Array(samples);
  const curve = { window: zeros(), inflight: zeros(), pacing: zeros(), delivered: zeros(), lost: zeros(), queue: zeros(), rtt: zeros() };
  curve.states = new Array(samples).fill("");
  /** The last sample at which a flow sends. */
  curve.last = 0;
  for (const flow of flows) {
    let [delivered, lost, at, before] = [0, 0, 0, -1];
    flow.time_ns.forEach((time, nth) => {
      const sample = Math.min(Math.round(time / sample_ns), samples - 1);
      for (; at < sample; at += 1) [curve.delivered[at], curve.lost[at]] = [curve.delivered[at] + delivered, curve.lost[at] + lost];
      [delivered, lost] = [flow.delivered_bytes[nth], flow.lost_bytes[nth]];
      if (sample === before) return;
      before = sample;
      curve.window[sample] += flow.cwnd_bytes[nth];
      curve.inflight[sample] += flow.inflight_bytes[nth];
      curve.pacing[sample] += flow.pacing_bps[nth];
      curve.rtt[sample] = Math.max(curve.rtt[sample], flow.rtt_ns[nth]);
      curve.queue[sample] = Math.max(curve.queue[sample], flow.queue_bytes[nth]);
      curve.states[sample] ||= flow.states[flow.state[nth]];
      curve.last = Math.max(curve.last, sample);
    });
    const isOver = flow.completion_ns !== null;
    for (; at < samples; at += 1) {
      curve.delivered[at] += isOver ? flow.delivered_total_bytes : delivered;
      curve.lost[at] += lost;
    }
  }
  return curve;
}

/** Payload per second around each sample, in bits. */
function goodput(delivered, sample_ns) {
  const half = Math.max(2, Math.round(delivered.length / 80));
  return delivered.map((_, at) => {
    const [from, to] = [Math.max(0, at - half), Math.min(delivered.length - 1, at + half)];
    return to > from ? ((delivered[to] - delivered[from]) * 8e9) / ((to - from) * sample_ns) : 0;
  });
}

/** The race as lanes, each with a curve for each controller. */
export function raceOf({ sample_ns, end_ns, lanes }, setup) {
  const samples = Math.ceil(end_ns / sample_ns) + 1;
  let ink = 0;
  const all = lanes.map(({ name, flows }) => {
    const controllers = [...new Set(flows.map((flow) => flow.cc))];
    const curves = controllers.map((cc) => {
      const own = flows.filter((flow) => flow.cc === cc);
      const curve = curveOf(own, samples, sample_ns);
      const label = controllers.length > 1 ? `${cc} in ${name}` : name;
      return { ...curve, cc, label, flows: own, ink: ink++ % INKS, goodput: goodput(curve.delivered, sample_ns) };
    });
    const queue = new Float64Array(samples).map((_, at) => Math.max(...curves.map((curve) => curve.queue[at])));
    const ends = flows.map((flow) => flow.completion_ns);
    const end = ends.includes(null) ? null : Math.max(...ends.map((end, nth) => end + flows[nth].start_ns));
    return { name, curves, queue, end_ns: end, size: flows.reduce((sum, flow) => sum + flow.delivered_total_bytes, 0) };
  });
  return { samples, sample_ns, end_ns, lanes: all, curves: all.flatMap((lane) => lane.curves), setup };
}
