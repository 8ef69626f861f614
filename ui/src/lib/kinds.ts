// Values by their kind: read from what somebody typed, written as people read them, checked as far
// as that needs no server. The server checks again; its word counts.
import type { Kind, Property, Value } from '../api/tree.ts';
import { bytes, clock, day } from './format.ts';

/** Either a value, or one sentence that says what is wrong. */
export type Read = { value: Value; wrong?: undefined } | { wrong: string; value?: undefined };

const POWERS: [string, number][] = [['EiB', 2 ** 60], ['PiB', 2 ** 50], ['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]];
const TIMES: [string, number][] = [['d', 86_400], ['h', 3600], ['min', 60], ['s', 1]];

/** In the largest unit that is exact: what is shown can be typed again. */
export function exactBytes(n: number): string {
  const found = POWERS.find(([, size]) => n >= size && n % size === 0);
  return found === undefined ? `${n} B` : `${n / found[1]} ${found[0]}`;
}

export function exactSeconds(n: number): string {
  const parts: string[] = [];
  let rest = n;
  for (const [unit, size] of TIMES) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)} ${unit}`);
    rest %= size;
  }
  return parts.length === 0 ? '0 s' : parts.join(' ');
}

function readBytes(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*(?:([kmgtpe])(?:i?b)?|b|bytes?)?$/i.exec(text.trim());
  if (match === null) return null;
  const size = POWERS.find(([name]) => name[0] === match[2]?.toUpperCase())?.[1] ?? 1;
  const n = Number(match[1]) * size;
  return Number.isInteger(n) ? n : null;
}

const UNITS: Record<string, number> = { s: 1, sec: 1, second: 1, seconds: 1, m: 60, min: 60, minute: 60, minutes: 60,
  h: 3600, hour: 3600, hours: 3600, d: 86_400, day: 86_400, days: 86_400 };

function readSeconds(text: string): number | null {
  const plain = text.trim().toLowerCase();
  if (/^\d+$/.test(plain)) return Number(plain);
  const parts = [...plain.matchAll(/(\d+)\s*([a-z]+)\s*/g)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== plain) return null;
  let sum = 0;
  for (const [, n, unit] of parts) {
    const size = UNITS[unit as string];
    if (size === undefined) return null;
    sum += Number(n) * size;
  }
  return sum;
}

function within(n: number | null, kind: Kind, what: string, show: (n: number) => string): Read {
  if (n === null || !Number.isFinite(n)) return { wrong: what };
  if (kind.min !== null && kind.min !== undefined && n < kind.min) return { wrong: `${show(n)} is too small; the minimum is ${show(kind.min)}.` };
  if (kind.max !== null && kind.max !== undefined && n > kind.max) return { wrong: `${show(n)} is too large; the maximum is ${show(kind.max)}.` };
  return { value: n };
}

/** Reads what was typed into a field. Lists and switches have controls of their own. */
export function read(kind: Kind, text: string): Read {
  switch (kind.type) {
    case 'integer':
      return within(/^\s*-?\d+\s*$/.test(text) ? Number(text) : null, kind, 'Enter a whole number.', String);
    case 'bytes':
      return within(readBytes(text), kind, 'Enter a number of bytes, such as 64 MiB.', exactBytes);
    case 'seconds':
      return within(readSeconds(text), kind, 'Enter a duration, such as 90 s or 5 min.', exactSeconds);
    case 'text': {
      const length = new TextEncoder().encode(text).length;
      const most = kind.max_length ?? kind.max;
      return most !== null && most !== undefined && length > most ? { wrong: `It has ${length} bytes; the maximum is ${most}.` } : { value: text };
    }
    default:
      return { value: text };
  }
}

/** How many entries a list may have. */
export const mostOf = (kind: Kind): number => kind.max_length ?? kind.max ?? Infinity;

/** What is wrong with a whole value, or null. */
export function wrongWith(kind: Kind, value: Value): string | null {
  if (kind.type === 'list' && Array.isArray(value)) {
    const most = mostOf(kind);
    if (value.length > most) return `It has ${value.length} entries; the maximum is ${most}.`;
    const twice = value.findIndex((one, at) => value.indexOf(one) !== at);
    if (twice >= 0) return `${String(value[twice])} appears twice.`;
    if (value.some((one) => one === '')) return 'An entry is empty: fill it in, or remove it.';
    for (const one of value) {
      const wrong = kind.of ? wrongWith(kind.of, one) : null;
      if (wrong !== null) return wrong;
    }
    return null;
  }
  if (typeof value === 'number' && kind.type !== 'time') return read({ ...kind, type: kind.type }, asText(kind, value)).wrong ?? null;
  return typeof value === 'string' ? (read(kind, value).wrong ?? null) : null;
}

/** A value as it is typed into a field. */
export function asText(kind: Kind, value: Value): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' && kind.type === 'bytes') return exactBytes(value);
  if (typeof value === 'number' && kind.type === 'seconds') return exactSeconds(value);
  return String(value);
}

/** Characters of a size that is told exactly; longer ones are rounded. */
const EXACT_MOST = 7;
/** Of a text of several lines, so much tells which one it is. */
const LINE_MOST = 60;

/** A value as it is read in a table or a sentence. */
export function show(kind: Kind | undefined, value: Value): string {
  if (value === null || value === undefined || value === '') return '–';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map((one) => show(kind?.of ?? undefined, one)).join(', ');
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  // Parameters of an action, in the audit log.
  if (typeof value === 'object') return Object.entries(value).map(([name, one]) => `${name}: ${show(undefined, one as Value)}`).join(', ') || '–';
  if (kind?.type === 'time' && typeof value === 'number') return value === 0 ? 'never' : `${day(value)} ${clock(value)}`;
  // Where the exact figure would be a long one, nobody can read it.
  if (kind?.type === 'bytes' && typeof value === 'number') return exactBytes(value).length > EXACT_MOST ? bytes(value) : exactBytes(value);
  const text = kind === undefined ? String(value) : asText(kind, value);
  const lines = text.trimEnd().split('\n');
  return lines.length > 2 ? `${lines[0]?.slice(0, LINE_MOST)} … ${lines.length} lines` : text;
}

/** With its unit, if it has one that is not in the text already. */
export function showWithUnit(property: Property | undefined, value: Value | undefined): string {
  if (property?.kind.type === 'time' && property.absent && (value === 0 || value === null || value === undefined)) return property.absent;
  // A setting is on or off; what is told of a thing is so or not.
  const told = property?.role === 'state' && typeof value === 'boolean';
  const text = told ? (value ? 'yes' : 'no') : show(property?.kind, value ?? null);
  const unit = property?.unit ?? '';
  const bare = typeof value === 'number' && property?.kind.type === 'integer' && unit !== '';
  return bare ? `${text} ${unit}` : text;
}

/** What is allowed, for the line below a field; empty if there is nothing to say. */
export function allowed(kind: Kind): string {
  const say = kind.type === 'bytes' ? exactBytes : kind.type === 'seconds' ? exactSeconds : String;
  const { min, max } = kind;
  if (!['integer', 'bytes', 'seconds'].includes(kind.type) || min === null || min === undefined) return '';
  // The ends of the type itself are no limit that anybody has to know.
  if (max === null || max === undefined || max >= Number.MAX_SAFE_INTEGER) return min > 0 ? `At least ${say(min)}.` : '';
  return `From ${say(min)} to ${say(max)}.`;
}

/** Whether a text needs several lines. */
export const isLong = (kind: Kind): boolean => kind.type === 'text' && /pem|key|certificate|multi|^lines$/i.test(kind.shape ?? '');

/** What stands in a control before anything was chosen. */
export function empty(kind: Kind): Value {
  if (kind.type === 'bool') return false;
  if (kind.type === 'list') return [];
  if (kind.type === 'choice') return kind.choices?.[0]?.value ?? '';
  return '';
}

export const same = (a: Value, b: Value): boolean => JSON.stringify(a) === JSON.stringify(b);

const two = (n: number): string => String(n).padStart(2, '0');

/** A point in time as a control of the browser has it: in the viewer's zone. */
export function localTime(value: Value): string {
  if (typeof value !== 'number') return '';
  const d = new Date(value * 1000);
  return `${day(value)}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** Seconds since the epoch of what such a control says. */
export function readLocalTime(text: string): number | null {
  const ms = new Date(text).getTime();
  return text === '' || Number.isNaN(ms) ? null : Math.floor(ms / 1000);
}

/** One side of a change: of a property its value or that it is not set, of a node whether it is there. */
export function side(property: Property | undefined, named: boolean, value: Value | undefined): string {
  if (!named) return value === true ? 'there' : showWithUnit(property, value);
  if (value === null || value === undefined) return property?.role === 'secret' ? 'not set' : 'default';
  return showWithUnit(property, value);
}
