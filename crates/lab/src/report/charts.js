"use strict";
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
function el(name, attributes, ...children) {
  const node = name.startsWith("svg:") ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}
const digits = (v) => { const a = Math.abs(v); const p = a >= 99.95 || v === 0 ? 0 : a >= 9.995 ? 1 : 2;
  const t = v.toFixed(p); return t.includes(".") ? t.replace(/\.?0+$/, "") : t; };
function scaled(v, step, units) { let n = 0; while (Math.abs(v) >= step && n + 1 < units.length) { v /= step; n++; } return [digits(v), units[n]]; }
const count = (v) => scaled(v, 1000, ["", " K", " M", " G"]).join("");
const bytes = (v) => scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]).join(" ");
const time = (ns) => ns < 1e6 ? scaled(ns, 1000, ["ns", "µs"]).join(" ") : ns < 1e9 ? digits(ns / 1e6) + " ms" : digits(ns / 1e9) + " s";
const percent = (share) => (share * 100).toFixed(share < 0.1 ? 1 : 0) + " %";
// The reader's own time, with its zone: the server's graphs use it too.
const two = (n) => String(n).padStart(2, "0");
function when(s) {
  const d = new Date(s * 1000), off = -d.getTimezoneOffset(), far = Math.abs(off);
  const zone = off === 0 ? "UTC" : `UTC${off < 0 ? "−" : "+"}${two(Math.floor(far / 60))}:${two(far % 60)}`;
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())} ${zone}`;
}
const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
const link = (href, text, title) => el("a", { href, title: title || "" }, text);
// Buckets of base::buckets: four to each power of two.
const low = (i) => i < 4 ? i : (4 + (i - 4) % 4) * 2 ** Math.floor((i - 4) / 4);

function ticks(max, n, base) {
  if (!(max > 0)) return [0, 1];
  // Bytes are told in powers of two: round steps are round in their own unit.
  if (base) { const unit = base ** Math.max(Math.floor(Math.log(max) / Math.log(base)), 0); return ticks(max / unit, n).map((v) => v * unit); }
  const raw = max / n, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
  const out = []; for (let v = 0; v < max + step * 0.999; v += step) out.push(v);
  return out;
}
function frame(height, box) {
  const W = box.wide && innerWidth > 760 ? 1150 : innerWidth > 760 ? 560 : 380;
  const svg = el("svg:svg", { viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": box.label });
  return { ...box, svg, w: W - box.left - box.right, h: height - box.top - box.bottom };
}
function text(f, x, y, string, anchor, cls) {
  f.svg.append(el("svg:text", { x, y, "text-anchor": anchor || "start", class: cls || "" }, string));
}
function yAxis(f, marks, y, format) {
  for (const m of marks) {
    f.svg.append(el("svg:line", { x1: f.left, x2: f.left + f.w, y1: y(m), y2: y(m), class: "axis" }));
    text(f, f.left - 8, y(m) + 4, format(m), "end");
  }
}
function stairs(r, figure, format, base) {
  const f = frame(300, { left: 76, right: 8, top: 22, bottom: 40, label: "Throughput at each step" });
  const marks = ticks(Math.max(...r.steps.map(figure)), 5, base), top = marks[marks.length - 1];
  const y = (v) => f.top + f.h * (1 - v / top), slot = f.w / r.steps.length, bar = Math.min(slot * 0.72, 64);
  yAxis(f, marks, y, format);
  r.steps.forEach((s, n) => {
    const x = f.left + slot * (n + 0.5), v = figure(s), best = n === r.best, steady = s.steady.verdict === "steady";
    const rect = el("svg:rect", { x: x - bar / 2, width: bar, y: y(v), height: Math.max(f.top + f.h - y(v), 1),
      fill: "var(--one)", "fill-opacity": best ? 1 : 0.42, stroke: steady ? "none" : "var(--two)", "stroke-width": 2, "stroke-dasharray": "4 3" },
      el("svg:title", {}, `${s.clients} × ${s.threads}: ${format(v)}, ${s.steady.verdict}`));
    f.svg.append(rect);
    if (best) text(f, x, y(v) - 6, format(v), "middle", "value");
    text(f, x, f.top + f.h + 16, `${s.clients}×${s.threads}`, "middle");
  });
  text(f, f.left + f.w / 2, f.top + f.h + 34, "clients × threads; dashed: not steady", "middle");
  return f.svg;
}
function curve(r, figure, format, base) {
  const f = frame(300, { left: 76, right: 16, top: 22, bottom: 40, label: "Latency against throughput" });
  const xs = ticks(Math.max(...r.steps.map(figure)), innerWidth > 760 ? 4 : 2, base), right = xs[xs.length - 1];
  const all = r.steps.flatMap((s) => [s.latency.p50, s.latency.p99]).filter((v) => v > 0);
  const lo = 10 ** Math.floor(Math.log10(Math.min(...all))), hi = 10 ** Math.ceil(Math.log10(Math.max(...all) * 1.01));
  const y = (v) => f.top + f.h * (1 - Math.log(Math.max(v, lo) / lo) / Math.log(hi / lo)), x = (v) => f.left + f.w * v / right;
  const marks = []; for (let v = lo; v <= hi * 1.001; v *= 10) marks.push(v);
  yAxis(f, marks, y, time);
  xs.forEach((v) => text(f, x(v), f.top + f.h + 16, format(v), "middle"));
  text(f, f.left + f.w / 2, f.top + f.h + 34, "throughput of each step, in order", "middle");
  for (const [key, colour, label] of [["p99", "var(--two)", "99th percentile"], ["p50", "var(--one)", "median"]]) {
    const points = r.steps.map((s) => [x(figure(s)), y(s.latency[key])]);
    f.svg.append(el("svg:polyline", { points: points.map((p) => p.join()).join(" "), fill: "none", stroke: colour, "stroke-width": 1.5, "stroke-opacity": 0.5 }));
    points.forEach(([cx, cy], n) => f.svg.append(el("svg:circle", { cx, cy, r: n === r.best ? 6 : 3.5, fill: colour },
      el("svg:title", {}, `${r.steps[n].clients} × ${r.steps[n].threads}: ${format(figure(r.steps[n]))}, ${label} ${time(r.steps[n].latency[key])}`))));
  }
  const key = [["var(--two)", "99th percentile"], ["var(--one)", "median"]];
  key.forEach(([colour, label], n) => { f.svg.append(el("svg:circle", { cx: f.left + 12 + n * 130, cy: 10, r: 4, fill: colour })); text(f, f.left + 22 + n * 130, 14, label); });
  return f.svg;
}
// All windows of all steps on one line: x is the window, with a gap between steps.
function columns(r) {
  const out = []; let x = 0;
  for (const [n, s] of r.steps.entries()) {
    const from = x;
    s.windows.forEach((w, i) => out.push({ x: x++, w, step: n, used: i >= s.used[0] && i < s.used[1] }));
    out.push({ label: `${s.clients}×${s.threads}`, from, to: x, step: n }); x += 0.8;
  }
  return { cells: out.filter((c) => c.w), labels: out.filter((c) => c.label), width: x };
}
function stepLabels(f, labels, X) {
  const room = (l) => X(l.to) - X(l.from) > 22;
  labels.forEach((l) => {
    f.svg.append(el("svg:line", { x1: X(l.from), x2: X(l.to) - 1, y1: f.top + f.h + 3, y2: f.top + f.h + 3, class: "axis", "stroke-width": 2 }));
    if (room(l)) text(f, (X(l.from) + X(l.to)) / 2, f.top + f.h + 18, l.label, "middle");
  });
}
function overTime(r, per, format, base) {
  const f = frame(220, { wide: true, left: 76, right: 8, top: 20, bottom: 26, label: "Throughput in each window" });
  const { cells, labels, width } = columns(r), X = (v) => f.left + f.w * v / width;
  const rate = (c) => per(c.w) / r.steps[c.step].window_s;
  const marks = ticks(Math.max(...cells.map(rate)), 4, base), top = marks[marks.length - 1], y = (v) => f.top + f.h * (1 - v / top);
  yAxis(f, marks, y, format);
  cells.forEach((c) => f.svg.append(el("svg:rect", { x: X(c.x), width: Math.max(X(c.x + 1) - X(c.x) - 1, 1), y: y(rate(c)), height: f.top + f.h - y(rate(c)),
    fill: "var(--one)", "fill-opacity": c.used ? 0.85 : 0.25 }, el("svg:title", {}, `${format(rate(c))}${c.used ? "" : ", not counted"}`))));
  stepLabels(f, labels, X);
  text(f, f.left, 12, "strong: counted; faint: warm-up and settling");
  return f.svg;
}
function heat(r) {
  const f = frame(300, { wide: true, left: 76, right: 8, top: 6, bottom: 26, label: "Latency of operations over time" });
  const { cells, labels, width } = columns(r), X = (v) => f.left + f.w * v / width;
  const seen = cells.flatMap((c) => c.w.heat.map((h) => h[0]));
  if (!seen.length) return f.svg;
  const min = Math.min(...seen), max = Math.max(...seen) + 1, y = (b) => f.top + f.h * (1 - (b - min) / (max - min));
  const most = Math.log1p(Math.max(...cells.flatMap((c) => c.w.heat.map((h) => h[1]))));
  for (let p = 10; p < 1e13; p *= 10) for (let b = min; b < max; b++) if (low(b) <= p && low(b + 1) > p) {
    f.svg.append(el("svg:line", { x1: f.left, x2: f.left + f.w, y1: y(b), y2: y(b), class: "axis" })); text(f, f.left - 8, y(b) + 4, time(p), "end");
  }
  // A single slow operation must stay visible: never fainter than a sixth.
  cells.forEach((c) => c.w.heat.forEach(([b, n]) => f.svg.append(el("svg:rect", { x: X(c.x), width: Math.max(X(c.x + 1) - X(c.x), 1), y: y(b + 1), height: y(b) - y(b + 1) + 0.3,
    fill: `rgba(var(--heat), ${(0.16 + 0.84 * Math.log1p(n) / most).toFixed(3)})` }, el("svg:title", {}, `${time(low(b))} to ${time(low(b + 1))}: ${n} operations`)))));
  stepLabels(f, labels, X);
  return f.svg;
}
function table(node, heads, rows) {
  node.append(el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", h.startsWith("#") ? { class: "n" } : {}, h.replace("#", ""))))));
  const body = el("tbody");
  for (const row of rows) {
    body.append(el("tr", row.cls ? { class: row.cls } : {}, ...row.cells.map((c, n) => {
      const cell = c !== null && typeof c === "object" ? c : { node: String(c ?? "–") };
      return el("td", { class: `${heads[n].startsWith("#") ? "n " : ""}${cell.cls || ""}`, "data-head": heads[n].replace("#", "") }, cell.node);
    })));
  }
  node.append(body);
}
function pairs(node, list) { for (const [k, v] of list) if (v !== null && v !== undefined && v !== "") node.append(el("dt", {}, k), el("dd", {}, String(v))); }
const machine = (m) => m ? [["machine", m.name], ["processor", m.cpu && `${m.cpu}, ${m.cores} cores`], ["memory", m.memory_bytes && bytes(m.memory_bytes)], ["kernel", m.kernel]] : [];
const TITLES = { "server-cpu": "server CPU", "hot-core": "a hot core of the server", "cpu-shared": "CPU shared with the generator", "cpu-quota": "CPU quota of the server",
  network: "network", disk: "disk", latency: "latency", generator: "the load generator itself", "not-reached": "not a limit: throughput still rising", unknown: "unknown" };

function evidence(r, e) {
  const rows = [], add = (what, value, says) => value !== null && value !== undefined && rows.push({ cells: [what, value, { node: says, cls: "wide soft" }] });
  add("CPU of the server's machine", e.host_busy !== null && e.host_busy !== undefined ? percent(e.host_busy) : null, `all ${e.cores} cores; the busiest ${e.hottest_core !== null ? percent(e.hottest_core || 0) : "–"}`);
  add("server process", e.server_cores !== null ? `${digits(e.server_cores)} cores` : null, e.server_hot_thread ? `busiest thread ${e.server_hot_thread[0]}: ${percent(e.server_hot_thread[1])} of a core` : "");
  if (e.server_wanted) add("cores that the server asked for", digits(e.server_wanted[0]), `used or stood in line for; its busiest thread ${digits(e.server_wanted[1])}`);
  add("server over its CPU quota", e.server_throttled !== null ? percent(e.server_throttled) : null, e.server_quota_cores ? `quota of ${digits(e.server_quota_cores)} cores` : "no quota");
  add("all agents", `${digits(e.generator_cores)} cores`, `the busiest ${percent(e.generator_busiest)} of a core; waited for one ${percent(e.generator_waiting)}${e.same_host ? "; on the server's machine" : ""}`);
  add("agents over their CPU quota", percent(e.generator_throttled), "the worst of them");
  add("generator against nothing", e.null_ops_s ? `${count(e.null_ops_s)} ops/s` : null, e.null_ops_s ? `this step is ${percent(e.point.ops_s / e.null_ops_s)} of it` : "");
  if (e.link) add("network device " + e.link[0], bytes(e.link[1]) + "/s", e.link[2] ? `can ${bytes(e.link[2])}/s` : "its rate is not known");
  if (e.queued_to_send) add("waiting to be sent, per connection", bytes(e.queued_to_send[0]), `at the server; at a client ${bytes(e.queued_to_send[1])}`);
  if (e.queued_to_read) add("waiting to be read, per connection", bytes(e.queued_to_read[0]), `at the server; at a client ${bytes(e.queued_to_read[1])}`);
  add("TCP retransmissions", percent(e.retransmitted), "");
  for (const o of r.steps[r.best].observe || []) {
    if (o.cpu !== null) add("server, all processes", `${digits(o.cpu / o.seconds)} cores`, `${o.processes} at the end, counted by ${o.cpu_by === "control-group" ? "their control group" : "process"}`);
    for (const d of o.devices) add("device " + d.name, `${bytes(d.bytes[0] / o.seconds)}/s read, ${bytes(d.bytes[1] / o.seconds)}/s written`, `${digits(d.busy * 100)} % busy${d.latency[0] ? `; a read took ${time(d.latency[0])}` : ""}${d.latency[1] ? `; a write took ${time(d.latency[1])}` : ""}`);
    if (o.no_device) add("device of the data", "none", o.no_device);
    if (o.pages_before) add("test files in the page cache", percent(o.pages_before.resident / Math.max(o.pages_before.all, 1)), "before the time that counts");
    for (const i of o.interfaces.filter((i) => i.rx || i.tx)) add("interface " + i.name, `${bytes(i.rx / o.seconds)}/s received, ${bytes(i.tx / o.seconds)}/s sent`, i.payload ? `payload of the clients ${bytes(i.payload / o.seconds)}/s` : "");
  }
  if (e.disk) add("disk " + e.disk[0], percent(e.disk[1]) + " busy", `${digits(e.disk[2])} ms per write or flush`);
  if (e.server_latency_ns) add("latency that the server saw", time(e.server_latency_ns), `of ${time(e.point.latency_ns)} that the clients saw`);
  table($("evidence"), ["", "#measured", ""], rows);
}
function run(r) {
  const stream = ["seqread", "seqwrite"].includes(r.job.workload), figure = (s) => stream ? s.bytes_s : s.ops_s, base = stream ? 1024 : 0;
  const format = stream ? (v) => bytes(v) + "/s" : (v) => count(v), full = (v) => stream ? bytes(v) + "/s" : count(v) + " ops/s";
  $("title").textContent = r.job.title;
  $("subtitle").textContent = `${r.job.answers} · ${r.target} · ${when(r.started)}, ${digits(r.ended - r.started)} s`;
  const best = r.steps[r.best];
  if (best) {
    $("value").textContent = full(figure(best));
    $("at").textContent = `at ${many(best.clients, "client")} × ${many(best.threads, "thread")}`;
    $("latency").textContent = `median ${time(best.latency.p50)}, 99 % below ${time(best.latency.p99)}`;
    if (r.analytics) $("see").append(link(r.analytics[r.best], "This step in Analytics", "The server's own graphs of this interval"));
  } else $("value").textContent = "no result";
  if (r.limit) {
    const sure = ` (confidence ${(r.limit.confidence * 100).toFixed(0)} %)`;
    $("limiter").textContent = r.limit.limiter === "unknown" ? "Limiter unknown" : (r.limit.limiter === "not-reached" ? "" : "Limited by: ") + TITLES[r.limit.limiter] + sure;
    $("why").append(...r.limit.why.map((s) => el("li", {}, s)));
    $("ruled").textContent = r.limit.ruled_out.length ? "Excluded: " + r.limit.ruled_out.join("; ") + "." : "";
  }
  for (const s of [r.failed && "Failed: " + r.failed, ...r.degraded.map((d) => "Degraded: " + d)].filter(Boolean)) $("notes").append(el("p", { class: "note" }, s));
  if (!best) return;
  $("stairs").append(stairs(r, figure, format, base)); $("curve").append(curve(r, figure, format, base));
  $("time").append(overTime(r, (w) => stream ? w.bytes : w.ops, format, base)); $("heat").append(heat(r));
  const mark = (ok, string) => ({ node: string, cls: ok ? "good" : "warn" });
  table($("steps"), ["clients × threads", "#throughput", "#mean", "#median", "#99 %", "#99.9 %", "#worst", "#clients × threads", "#rate × latency", "#Little's law", "steady", "#spread", "#slope", "#faults"],
    r.steps.map((s, n) => ({ cls: n === r.best ? "best" : "", cells: [r.analytics ? { node: link(r.analytics[n], `${s.clients} × ${s.threads}`, "This step in Analytics") } : `${s.clients} × ${s.threads}`, full(figure(s)), time(s.latency.mean), time(s.latency.p50), time(s.latency.p99), time(s.latency.p999), time(s.latency.max),
      s.little.nominal, digits(s.little.x_times_r), mark(s.little.holds, digits(s.little.deviation_percent) + " %"), mark(s.steady.verdict === "steady", s.steady.verdict),
      digits(s.steady.range_percent) + " %", digits(s.steady.slope_percent) + " %", s.errors ? { node: String(s.errors), cls: "bad" } : "0"] })));
  evidence(r, best.evidence);
  $("start").textContent = `At the best step the clients' first operations were ${time(best.start.skew_ns)} apart; the clocks are known to within ${time(best.start.clock_error_ns)}; all clients were active for ${percent(best.start.all_active_share)} of the step. Only windows in which all were active count.`;
  table($("clients"), ["client", "connects from", "process", "machine", "#clock offset", "#known to", "#wall clock off by", "#first operation late by", "#operations counted", "#bytes counted", "state"],
    r.clients.map((c) => { const late = best.start.late_ns.find((l) => l[0] === c.number), ops = best.by_client.find((l) => l.client === c.number);
      return { cells: [c.number, c.source ? `${c.source.address}${c.source.interface ? " over " + c.source.interface : ""}` : c.bind || c.agent, c.pid, c.machine.name, time(Math.abs(c.offset_before.offset_ns)), "± " + time(c.offset_before.error_ns), time(Math.abs(c.wall_skew_ns)), late ? time(Math.abs(late[1])) : null, ops ? count(ops.ops) : null, ops ? bytes(ops.bytes) : null, c.lost ? { node: c.lost, cls: "bad" } : "well"] }; }));
  pairs($("server"), [["seen", r.server.seen], ["not seen", r.server.unseen], ["network namespace", r.server.namespace], ["process", r.server.pid], ...machine(r.server.machine)]);
  const j = r.job;
  pairs($("job"), [["workload", j.workload], ["block", bytes(j.block)], ["files of each client", `${j.files} of ${bytes(j.file_size)}`], ["seed", j.seed], ["checked of what was read", percent(r.checked_share)],
    ["window", `${j.window_ms} ms after ${j.warmup_ms} ms of warm-up`], ["steady", `last ${j.steady.windows} windows within ${j.steady.range_percent} %, slope within ${j.steady.slope_percent} %`],
    ["levelled", `${r.levelled ? "yes" : "no"}: ${j.plateau.steps} steps without a gain of ${j.plateau.gain_percent} %`], ["when a client is lost", j.on_loss], ["generator", r.program], ...machine(r.conductor)]);
  $("command").textContent = r.command.join(" ");
}
function summary(s) {
  $("subtitle").textContent = `${s.columns.map((c) => c.target).filter(Boolean).join(" · ")} · ${when(s.started)}, ${digits(s.ended - s.started)} s`;
  const cells = s.rows.flatMap((row) => row.cells.map((cell, n) => ({ row, cell, column: s.columns[n] }))).filter((c) => c.cell.report);
  table($("rows"), ["", "target", "limited by", "see"], cells.map(({ row, cell, column }) => {
    const reasons = [...cell.why, cell.scaling].filter(Boolean).flatMap((w) => [el("br"), w]);
    const why = el("span", {}, el("strong", {}, cell.value === null ? cell.text : `${cell.limiter_text} (${(cell.confidence * 100).toFixed(0)} %)`), ...reasons);
    const see = el("span", {}, link(cell.report, "Report"));
    // Without its host the address would lead nowhere from a file.
    if (cell.value !== null) see.append(el("br"), cell.analytics.startsWith("/") ? el("code", {}, cell.command) : link(cell.analytics, "Analytics", cell.command));
    return { cells: [{ node: el("strong", {}, row.title), cls: "wide" }, column.name, { node: why, cls: "wide" }, { node: see }] };
  }));
  for (const c of s.columns) pairs($("server"), [[c.name, c.target], ["seen", c.server.seen], ["process", c.server.pid], ...machine(c.server.machine)]);
  pairs($("machine"), machine(s.machine));
}
