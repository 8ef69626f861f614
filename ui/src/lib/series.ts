// What a panel knows of its statistic: the columns of one resolution, as fetched and as streamed.
// Seconds that never came stay away, so that they can be drawn as gaps and never interpolated.
import type { Data, Values } from '../api/types.ts';

/** Seconds kept at full resolution; the view that moves is at most POINTS_MAX of them. */
const COLUMNS_MAX = 1500;
/** Elements kept at a time. The server sends its top ones; over an hour others come and go. */
const ELEMENTS_MAX = 256;

export interface Element {
  readonly key: string;
  readonly label: string;
  /** For a range breakdown, its bounds. */
  readonly low: number;
  readonly high: number;
  values: Values;
  /** For a phase, the mean time of an operation in it, in nanoseconds. */
  times?: Values;
}

/** What a phase has of the latency: nanoseconds for each operation, and a share from 0 to 1. */
export interface PhaseTime {
  readonly average: number;
  readonly share: number;
}

export interface Summary {
  readonly element: Element;
  readonly average: number;
  readonly time?: PhaseTime;
}

export class Series {
  title = '';
  unit = '';
  step = 1;
  kind: 'total' | 'discrete' | 'range' = 'total';
  source: 'store' | 'recorder' = 'store';
  exact = true;
  errorBound = 0;
  note: string | null = null;
  times: number[] = [];
  total: Values = [];
  other: Values = [];
  dropped: number[] = [];
  elements = new Map<string, Element>();

  /** Takes a whole answer; everything known before is forgotten. */
  replace(data: Data): void {
    this.times = [];
    this.total = [];
    this.other = [];
    this.dropped = [];
    this.elements = new Map();
    this.step = data.step;
    this.source = 'store';
    this.exact = true;
    this.errorBound = 0;
    this.note = null;
    this.merge(data);
  }

  /** Adds the columns of `data` where they belong; the newer answer wins. */
  merge(data: Data): void {
    this.#describe(data);
    data.times.forEach((time, from) => {
      const at = this.#column(time);
      this.total[at] = data.total[from] ?? null;
      this.dropped[at] = data.dropped[from] ?? 0;
      this.other[at] = data.other?.values[from] ?? null;
      for (const element of this.elements.values()) {
        element.values[at] = this.total[at] === null ? null : 0;
      }
      for (const row of data.rows ?? []) {
        this.#set(row.key, row.label, 0, 0, at, row.values[from]);
        if (row.time) this.#time(row.key, at, row.time.values_ns[from]);
      }
      for (const { low, high, values } of data.buckets ?? []) {
        this.#set(`${low}-${high}`, '', low, high, at, values[from]);
      }
    });
    this.#trim();
  }

