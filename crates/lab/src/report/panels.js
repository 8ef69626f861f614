// The panels of a comparison of protocols.
const way = (line, name) => line.ways.find((w) => w.way === name);
const rate = (v) => bytes(v) + "/s";
// The cipher without what all have: room is scarce.
const cipher = (line) => line.cipher ? line.cipher.replace(/^(SSH|TLS [\d.]+) /, "").replace(/_SHA\d+$/, "").replace(/@openssh.com$/, "").replaceAll("_", "-").toLowerCase() : line.secure ? "" : "not protected";
const identity = { insecure: "not verified", pin: "its pin", authority: "an authority", none: "none" };
function row(f, n, height, label, below) {
  const y = f.top + n * height;
  text(f, f.left - 8, y + height / 2 + (below ? -2 : 4), label, "end", "value");
  if (below) text(f, f.left - 8, y + height / 2 + 12, below, "end");
  return y;
}
function xAxis(f, marks, x, format) {
  for (const m of marks) {
    f.svg.append(el("svg:line", { x1: x(m), x2: x(m), y1: f.top, y2: f.top + f.h, class: "axis" }));
    text(f, x(m), f.top + f.h + 16, format(m), "middle");
  }
}
function speeds(c, name) {
  const height = 36, f = frame(c.lines.length * height + 30, { wide: true, left: 132, right: 84, top: 4, bottom: 26, label: `Throughput of ${name}s by protocol` });
  const marks = ticks(Math.max(1, ...c.lines.map((l) => way(l, name)?.bytes_s.high || 0)), innerWidth > 760 ? 5 : 2, 1024), top = marks[marks.length - 1];
  const x = (v) => f.left + f.w * v / top;
  xAxis(f, marks, x, rate);
  c.lines.forEach((line, n) => {
    const y = row(f, n, height, line.protocol, cipher(line)), w = way(line, name);
    if (!w) return text(f, f.left + 6, y + height / 2 + 4, line.failed ? "given up" : "no figure");
    const s = w.bytes_s, middle = y + height / 2;
    f.svg.append(el("svg:rect", { x: f.left, y: y + 7, width: Math.max(x(s.median) - f.left, 1), height: height - 14, fill: "var(--one)", "fill-opacity": line.secure ? 1 : 0.42 },
      el("svg:title", {}, `${line.protocol}: ${rate(s.median)}, ${rate(s.low)} to ${rate(s.high)} with ${percent(s.coverage)}`)));
    f.svg.append(el("svg:path", { d: `M${x(s.low)} ${middle}H${x(s.high)}M${x(s.low)} ${middle - 5}v10M${x(s.high)} ${middle - 5}v10`, stroke: "var(--two)", "stroke-width": 2, fill: "none" }));
    text(f, Math.max(x(s.median), x(s.high)) + 8, middle + 4, rate(s.median), "start", "value");
  });
  return f.svg;
}
function costs(c) {
  const height = 44, f = frame(c.lines.length * height + 50, { wide: true, left: 132, right: 84, top: 22, bottom: 26, label: "CPU seconds per gigabyte at client and server" });
  const all = (w) => w ? w.client_cpu_s_gb.median + (w.server_cpu_s_gb?.median || 0) : 0, ways = ["upload", "download"];
  const marks = ticks(Math.max(0.01, ...c.lines.flatMap((l) => ways.map((name) => all(way(l, name))))), innerWidth > 760 ? 5 : 2), top = marks[marks.length - 1];
  const x = (v) => f.left + f.w * v / top, format = (v) => digits(v) + " s";
  xAxis(f, marks, x, format);
  c.lines.forEach((line, n) => {
    const y = row(f, n, height, line.protocol);
    ways.forEach((name, k) => {
      const w = way(line, name);
      if (!w) return;
      const mine = w.client_cpu_s_gb.median, theirs = w.server_cpu_s_gb?.median, at = y + 5 + k * 17;
      const bar = (from, to, colour, what) => f.svg.append(el("svg:rect", { x: x(from), y: at, width: Math.max(x(to) - x(from), 1), height: 15, fill: colour },
        el("svg:title", {}, `${line.protocol}, ${name}, ${what}: ${format(to - from)}`)));
      bar(0, mine, "var(--one)", "client");
      if (theirs !== undefined) bar(mine, mine + theirs, "var(--three)", "server");
      text(f, x(all(w)) + 8, at + 12, `${format(all(w))}${theirs === undefined ? ", server unseen" : ""}`, "start", "value");
    });
  });
  [["var(--one)", "client"], ["var(--three)", "server"]].forEach(([colour, label], n) => {
    f.svg.append(el("svg:rect", { x: f.left + n * 90, y: 3, width: 10, height: 10, fill: colour }));
    text(f, f.left + 16 + n * 90, 13, label);
  });
  return f.svg;
}
function comparison(c) {
  $("title").textContent = c.plan.title;
  $("subtitle").textContent = `${c.plan.answers} · ${when(c.started)}, ${digits(c.ended - c.started)} s`;
  for (const s of [c.failed && "Failed: " + c.failed, ...c.degraded.map((d) => "Degraded: " + d)].filter(Boolean)) $("notes").append(el("p", { class: "note" }, s));
  $("findings").append(...(c.findings || []).map((s) => el("li", {}, s)));
  $("upload").append(speeds(c, "upload")); $("download").append(speeds(c, "download")); $("cpu").append(costs(c));
  const ratio = (m) => m ? `${percent(m.median)} (${percent(m.low)} – ${percent(m.high)})` : null, seconds = (m) => m ? digits(m.median) + " s" : "unseen";
  table($("figures"), ["protocol", "", "#median", "#from", "#to", "#files/s", "#of plain", "#client CPU/GB", "#server CPU/GB"], c.lines.flatMap((line) => line.ways.map((w) =>
    ({ cells: [line.protocol, w.way, rate(w.bytes_s.median), rate(w.bytes_s.low), rate(w.bytes_s.high), digits(w.files_s), ratio(w.to_plain), seconds(w.client_cpu_s_gb), seconds(w.server_cpu_s_gb)] }))));
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  table($("targets"), ["protocol", "cipher", "server's identity", "#signing in", "#rounds", "server's process", "target"], c.lines.map((line) =>
    ({ cells: [line.protocol, line.cipher || "none", identity[line.identity] || line.identity, line.samples.length ? time(median(line.samples.map((s) => s.sign_in_s)) * 1e9) : null, line.samples.length / 2, line.server.pid || line.server.seen,
      { node: line.failed ? `${line.target}: given up: ${line.failed}` : line.target, cls: line.failed ? "wide bad" : "wide" }] })));
  const p = c.plan;
  pairs($("plan"), [["files", `${p.files} of ${bytes(p.file_size)}`], ["connections at once", p.streams], ["rounds", p.rounds], ["seed", p.seed], ["checked of downloads", p.check_one_in ? `one block in ${p.check_one_in}` : "nothing"]]);
  pairs($("client"), [["generator", c.program], ...machine(c.client)]);
  $("command").textContent = c.command.join(" ");
}
