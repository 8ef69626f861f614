// The two figures of IOzone over distance: throughput by children, a line for each round-trip time.
const rate = (v) => bytes(v) + "/s";
const COLOURS = ["var(--one)", "var(--two)", "var(--three)", "var(--warn)", "var(--bad)", "var(--ink)"];
function byChildren(s, key, label) {
  const f = frame(320, { left: 92, right: 16, top: 12, bottom: 64, label });
  const known = s.points.filter((p) => p.figures), all = s.plan.threads;
  if (!known.length) return el("p", { class: "soft" }, "No valid points.");
  const marks = ticks(Math.max(...known.flatMap((p) => [p.figures[key], p.figures.predicted])), 5, 1024), top = marks[marks.length - 1];
  const at = (n) => all.indexOf(n), x = (n) => f.left + f.w * (at(n) + 0.5) / all.length, y = (v) => f.top + f.h * (1 - v / top);
  yAxis(f, marks, y, rate);
  all.forEach((n) => text(f, x(n), f.top + f.h + 16, String(n), "middle"));
  text(f, f.left + f.w / 2, f.top + f.h + 34, "children", "middle");
  const apart = Math.min(90, f.w / s.plan.rtt_ms.length);
  s.plan.rtt_ms.forEach((rtt, n) => {
    const colour = COLOURS[n % COLOURS.length], row = known.filter((p) => p.rtt_ms === rtt), plain = row.filter((p) => p.encrypt === row[0].encrypt);
    const path = plain.map((p, k) => `${k ? "L" : "M"}${x(p.threads).toFixed(1)} ${y(p.figures.predicted).toFixed(1)}`).join("");
    f.svg.append(el("svg:path", { d: path, stroke: colour, "stroke-width": 1.5, "stroke-dasharray": "5 4", fill: "none" }));
    row.forEach((p) => f.svg.append(el("svg:circle", { cx: x(p.threads), cy: y(p.figures[key]), r: p.encrypt ? 6 : 4, fill: p.encrypt ? "none" : colour, stroke: colour, "stroke-width": 1.5 },
      el("svg:title", {}, `${digits(rtt)} ms, ${many(p.threads, "child").replace("childs", "children")}${p.encrypt ? ", encrypted" : ""}: ${rate(p.figures[key])}, model ${rate(p.figures.predicted)}`))));
    f.svg.append(el("svg:circle", { cx: f.left + 6 + n * apart, cy: f.top + f.h + 52, r: 4, fill: colour }));
    text(f, f.left + 16 + n * apart, f.top + f.h + 56, `${digits(rtt)} ms`);
  });
  return f.svg;
}
function over(s) {
  $("title").textContent = "IOzone over distance";
  $("subtitle").textContent = `${count(s.plan.rate)}bit/s, records of ${bytes(s.plan.record)} · ${when(s.started)}, ${digits(s.ended - s.started)} s`;
  $("notes").append(...s.degraded.map((what) => el("p", { class: "note" }, "Degraded: " + what)));
  const hint = "Points: measured; rings: with the link encrypted. Dashed: model.";
  for (const [key, label] of [["write_bytes_s", "Writes"], ["read_bytes_s", "Reads"]])
    $("charts").append(el("section", {}, el("h2", {}, label), el("figure", {}, el("figcaption", {}, hint), byChildren(s, key, `${label} by children and distance, measured and predicted`))));
}
