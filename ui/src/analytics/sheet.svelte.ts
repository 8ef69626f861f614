// What one can do to a worksheet. Every change goes through the URL, which is the state; this class
// only computes the next URL. The cross-hair is the one thing that is not worth an address.
import { Feeds } from '../lib/feeds.svelte.ts';
import { router } from '../lib/router.svelte.ts';
import { format, type StatId } from '../lib/statid.ts';
import * as time from '../lib/time.ts';
import { formatWorksheet, panel, parseWorksheet, CROPS, HIGHLIGHTS_MAX, PANELS_MAX, type PanelState, type Worksheet } from '../lib/worksheet.ts';

/** Zoom per key press or button. */
const ZOOM = 2;
/** How far an arrow key moves. */
const PAN = 0.25;

export class Sheet {
  readonly feeds = new Feeds();
  #state: Worksheet = $derived(parseWorksheet(router.search));
  /** The time under the pointer, or the pinned one. */
  hover = $state<number | null>(null);
  pinned = $state<number | null>(null);

  get panels(): readonly PanelState[] {
    return this.#state.panels;
  }

  get view(): time.View {
    return this.#state.view;
  }

  /** The interval on the screen; `to` is not included. */
  get span(): { from: number; to: number } {
    return time.intervalOf(this.#state.view, this.feeds.now);
  }

  get cross(): number | null {
    return this.hover ?? this.pinned;
  }

  sync(): void {
    this.feeds.sync(this.panels.map(({ stat }) => format(stat)), this.view);
  }

  #go(next: Partial<Worksheet>, replace = false): void {
    router.go(`/analytics${formatWorksheet({ ...this.#state, ...next })}`, replace);
  }

  /** Adds a panel, at the end or after another one. */
  add(stat: StatId, after = this.panels.length - 1): void {
    const panels = [...this.panels];
    if (panels.length >= PANELS_MAX || panels.some((one) => format(one.stat) === format(stat))) return;
    panels.splice(after + 1, 0, panel(stat));
    this.#go({ panels });
  }

  close(at: number): void {
    this.#go({ panels: this.panels.filter((_, index) => index !== at) });
  }

  /**
   * Another statistic in the same panel: a drill-down, or one step back from it. Another panel of
   * that statistic goes.
   */
  change(at: number, stat: StatId, view: time.View = this.view): void {
    const id = format(stat);
    const panels = this.panels
      .map((one, index) => (index === at ? { ...one, stat, highlights: [], crop: 0 } : one))
      .filter((one, index) => index === at || format(one.stat) !== id);
    this.#go({ panels, view });
  }

  #look(at: number, change: (one: PanelState) => PanelState): void {
    this.#go({ panels: this.panels.map((one, index) => (index === at ? change(one) : one)) }, true);
  }

  togglePlot(at: number): void {
    this.#look(at, (one) => ({ ...one, plot: one.plot === 'line' ? 'stack' : 'line' }));
  }

  nextCrop(at: number): void {
    this.#look(at, (one) => {
      const next = (CROPS.findIndex((crop) => crop === one.crop) + 1) % CROPS.length;
      return { ...one, crop: CROPS[next] ?? 0 };
    });
  }

  /** A click highlights one element; with shift several; a second click takes it away. */
  highlight(at: number, key: string, several: boolean): void {
    this.#look(at, (one) => {
      const has = one.highlights.includes(key);
      const others = several ? one.highlights.filter((other) => other !== key) : [];
      const alone = has && (several || one.highlights.length === 1);
      return { ...one, highlights: alone ? others : [...others, key].slice(-HIGHLIGHTS_MAX) };
    });
  }

  highlightAll(at: number, keys: string[]): void {
    this.#look(at, (one) => ({ ...one, highlights: one.highlights.length > 1 ? [] : keys.slice(0, HIGHLIGHTS_MAX) }));
  }

  #move(view: time.View, replace = true): void {
    this.#go({ view }, replace);
  }

  zoom(closer: boolean, factor = ZOOM, at?: number): void {
    this.#move(time.zoom(this.view, closer ? 1 / factor : factor, this.feeds.now, at));
  }

  pan(share: number = PAN): void {
    this.#move(time.pan(this.view, share, this.feeds.now));
  }

  /** Stops the graphs where they are, or lets them run again. Collection goes on either way. */
  pause(): void {
    this.#move(this.view.live ? time.pause(this.view, this.feeds.now) : time.resume(this.view));
  }

  now(): void {
    this.pinned = null;
    this.#move(time.resume(this.view));
  }

  select(from: number, to: number): void {
    this.#move(time.select(from, to, this.feeds.now), false);
  }

  show(span: number): void {
    if (this.view.live) this.#move({ live: true, span }, false);
    else this.#move(time.zoom(this.view, span / time.spanOf(this.view), this.feeds.now), false);
  }

  /** Moves the cross-hair by steps, for those without a pointer. */
  step(by: number): void {
    const { from, to } = this.span;
    const step = time.stepFor(to - from);
    const at = (this.pinned ?? Math.floor((from + to) / 2)) + by * step;
    this.pinned = Math.min(to - step, Math.max(from, at));
  }
}

/** Where a menu opens and what it offers to do with a chosen element. */
export interface DrillRequest {
  panel: number;
  x: number;
  y: number;
  label: string;
  /** The statistic narrowed to the choice, broken down by nothing yet. */
  stat: StatId;
  /** Set when an interval was chosen along with a range. */
  view: time.View | null;
}
