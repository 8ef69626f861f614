// The arithmetic of heat maps: how dark a count is, which rows are drawn, and quantiles.
import type { Values } from '../api/types.ts';

/** The faintest mark for "at least one": it must be seen on an empty ground. */
const FAINTEST = 0.1;

/**
 * How dark a cell is, 0 to 1. Zero is nothing; from there the scale is logarithmic and starts well
 * above nothing, so that one operation in a million stays visible beside the million.
 */
export function darkness(value: number | null | undefined, largest: number): number {
  if (!value || value <= 0) return 0;
  if (largest <= value) return 1;
  return FAINTEST + (1 - FAINTEST) * (Math.log1p(value) / Math.log1p(largest));
}

export interface Counted {
  low: number;
  high: number;
  values: Values;
}

/** The value below which `quantile` of the operations lie, at the middle of its bucket (lowest first). */
export function quantile(buckets: Counted[], at: number, q: number): number | null {
  const counts = buckets.map((bucket) => bucket.values[at] ?? 0);
  const total = counts.reduce((sum, n) => sum + n, 0);
  if (total <= 0) return null;
  let seen = 0;
  for (const [index, bucket] of buckets.entries()) {
    seen += counts[index] ?? 0;
    if (seen >= q * total - 1e-9) return (bucket.low + Math.min(bucket.high, bucket.low * 2 + 1)) / 2;
  }
  return null;
}

export interface RangeAxis {
  low: number;
  high: number;
}

/** Where a value lies between the ends of a logarithmic axis, 0 (bottom) to 1 (top). */
export function logPosition(value: number, axis: RangeAxis): number {
  const bottom = Math.log2(Math.max(1, axis.low));
  const top = Math.log2(Math.max(2, axis.high));
  return (Math.log2(Math.max(1, value)) - bottom) / Math.max(1e-9, top - bottom);
}

export function logValue(position: number, axis: RangeAxis): number {
  const bottom = Math.log2(Math.max(1, axis.low));
  const top = Math.log2(Math.max(2, axis.high));
  return 2 ** (bottom + position * (top - bottom));
}

/**
 * The rows a heat map shows: those used within the columns, without the uppermost that together
 * hold at most `crop` per cent, and with a little room so that a single row is not a wall.
 */
export function rangeAxis(buckets: Counted[], start: number, end: number, crop: number): RangeAxis {
  const used = buckets
    .map((bucket) => ({ bucket, sum: sumOf(bucket.values, start, end) }))
    .filter(({ sum }) => sum > 0);
  const total = used.reduce((sum, entry) => sum + entry.sum, 0);
  let left = (total * crop) / 100;
  while (used.length > 1) {
    const last = used[used.length - 1];
    if (last === undefined || last.sum > left || crop <= 0) break;
    left -= last.sum;
    used.pop();
  }
  const [first, last] = [used[0], used[used.length - 1]];
  if (first === undefined || last === undefined) return { low: 1, high: 1024 };
  const low = Math.max(1, first.bucket.low / 2);
  return { low, high: Math.max(low * 16, Math.min(last.bucket.high, last.bucket.low * 1.5 + 1) * 1.25) };
}

function sumOf(values: Values, start: number, end: number): number {
  let sum = 0;
  for (let at = start; at < end; at += 1) sum += values[at] ?? 0;
  return sum;
}

/** The top of a value axis with `crop` per cent of the largest values left out. */
export function cropTop(values: Values, start: number, end: number, crop: number): number {
  const known = values.slice(start, end).filter((value) => value !== null).sort((a, b) => a - b);
  if (known.length === 0) return 0;
  const keep = Math.max(0, Math.ceil(known.length * (1 - crop / 100)) - 1);
  return known[crop > 0 ? Math.min(keep, known.length - 1) : known.length - 1] ?? 0;
}
