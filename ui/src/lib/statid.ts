// Statistic ids: `group.metric[filter=value]…[breakdown]`, for example
// `nfs3.ops[op=read][client=10.0.0.7][latency]`. In a value, `]`, `\` and `=` are escaped by `\`.

export interface Filter {
  readonly name: string;
  readonly value: string;
}

export interface StatId {
  /** `group.metric`, as in the catalogue. */
  readonly base: string;
  readonly filters: readonly Filter[];
  readonly breakdown: string | null;
}

const BASE = /^[a-z0-9_]+(\.[a-z0-9_]+)+/i;
const NAME = /^[a-z0-9_]+$/i;

const escape = (value: string): string => value.replace(/[\]\\=]/g, '\\$&');

/** Reads one `[…]` at `start`; the position after it, its name and its value. */
function bracket(text: string, start: number): { end: number; name: string; value: string | null } | null {
  let name = '';
  let value: string | null = null;
  for (let at = start + 1; at < text.length; at += 1) {
    let char = text[at] as string;
    if (char === ']') return NAME.test(name) ? { end: at + 1, name, value } : null;
    if (char === '=' && value === null) {
      value = '';
      continue;
    }
    if (char === '\\') {
      at += 1;
      if (at >= text.length) return null;
      char = text[at] as string;
    }
    if (value === null) name += char;
    else value += char;
  }
  return null;
}

/** Parses the id at the beginning of `text`; what follows it is `rest`. `null` if there is none. */
export function parsePrefix(text: string): { id: StatId; rest: string } | null {
  const base = BASE.exec(text)?.[0];
  if (base === undefined) return null;
  const filters: Filter[] = [];
  let breakdown: string | null = null;
  let at = base.length;
  while (text[at] === '[' && breakdown === null) {
    const part = bracket(text, at);
    if (part === null) return null;
    if (part.value === null) breakdown = part.name;
    else filters.push({ name: part.name, value: part.value });
    at = part.end;
  }
  return { id: { base, filters, breakdown }, rest: text.slice(at) };
}

/** Parses a whole id. `null` if it is not one. */
export function parse(text: string): StatId | null {
  const found = parsePrefix(text);
  return found !== null && found.rest === '' ? found.id : null;
}

export function format(id: StatId): string {
  const filters = id.filters.map((filter) => `[${filter.name}=${escape(filter.value)}]`).join('');
  return `${id.base}${filters}${id.breakdown === null ? '' : `[${id.breakdown}]`}`;
}

/** The same for all ids that ask the same: filters may stand in any order. */
export function canonical(text: string): string {
  const id = parse(text);
  if (id === null) return text;
  const filters = [...id.filters].sort((a, b) => (a.name < b.name ? -1 : 1));
  return format({ ...id, filters });
}

/** Narrows to one element of the breakdown and breaks that down further (or not at all). */
export function drill(id: StatId, value: string, next: string | null): StatId {
  if (id.breakdown === null) return { ...id, breakdown: next };
  const filters = id.filters.filter((filter) => filter.name !== id.breakdown);
  return { base: id.base, filters: [...filters, { name: id.breakdown, value }], breakdown: next };
}

/** Takes one filter away again. */
export function without(id: StatId, name: string): StatId {
  return { ...id, filters: id.filters.filter((filter) => filter.name !== name) };
}

/** A value of a range breakdown, `LOW-HIGH`; `null` if it is not one. */
export function parseRange(value: string): { low: number; high: number } | null {
  const match = /^(\d+)-(\d+)$/.exec(value);
  if (match === null) return null;
  return { low: Number(match[1]), high: Number(match[2]) };
}

/** The end of the topmost bucket, which a double cannot hold exactly (it rounds up to 2^64). */
const U64_MAX = 2n ** 64n - 1n;

/** Whole numbers without exponent: the top bucket reaches beyond 2^53. */
function whole(value: number): string {
  const found = BigInt(Math.round(value));
  return (found > U64_MAX ? U64_MAX : found).toString();
}

export const formatRange = (low: number, high: number): string => `${whole(low)}-${whole(high)}`;
