// Believable statistics without a server: eight clients, three shares, a daily rhythm and rare slow
// operations. Every value is a function of the statistic and the second, so repeated questions
// agree and tests are deterministic.

const hash = (text) => {
  let h = 2166136261;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  h = Math.imul(h ^ (h >>> 15), 2246822507);
  h = Math.imul(h ^ (h >>> 13), 3266489909);
  return ((h ^ (h >>> 16)) >>> 0) / 4294967296;
};

const CLIENTS = ['10.0.0.11', '10.0.0.12', '10.0.0.13', '10.0.0.14', '10.0.0.21', '10.0.0.22', '10.0.1.7', 'fd00::1:5'];
const FILES = ['projects/render/shot-042/beauty.exr', 'projects/render/shot-042/depth.exr', 'home/ines/sim/run7.h5',
  'home/ines/sim/run8.h5', 'projects/build/obj/libcore.a', 'projects/build/obj/main.o', 'scratch/a=b].tmp',
  'home/tomas/.cache/index.db', 'projects/video/cut-3.mov', 'projects/video/cut-4.mov', 'scratch/sort.0001', 'scratch/sort.0002'];

/** Elements of each discrete breakdown with their share of the whole. */
const DISCRETE = {
  protocol: { nfs3: 60, nfs4: 30, smb: 10 },
  op: { getattr: 30, lookup: 12, access: 10, read: 26, write: 13, commit: 1.2, readdirplus: 2, create: 1, remove: 0.8, setattr: 1 },
  client: Object.fromEntries(CLIENTS.map((name, at) => [name, 40 / (at + 1.4)])),
  user: { 'ines': 42, 'tomas': 25, 'render': 20, 'build': 11, 'root': 2 },
  share: { projects: 60, home: 30, scratch: 10 },
  file: Object.fromEntries(FILES.map((name, at) => [name, 30 / (at + 1)])),
  status: { NFS3_OK: 97, NFS3ERR_NOENT: 2.6, NFS3ERR_ACCES: 0.3, NFS3ERR_STALE: 0.1 },
  mode: { user: 24, kernel: 61, iowait: 9, irq: 6 },
  cpu: { 'cpu0': 58, 'cpu1': 42 },
  device: { 'eth0': 95, 'lo': 5 },
  direction: { in: 30, out: 70 },
  disk: { 'nvme0n1': 80, 'sda': 20 },
  context: { 'sender': 40, 'ack': 55, 'small-queue': 5 },
  why: { 'network': 60, 'receiver': 30, 'send-buffer': 10 },
};
const UNITS = { latency: 'ns', size: 'bytes', offset: 'bytes' };
const SENTENCES = { protocol: 'protocol', op: 'type of operation', client: 'client', user: 'user', share: 'share', file: 'file', status: 'result',
  mode: 'CPU mode', cpu: 'CPU', device: 'device', direction: 'direction', disk: 'disk', latency: 'latency', size: 'size', offset: 'offset',
  context: 'context', why: 'what limits them' };

const b = (id) => ({ id, sentence: `broken down by ${SENTENCES[id]}`, kind: UNITS[id] ? 'range' : 'discrete', unit: UNITS[id] ?? null });
const GROUPS = { all: 'Total', nfs: 'NFS', nfs3: 'NFSv3', nfs4: 'NFSv4', mount3: 'MOUNT', cpu: 'CPU', nic: 'Network', io: 'Disk I/O',
  tcp: 'TCP', mem: 'Memory', process: 'Server process', server: 'Server', analytics: 'Analytics' };
