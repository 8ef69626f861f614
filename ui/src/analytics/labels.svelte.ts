// What the keys of filters are called: a filter names a user by his uid and a file by its number,
// people want the name. Learned from lists that were on the screen, else asked for once.
import { SvelteMap } from 'svelte/reactivity';
import * as api from '../api/client.ts';
import type { Statistic } from '../api/types.ts';
import { parseRange, type Filter } from '../lib/statid.ts';
import { range } from '../lib/format.ts';
import { unitOf } from './words.ts';

/** Breakdowns whose keys are not what people call them. */
const NUMBERED = ['user', 'file'];
/** Names kept; beyond it all are forgotten and asked for again when needed. */
const LABELS_MAX = 1000;
/** Elements asked for when a name is looked up. */
const LOOKED_THROUGH = 200;

const labels = new SvelteMap<string, string>();
const asked = new Set<string>();

export function remember(name: string, value: string, label: string): void {
  if (labels.size >= LABELS_MAX) {
    labels.clear();
    asked.clear();
  }
  if (label !== '') labels.set(`${name}=${value}`, label);
}

/** Asks for the name of a filter that came with the URL. An unknown one stays a number. */
export function lookUp(base: string, { name, value }: Filter, interval: api.Interval): void {
  const id = `${name}=${value}`;
  if (!NUMBERED.includes(name) || labels.has(id) || asked.has(id)) return;
  asked.add(id);
  api.data(`${base}[${name}]`, { ...interval, top: LOOKED_THROUGH })
    .then((data) => data.rows?.forEach(({ key, label }) => remember(name, key, label)))
    .catch(() => asked.delete(id));
}

export function filterName(filter: Filter, statistic: Statistic | undefined): string {
  const bounds = parseRange(filter.value);
  const known = statistic?.breakdowns.find((one) => one.id === filter.name);
  if (bounds !== null && known?.kind !== 'discrete') {
    return range(bounds.low, bounds.high, unitOf(statistic, filter.name));
  }
  return labels.get(`${filter.name}=${filter.value}`) ?? filter.value;
}
