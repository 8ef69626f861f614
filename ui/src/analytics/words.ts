// How elements, filters and breakdowns are called on the screen.
import type { BreakdownInfo, Statistic } from '../api/types.ts';
import { range } from '../lib/format.ts';
import type { Element } from '../lib/series.ts';

export const unitOf = (statistic: Statistic | undefined, breakdown: string | null): string =>
  statistic?.breakdowns.find((one) => one.id === breakdown)?.unit ?? (breakdown === 'latency' ? 'ns' : 'bytes');

export function elementName(element: Element, unit: string, kind: string): string {
  if (kind === 'range') return range(element.low, element.high, unit);
  return element.label || element.key || '(no name)';
}

/** The sentence of a statistic; the schema may give it without its subject ("operations"). */
export const sentence = (entry: Statistic): string =>
  /^[a-z]/.test(entry.sentence) ? `${entry.group_name} ${entry.sentence}` : entry.sentence.replace(/^Protocol: /, '');

/** "by client", from the sentence of the schema or the id when there is none. */
export function by(breakdown: BreakdownInfo): string {
  const words = breakdown.sentence.replace(/^.*broken down by /i, '').replace(/^by /i, '').trim();
  return `by ${words === '' || words.length > 40 ? breakdown.id : words}`;
}
