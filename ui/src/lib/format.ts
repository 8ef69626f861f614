// Numbers as people read them: units always, bytes in powers of two, rates per second, and the
// viewer's own time zone. Three significant digits, because a fourth is noise on a live graph.

const EMPTY = '–';

function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toString();
  if (size >= 10) return value.toFixed(1).replace(/\.0$/, '');
  if (size >= 1) return value.toFixed(2).replace(/\.?0+$/, '');
  return value.toPrecision(2).replace(/\.?0+$/, '');
}

function scaled(value: number, base: number, names: readonly string[]): string {
  let at = 0;
  let size = value;
  // 999.5 would print as "1000" of the smaller unit.
  while (Math.abs(size) >= (base === 1024 ? 1023.5 : 999.5) && at < names.length - 1) {
    size /= base;
    at += 1;
  }
  return `${digits(size)}${names[at] === '' ? '' : ` ${names[at]}`}`;
}

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
const COUNT = ['', 'k', 'M', 'G', 'T'];

export const bytes = (value: number): string => scaled(value, 1024, BYTES);

/** Plain counts: exact below 10 000, then three digits and a letter. */
export function count(value: number): string {
  return Math.abs(value) < 10_000 ? digits(value) : scaled(value, 1000, COUNT);
}

const NS: readonly [number, string][] = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
];

/** A latency given in nanoseconds. */
export function nanoseconds(value: number): string {
  for (const [size, name] of NS) {
    if (Math.abs(value) >= size) return `${digits(value / size)} ${name}`;
  }
  return `${digits(value)} ns`;
}

/** How long something has run, the two largest units. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const units: [number, string][] = [[86_400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const at = units.findIndex(([size]) => s >= size);
  if (at < 0) return '0 s';
  const [size, name] = units[at] as [number, string];
  const whole = `${Math.floor(s / size)} ${name}`;
  const next = units[at + 1];
  const rest = next === undefined ? 0 : Math.floor((s % size) / next[0]);
  return next === undefined || rest === 0 ? whole : `${whole} ${rest} ${next[1]}`;
}

/** Writes values of one unit; `unit` is the catalogue's word. */
export function value(amount: number | null | undefined, unit: string): string {
  if (amount === null || amount === undefined || Number.isNaN(amount)) return EMPTY;
  const u = unit.trim();
  if (u === 'bytes/s' || u === 'B/s') return `${bytes(amount)}/s`;
  if (u === 'bytes' || u === 'B') return bytes(amount);
  if (u === 'KiB/s' || u === 'kilobytes/s' || u === 'KB/s') return `${bytes(amount * 1024)}/s`;
  if (u === 'KiB' || u === 'kilobytes') return bytes(amount * 1024);
  if (u === 'ns' || u === 'nanoseconds') return nanoseconds(amount);
  if (u === 'ns/s') return `${nanoseconds(amount)}/s`;
  if (u === '%' || u === 'percent') return `${digits(amount)} %`;
  return u === '' ? count(amount) : `${count(amount)} ${u}`;
}

/** The same without the words of a rate, for the narrow columns of a list under a titled unit. */
export function short(amount: number | null | undefined, unit: string): string {
  if (amount === null || amount === undefined) return EMPTY;
  // Things that are counted have only a word for a unit; sizes and times cannot do without theirs.
  const sized = /^(bytes|B|KiB|KB|kilobytes|ns|nanoseconds|%|percent)(\/s)?$/.test(unit);
  return sized ? value(amount, unit).replace(/\/s$/, '') : count(amount);
}

/** A share from 0 to 1. */
export const percent = (share: number): string => `${digits(100 * share)} %`;

/** A bound of a range breakdown: latency in nanoseconds, all else in bytes. */
export function bound(amount: number, unit: string): string {
  return unit === 'ns' || unit === 'nanoseconds' ? nanoseconds(amount) : bytes(amount);
}

/** "1–1.25 ms" where both ends share the unit, "896 µs–1.02 ms" where not. */
export function range(low: number, high: number, unit: string): string {
  if (high >= 2 ** 63) return `${bound(low, unit)} and more`;
  const [a, b] = [bound(low, unit), bound(high, unit)];
  const [, unitA] = a.split(' ');
  const [, unitB] = b.split(' ');
  return unitA === unitB ? `${a.split(' ')[0]}–${b}` : `${a}–${b}`;
}

const two = (n: number): string => String(n).padStart(2, '0');

export function clock(seconds: number): string {
  const d = new Date(seconds * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function day(seconds: number): string {
  const d = new Date(seconds * 1000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

/** The viewer's zone, as in "UTC+02:00". */
export function zone(at = Date.now()): string {
  const minutes = -new Date(at).getTimezoneOffset();
  if (minutes === 0) return 'UTC';
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? '−' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Phrases as sentences: a capital, a full stop. */
export const sentences = (...phrases: string[]): string =>
  phrases.filter((phrase) => phrase !== '').map((phrase) => capital(/[.!?]$/.test(phrase) ? phrase : `${phrase}.`)).join(' ');