const stat = (id, group, sentence, unit, kind, level, breakdowns) => ({
  id, group, group_name: GROUPS[group] ?? group, metric: id.split('.')[1], sentence, unit, kind, breakdowns: breakdowns.map(b), level,
});
const NFS = ['op', 'client', 'user', 'share', 'file', 'latency', 'size', 'offset', 'status'];
const STATS = [
  stat('all.ops', 'all', 'Total operations per second', 'ops/s', 'counter', 14000, ['protocol', ...NFS]),
  stat('all.bytes', 'all', 'Total bytes per second', 'bytes/s', 'counter', 310e6, ['protocol', ...NFS]),
  stat('nfs.ops', 'nfs', 'NFS operations per second', 'ops/s', 'counter', 14000, NFS),
  stat('nfs.bytes', 'nfs', 'NFS bytes per second', 'bytes/s', 'counter', 310e6, NFS),
  stat('nfs3.ops', 'nfs3', 'NFSv3 operations per second', 'ops/s', 'counter', 14000, NFS),
  stat('nfs3.bytes', 'nfs3', 'NFSv3 bytes per second', 'bytes/s', 'counter', 310e6, NFS),
  stat('cpu.utilization', 'cpu', 'CPU utilization', '%', 'gauge', 54, ['mode', 'cpu']),
  stat('nic.kilobytes', 'nic', 'Network interface kilobytes per second', 'KiB/s', 'counter', 320000, ['device', 'direction']),
  stat('tcp.segments', 'tcp', 'TCP segments handed to adapters per second', 'segments/s', 'counter', 21000, ['size', 'context', 'device']),
  stat('tcp.segment_bytes', 'tcp', 'TCP bytes of payload handed to adapters per second', 'bytes/s', 'counter', 310e6, ['context', 'device']),
  stat('tcp.retransmits', 'tcp', 'TCP segments retransmitted per second', 'segments/s', 'counter', 3, ['client']),
  stat('tcp.limited', 'tcp', 'TCP connections with data to send', 'connections', 'gauge', 12, ['why', 'client']),
  stat('io.ops', 'io', 'Disk operations per second', 'ops/s', 'counter', 900, ['disk', 'op']),
  stat('io.bytes', 'io', 'Disk bytes per second', 'bytes/s', 'counter', 90e6, ['disk', 'op']),
  stat('mem.used', 'mem', 'Memory in use', 'bytes', 'gauge', 5.5e9, []),
  stat('server.connections', 'server', 'Connections', '', 'gauge', 9, []),
  stat('server.requests', 'server', 'Requests in flight', '', 'gauge', 34, []),
  stat('server.bytes', 'server', 'Bytes held by requests in flight', 'bytes', 'gauge', 3.1e6, []),
  stat('analytics.dropped', 'analytics', 'Operations not aggregated', 'ops/s', 'counter', 0, []),
];

export const catalogue = () => STATS.map(({ level: _, ...entry }) => entry);

/** The same grammar as src/lib/statid.ts, kept apart so that a mistake there shows. */
export function parseStat(text) {
  const base = /^[a-z0-9]+\.[a-z0-9_]+/.exec(text)?.[0];
  if (!base) return null;
  const parts = [...text.slice(base.length).matchAll(/\[((?:\\.|[^\]\\])*)\]/g)];
  if (parts.map((part) => part[0]).join('') !== text.slice(base.length)) return null;
  const plain = (part) => part.replace(/\\(.)/g, '$1');
  const found = { base, filters: [], breakdown: null };
  for (const [, inner] of parts) {
    const at = inner.indexOf('=');
    if (at < 0) found.breakdown = inner;
    else found.filters.push([inner.slice(0, at), plain(inner.slice(at + 1))]);
  }
  const entry = STATS.find(({ id }) => id === base);
  const known = new Set(entry?.breakdowns.map(({ id }) => id));
  const all = [...found.filters.map(([name]) => name), ...(found.breakdown ? [found.breakdown] : [])];
  return entry && all.every((name) => known.has(name)) ? { ...found, entry } : null;
}

const wave = (t, seed) =>
  0.75 + 0.2 * Math.sin((t + seed * 700) / (17 + seed * 40)) + 0.15 * Math.sin(t / (5 + seed * 9)) + 0.12 * (hash(`${seed}${t}`) - 0.5);

function shares(name, t, salt) {
  const weights = Object.entries(DISCRETE[name]).map(([key, w]) => [key, w * Math.max(0.05, wave(t, hash(key + salt)))]);
  const sum = weights.reduce((total, [, w]) => total + w, 0);
  return weights.map(([key, w]) => [key, w / sum]);
}

/** Log-linear buckets, four to each power of two, as the server's. */
function bucketOf(value) {
  const v = Math.max(4, Math.floor(value));
  const power = Math.floor(Math.log2(v));
  const step = Math.floor((v / 2 ** power - 1) * 4);
  return { low: (4 + step) * 2 ** (power - 2), high: (5 + step) * 2 ** (power - 2) };
}

const HUMPS = {
  latency: [[9_000, 0.35, 0.72], [70_000, 0.5, 0.2], [900_000, 0.6, 0.079], [9_000_000, 0.5, 0.001]],
  size: [[130, 0.01, 0.3], [4_096, 0.01, 0.4], [131_072, 0.01, 0.3]],
  offset: [[1 << 16, 2, 0.5], [1 << 28, 1.6, 0.5]],
};

/** Where a hump lies in each bucket of four widths around its middle, as [low, high, share]. */
function spread(middle, sigma) {
  const found = new Map();
  for (let x = -3.5; x <= 3.5; x += 0.125) {
    const { low, high } = bucketOf(middle * Math.exp(x * sigma));
    found.set(low, [high, (found.get(low)?.[1] ?? 0) + Math.exp((-x * x) / 2)]);
  }
  const sum = [...found.values()].reduce((total, [, w]) => total + w, 0);
  return [...found].map(([low, [high, w]]) => [low, high, w / sum]);
}
const SPREADS = Object.fromEntries(Object.entries(HUMPS).map(([name, humps]) =>
  [name, humps.map(([middle, sigma, part]) => [part, spread(middle, sigma)])]));