  #describe(data: Data): void {
    this.title = data.title;
    this.unit = data.unit;
    // The least sure part speaks for the whole: history may be from the recorder, new seconds are not.
    if (data.source === 'recorder') this.source = 'recorder';
    this.exact &&= data.exact;
    this.errorBound = Math.max(this.errorBound, data.error_bound);
    this.note = data.note ?? this.note;
    if (data.buckets) this.kind = 'range';
    else if (/\[[a-z0-9_]+\]$/i.test(data.stat)) this.kind = 'discrete';
    else this.kind = 'total';
  }

  /** The index of the column of `time`, made if it is not there yet. */
  #column(time: number): number {
    let at = this.times.length;
    while (at > 0 && (this.times[at - 1] as number) >= time) at -= 1;
    if (this.times[at] === time) return at;
    this.times.splice(at, 0, time);
    this.total.splice(at, 0, null);
    this.dropped.splice(at, 0, 0);
    this.other.splice(at, 0, null);
    for (const element of this.elements.values()) {
      element.values.splice(at, 0, null);
      element.times?.splice(at, 0, null);
    }
    return at;
  }

  #set(key: string, label: string, low: number, high: number, at: number, value?: number | null): void {
    let element = this.elements.get(key);
    if (element === undefined) {
      const values: Values = this.total.map((total) => (total === null ? null : 0));
      element = { key, label, low, high, values };
      this.elements.set(key, element);
    }
    element.values[at] = value ?? null;
  }

  #time(key: string, at: number, value?: number | null): void {
    const element = this.elements.get(key);
    if (element === undefined) return;
    element.times ??= this.total.map(() => null);
    element.times[at] = value ?? null;
  }

  #trim(): void {
    const extra = this.times.length - COLUMNS_MAX;
    if (extra > 0) {
      for (const column of [this.times, this.total, this.other, this.dropped]) column.splice(0, extra);
      for (const element of this.elements.values()) {
        element.values.splice(0, extra);
        element.times?.splice(0, extra);
      }
    }
    if (this.elements.size <= ELEMENTS_MAX || this.kind === 'range') return;
    const all = [...this.elements.values()]
      .map((element) => ({ element, average: mean(element.values, 0, this.times.length) }))
      .sort((a, b) => b.average - a.average);
    for (const { element } of all.slice(ELEMENTS_MAX)) {
      element.values.forEach((value, at) => {
        if (value) this.other[at] = (this.other[at] ?? 0) + value;
      });
      this.elements.delete(element.key);
    }
  }

  /** The indexes of the columns of [from, to). */
  bounds(from: number, to: number): [number, number] {
    let start = 0;
    while (start < this.times.length && (this.times[start] as number) + this.step <= from) start += 1;
    let end = this.times.length;
    while (end > start && (this.times[end - 1] as number) >= to) end -= 1;
    return [start, end];
  }

  /** The elements seen within [from, to) by their average there, largest first; ranges high to low. */
  summary(from: number, to: number): Summary[] {
    const [start, end] = this.bounds(from, to);
    const found: Summary[] = [];
    const times = this.#phaseTimes(start, end);
    for (const element of this.elements.values()) {
      const average = mean(element.values, start, end);
      const time = times.get(element.key);
      if (average > 0) found.push(time ? { element, average, time } : { element, average });
    }
    if (this.kind === 'range') return found.sort((a, b) => b.element.low - a.element.low);
    return found.sort((a, b) => b.average - a.average || (a.element.key < b.element.key ? -1 : 1));
  }

  /** The time of each phase for an operation, over all operations of these columns. */
  #phaseTimes(start: number, end: number): Map<string, PhaseTime> {
    const sums = new Map<string, number>();
    let operations = 0;
    for (let at = start; at < end; at += 1) operations += this.total[at] ?? 0;
    for (const { key, times } of this.elements.values()) {
      if (times === undefined) continue;
      let sum = 0;
      for (let at = start; at < end; at += 1) sum += (times[at] ?? 0) * (this.total[at] ?? 0);
      sums.set(key, sum);
    }
    const all = [...sums.values()].reduce((sum, one) => sum + one, 0);
    const found = new Map<string, PhaseTime>();
    if (all <= 0 || operations <= 0) return found;
    for (const [key, sum] of sums) found.set(key, { average: sum / operations, share: sum / all });
    return found;
  }

  /** The average of what fell outside the elements, 0 when nothing did. */
  otherAverage(from: number, to: number): number {
    const [start, end] = this.bounds(from, to);
    const known = this.total.slice(start, end).filter((value) => value !== null).length;
    // Most seconds have no "other" at all, which is a zero, not a gap.
    return known === 0 ? 0 : this.other.slice(start, end).reduce<number>((sum, value) => sum + (value ?? 0), 0) / known;
  }

  /** The average of the total over [from, to), `null` when nothing is known of it. */
  average(from: number, to: number): number | null {
    const [start, end] = this.bounds(from, to);
    const known = this.total.slice(start, end).filter((value) => value !== null);
    return known.length === 0 ? null : mean(this.total, start, end);
  }

  /** The index of the column that covers `time`, -1 if there is none. */
  at(time: number): number {
    for (let at = this.times.length - 1; at >= 0; at -= 1) {
      const start = this.times[at] as number;
      if (start <= time) return time < start + this.step ? at : -1;
    }
    return -1;
  }

  /** Stretches of [from, to) without data, for hatching. */
  gaps(from: number, to: number): [number, number][] {
    const found: [number, number][] = [];
    let known = from;
    const [start, end] = this.bounds(from, to);
    for (let at = start; at < end; at += 1) {
      const time = this.times[at] as number;
      if (this.total[at] === null) continue;
      if (time - known > 0.5) found.push([known, time]);
      known = time + this.step;
    }
    if (to - known > 0.5) found.push([known, to]);
    return found;
  }
}

/** The mean of what is known; a second without data is not a second of nothing. */
export function mean(values: Values, start: number, end: number): number {
  let sum = 0;
  let known = 0;
  for (let at = start; at < end; at += 1) {
    const value = values[at];
    if (value === null || value === undefined) continue;
    sum += value;
    known += 1;
  }
  return known === 0 ? 0 : sum / known;
}
