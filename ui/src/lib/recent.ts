// The figures of the status page out of the series behind them.
import type { Values } from '../api/types.ts';
import { quantile } from './heat.ts';
import { mean, type Series } from './series.ts';
import { ranges } from './ranges.ts';

/** The last `span` columns up to `now`, `null` where nothing is known. */
export function recent(series: Series | undefined, values: Values | undefined, now: number, span: number): Values {
  const found: Values = new Array<number | null>(span).fill(null);
  if (series === undefined || values === undefined) return found;
  series.times.forEach((time, at) => {
    const place = Math.round(time - (now - span));
    if (place >= 0 && place < span) found[place] = values[at] ?? null;
  });
  return found;
}

/** What is older than this is not "now" (seconds): a figure of a server that has gone is no figure. */
const NOW = 8;

/** What is shown as "now": the mean of the newest three known seconds, so that figures can be read. */
export function level(values: Values): number | null {
  const known = values.slice(-NOW).filter((value) => value !== null).slice(-3);
  return known.length === 0 ? null : mean(known, 0, known.length);
}

/** A quantile of the operations of the last `span` seconds. */
export function latency(series: Series | undefined, now: number, span: number, q: number): number | null {
  if (series === undefined) return null;
  const [start, end] = series.bounds(now - span, now);
  const sums = ranges(series).map(({ low, high, values }) => ({
    low,
    high,
    values: [values.slice(start, end).reduce<number>((sum, value) => sum + (value ?? 0), 0)],
  }));
  return quantile(sums, 0, q);
}
