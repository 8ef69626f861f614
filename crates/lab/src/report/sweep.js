// The panels of a sweep over distance and window.
const rate = (v) => bytes(v) + "/s";
const COLOURS = ["var(--one)", "var(--two)", "var(--three)", "var(--warn)", "var(--bad)", "var(--ink)"];
const LIMITERS = { link: "the link's rate", acknowledgements: "waiting for acknowledgements", "receive-window": "the receiver's window", "send-buffer": "the sender's buffer", loss: "loss",
  "congestion-window": "the congestion window", unknown: "not clear" };
// Of these the axis is a block, not a window.
const WAITS = ["stop-and-wait", "nfs-read", "nfs-write"];
function powers(lo, hi, step) { const out = []; for (let v = lo; v <= hi * 1.001; v *= step) out.push(v); return out; }
// Blocks are whole bytes here: what the source had is the power of two beside it.
function wanted(s, p) {
  const v = p.at.window / s.plan.scale, power = 2 ** Math.round(Math.log2(v));
  return s.plan.figure && Math.abs(v / power - 1) < 0.01 ? power : v;
}
// Both axes by powers: a window eight times as large is one step.
function carried(s, points) {
  const f = frame(380, { wide: true, left: 92, right: 16, top: 12, bottom: 64, label: "Throughput by window and distance, measured and predicted" });
  const window = (p) => wanted(s, p), known = points.filter((p) => p.figures);
  if (!known.length) return el("p", { class: "soft" }, "No valid points.");
  const all = known.flatMap((p) => [p.figures.bytes_s.median, p.figures.predicted]), base = (v) => 2 ** Math.floor(Math.log2(v));
  const lo = base(Math.min(...all)), hi = 2 * base(Math.max(...all)), left = Math.min(...points.map(window)) / 1.5, right = Math.max(...points.map(window)) * 1.5;
  const x = (v) => f.left + f.w * Math.log(v / left) / Math.log(right / left), y = (v) => f.top + f.h * (1 - Math.log(v / lo) / Math.log(hi / lo));
  yAxis(f, powers(lo, hi, hi / lo > 512 ? 8 : 2), y, rate);
  let free = 0;
  for (const v of [...new Set(points.map(window))].sort((a, b) => a - b)) {
    if (x(v) - 26 < free) continue;
    text(f, x(v), f.top + f.h + 16, bytes(v), "middle"); free = x(v) + 26;
  }
  const apart = Math.min(90, f.w / s.plan.rtt_ms.length);
  text(f, f.left + f.w / 2, f.top + f.h + 34, WAITS.includes(s.plan.carrier) ? "block of each instance" + (s.plan.figure ? ", in the source's bytes" : "") : "window of each connection", "middle");
  s.plan.rtt_ms.forEach((rtt, n) => {
    const row = known.filter((p) => p.at.rtt_ms === rtt), colour = COLOURS[n % COLOURS.length], label = `${digits(rtt)} ms`;
    const path = row.map((p, k) => `${k ? "L" : "M"}${x(window(p)).toFixed(1)} ${y(p.figures.predicted).toFixed(1)}`).join("");
    f.svg.append(el("svg:path", { d: path, stroke: colour, "stroke-width": 1.5, "stroke-dasharray": "5 4", fill: "none" }));
    row.forEach((p) => f.svg.append(el("svg:circle", { cx: x(window(p)), cy: y(p.figures.bytes_s.median), r: 4.5, fill: colour },
      el("svg:title", {}, `${label}, ${bytes(window(p))}: ${rate(p.figures.bytes_s.median)}, predicted ${rate(p.figures.predicted)}; ${LIMITERS[p.figures.limiter]}`))));
    f.svg.append(el("svg:circle", { cx: f.left + 6 + n * apart, cy: f.top + f.h + 52, r: 4.5, fill: colour }));
    text(f, f.left + 16 + n * apart, f.top + f.h + 56, label);
  });
  return f.svg;
}
function sweep(s) {
  $("title").textContent = s.plan.title;
  $("subtitle").textContent = `${count(s.plan.rate)}bit/s, ${many(s.points.length, "point")}, each ${s.plan.repeats === 1 ? "once" : s.plan.repeats + " times"} · ${when(s.started)}, ${digits(s.ended - s.started)} s`;
  $("notes").append(...s.degraded.map((what) => el("p", { class: "note" }, "Degraded: " + what)));
  const kind = (p) => `${many(p.at.instances, "connection")}, ${p.at.congestion}${p.at.encrypt ? ", encrypted with AES-256-GCM" : ""}`;
  for (const name of new Set(s.points.map(kind))) {
    const points = s.points.filter((p) => kind(p) === name);
    $("charts").append(el("h2", {}, name), el("figure", {}, el("figcaption", {}, "Points: measured median. Dashed: model."), carried(s, points)));
  }
  const seconds = (v) => time(v * 1e9), share = (t, us) => t ? percent(us / Math.max(t.elapsed_us, 1)) : null;
  const source = s.plan.figure ? ["#at the source"] : [];
  table($("points"), ["#distance", "#round trip", "#window", "connections", "#median", ...source, "#model", "#off", "limited by", "#window closed", "#buffer full", "#sent again", "#spoiled"], s.points.map((p) => {
    const g = p.figures, t = p.samples[p.samples.length - 1]?.tcp, off = g && Math.abs(g.off_percent) > 10;
    const head = [`${digits(p.at.rtt_ms)} ms`, g ? seconds(g.rtt_s) : null, bytes(p.at.window), `${p.at.instances}, ${p.at.congestion}${p.at.encrypt ? ", encrypted" : ""}`];
    if (!g) return { cells: [...head, { node: p.failed ? "given up" : "spoiled", cls: "bad" }, ...source.map(() => null), null, null, null, null, null, null, p.spoiled.length] };
    return { cells: [...head, rate(g.bytes_s.median), ...source.map(() => `${digits(g.source_bytes_s / 1e6)} MB/s`), rate(g.predicted), { node: `${g.off_percent > 0 ? "+" : ""}${g.off_percent.toFixed(1)} %`, cls: off ? "bad" : "" },
      { node: LIMITERS[g.limiter], cls: "wide" }, share(t, t?.rwnd_limited_us), share(t, t?.sndbuf_limited_us), t ? t.retransmits : null, p.spoiled.length] };
  }));
  pairs($("plan"), [["rate", `${count(s.plan.rate)}bit/s of IP packets`], ["payload", rate(s.link_bytes_s)], ["queue", "all that can be under way: nothing is lost"], ["seed", s.plan.seed], ["scale", s.plan.figure ? `${digits(1 / s.plan.scale)} bytes of the source are one here` : null]]);
  pairs($("machine"), [["program", s.program], ...machine(s.machine)]);
  $("command").textContent = s.command.join(" ");
}