/** Counts by bucket in one second. */
function ranges(name, total, t, salt) {
  const counts = new Map();
  SPREADS[name].forEach(([part, cells], hump) => {
    const strength = part * Math.max(0, wave(t, hump / 5 + hash(salt) / 3));
    for (const [low, high, w] of cells) {
      const n = total * strength * w;
      const whole = Math.floor(n) + (hash(`${salt}${low}${t}`) < n % 1 ? 1 : 0);
      if (whole > 0) counts.set(low, { low, high, n: (counts.get(low)?.n ?? 0) + whole });
    }
  });
  if (name === 'latency' && total > 100 && hash(`slow${t}`) < 0.08) {
    const slow = bucketOf(4e7 + hash(`s${t}`) * 3e8);
    counts.set(slow.low, { ...slow, n: 1 });
  }
  return [...counts.values()].sort((x, y) => x.low - y.low);
}

function fraction(filters, t, salt) {
  return filters.reduce((product, [name, value]) => {
    if (UNITS[name]) {
      const [low, high] = value.split('-').map(Number);
      const all = ranges(name, 1e5, t, salt.split(',')[0]);
      const sum = all.reduce((s, { n }) => s + n, 0) || 1;
      return product * (all.filter((r) => r.low < high && r.high > low).reduce((s, { n }) => s + n, 0) / sum);
    }
    return product * (shares(name, t, '').find(([key]) => key === value)?.[1] ?? 0);
  }, 1);
}

/** One second: {total, cells: Map key → {label?, low?, high?, n}}, or null for a planned gap. */
function secondOf({ base, filters, breakdown, entry }, t) {
  const salt = base.split('.')[0] + filters.map(([name, value]) => (name === 'latency' ? '' : value)).join();
  let total = entry.level * Math.max(0, wave(t, hash(base))) * fraction(filters, t, salt);
  const cells = new Map();
  if (breakdown && UNITS[breakdown]) {
    total = 0;
    for (const { low, high, n } of ranges(breakdown, entry.level * wave(t, hash(base)) * fraction(filters, t, salt), t, salt)) {
      cells.set(low, { low, high, n });
      total += n;
    }
  } else if (breakdown) {
    const exact = base === 'cpu.utilization' || entry.kind === 'gauge';
    let sum = 0;
    for (const [key, part] of shares(breakdown, t, '')) {
      const n = exact ? total * part : Math.round(total * part);
      if (n > 0) cells.set(key, { n });
      sum += n;
    }
    total = sum;
  } else total = Math.round(total);
  return { total, cells };
}

const labelOf = (breakdown, key) => (breakdown === 'file' ? `/export/${key}` : key);

function title(query) {
  const words = query.filters.map(([name, value]) =>
    name === 'op' ? `of type ${value}` : `for ${SENTENCES[name]} ${labelOf(name, value)}`);
  if (query.breakdown) words.push(`broken down by ${SENTENCES[query.breakdown]}`);
  return [query.entry.sentence, ...words].join(' ');
}

/** A data object of docs/protocols/api.md. `gaps` are times without data. */
export function dataOf(text, query, from, to, step, top = 20, gaps = () => false) {
  const times = [];
  for (let t = Math.ceil(from / step) * step; t < to; t += step) times.push(t);
  const total = [];
  const cells = new Map();
  times.forEach((t, at) => {
    if (gaps(t)) return total.push(null);
    const second = secondOf(query, t);
    total.push(second.total);
    for (const [key, cell] of second.cells) {
      if (!cells.has(key)) cells.set(key, { ...cell, values: times.map((time) => (gaps(time) ? null : 0)) });
      cells.get(key).values[at] = cell.n;
    }
  });
  const known = total.filter((value) => value !== null).length || 1;
  const average = (values) => values.reduce((sum, value) => sum + (value ?? 0), 0) / known;
  const answer = { stat: text, title: title(query), unit: query.entry.unit, from, to, step, times, total, other: null,
    dropped: times.map((t) => (t % 97 === 0 ? 12 : 0)), source: query.filters.length > 1 ? 'recorder' : 'store',
    exact: query.breakdown !== 'file', error_bound: query.breakdown === 'file' ? 3 : 0, note: null };
  if (query.breakdown && UNITS[query.breakdown]) {
    answer.buckets = [...cells.values()].sort((x, y) => x.low - y.low)
      .map(({ low, high, values }) => ({ low, high, average: average(values), values }));
    return answer;
  }
  const rows = [...cells].map(([key, { values }]) => ({ key, label: labelOf(query.breakdown, key), average: average(values), values }))
    .sort((x, y) => y.average - x.average);
  answer.rows = rows.slice(0, top);
  const rest = rows.slice(top);
  if (rest.length > 0) {
    const values = times.map((_, at) => rest.reduce((sum, row) => sum + (row.values[at] ?? 0), 0));
    answer.other = { average: average(values), values };
  }
  return answer;
}
