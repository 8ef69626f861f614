// Keeps the data of the statistics on a page current: fetches what a view needs, then follows the
// one stream. Pages read `series` and watch `version`, which changes at most once a frame.
import { untrack } from 'svelte';
import * as api from '../api/client.ts';
import { LiveStream, type StreamState } from '../api/stream.ts';
import type { Data } from '../api/types.ts';
import { nextFrame } from '../draw/canvas.ts';
import { Series } from './series.ts';
import { asError, session } from './session.svelte.ts';
import { canonical, parse } from './statid.ts';
import { intervalOf, spanOf, stepFor, type View } from './time.ts';

/** Elements asked for; the rest is in `other`. */
const TOP = 24;
/** A moving view coarser than a second is asked for anew, at most so often (ms). */
const POLL_MS = 5000;
/** Seconds the newest second may take to arrive before the view moves on without it. */
const PATIENCE = 3;
/** Seconds of the stream kept aside; a request that takes longer leaves a gap, which is asked for again. */
const RECENT_MAX = 30;
/** A second so much earlier than the newest one means that the server's clock was set back. */
const CLOCK_SET = 60;
/** Wheel and keys move the view in small steps; the server is asked once they pause. */
const SETTLE_MS = 150;

export class Feed {
  readonly stat: string;
  /** By this the seconds of the stream are told apart: the server may order filters differently. */
  readonly canonical: string;
  readonly series = new Series();
  version = $state(0);
  error = $state.raw<api.ApiError | null>(null);
  loading = $state(true);
  /** What was fetched last; `null` before that and after an interruption. */
  loaded: { from: number; to: number; step: number } | null = null;
  /** The newest seconds of the stream, oldest first: an answer of the store may end before them. */
  recent: Data[] = [];
  /** The end of the latest gap for which the store was asked. */
  asked = 0;
  askedAt = -Infinity;
  request = 0;
  requestedAt = -Infinity;

  constructor(stat: string) {
    this.stat = stat;
    this.canonical = canonical(stat);
  }

  // One function for ever, so that a page in the background, which has no frames, queues it once.
  readonly #bump = (): void => {
    this.version += 1;
  };

  touch(): void {
    nextFrame(this.#bump);
  }
}

/** Whether the catalogue has it, with all of its filters and its breakdown. */
function isKnown(text: string): boolean {
  const stat = parse(text);
  const entry = stat === null ? undefined : session.statistic(stat.base);
  if (stat === null || entry === undefined) return false;
  const names = stat.filters.map(({ name }) => name);
  if (stat.breakdown !== null) names.push(stat.breakdown);
  return names.every((name) => entry.breakdowns.some(({ id }) => id === name));
}

export class Feeds {
  #feeds = new Map<string, Feed>();
  /** Counts changes of the set of feeds, so that those who read one learn of it. */
  #changes = $state(0);
  #view: View = { live: true, span: 60 };
  #stream: LiveStream;
  #newest = 0;
  #poll: ReturnType<typeof setInterval>;
  #settle: ReturnType<typeof setTimeout> | undefined;
  #polled = 0;
  #closed = false;
  stream = $state<StreamState>('idle');
  /** The end of a moving view: the newest second that is complete. */
  now = $state(Math.floor(session.now()));

  constructor() {
    this.#stream = new LiveStream({
      data: (second) => this.#second(second),
      state: (state) => this.#streamState(state),
      // The gap that this leaves is healed at the next tick, however recently that was tried.
      lost: () => this.#feeds.forEach((feed) => (feed.askedAt = -Infinity)),
      signedOut: () => session.lost(),
    });
    this.#poll = setInterval(() => this.#tick(), 500);
  }

  close(): void {
    this.#closed = true;
    this.#stream.close();
    clearInterval(this.#poll);
    clearTimeout(this.#settle);
  }

  get(stat: string): Feed | undefined {
    void this.#changes;
    return this.#feeds.get(stat);
  }

  /** Follows exactly these statistics over this view. */
  sync(stats: string[], view: View): void {
    // What is read in here must not become a reason to do it again.
    untrack(() => this.#sync(stats, view));
  }

  #sync(stats: string[], view: View): void {
    this.#view = view;
    this.#changes += 1;
    for (const stat of this.#feeds.keys()) if (!stats.includes(stat)) this.#feeds.delete(stat);
    for (const stat of stats) if (!this.#feeds.has(stat)) this.#feeds.set(stat, new Feed(stat));
    this.#subscribe();
    const fresh = [...this.#feeds.values()].some((feed) => feed.loaded === null);
    clearTimeout(this.#settle);
    if (fresh) this.#loadAll();
    else this.#settle = setTimeout(() => this.#loadAll(), SETTLE_MS);
  }

  #moving(): boolean {
    return this.#view.live && stepFor(this.#view.span) === 1;
  }

  #subscribe(): void {
    // A read that was in progress at the end would open the stream again, for ever.
    if (this.#closed) return;
    // One statistic that does not exist would have the whole stream refused.
    const good = [...this.#feeds.values()].filter((feed) =>
      feed.error === null ? feed.loaded !== null || isKnown(feed.stat) : feed.error.status === 0);
    if (this.#moving()) this.#stream.subscribe(good.map((feed) => feed.stat));
    else this.#stream.close();
  }

  /** What is to be read for the view as it is now. */
  #interval(): { from: number; to: number; step: number } {
    const step = stepFor(spanOf(this.#view));
    return { ...intervalOf(this.#view, this.#view.live ? Math.floor(session.now()) : this.now), step };
  }

  #loadAll(): void {
    const { from, to, step } = this.#interval();
    for (const feed of this.#feeds.values()) {
      const known = feed.loaded;
      const enough = known !== null && known.step === step && known.from <= from && known.to >= to;
      const following = known !== null && this.#moving() && known.step === 1 && known.from <= from;
      if (!enough && !following) void this.#load(feed, from, to, step);
    }
  }

  async #load(feed: Feed, from: number, to: number, step: number): Promise<void> {
    const request = (feed.request += 1);
    feed.requestedAt = performance.now();
    feed.loading = true;
    try {
      const answer = await api.data(feed.stat, { from: Math.floor(from / step) * step, to: Math.ceil(to), step, top: TOP });
      if (request !== feed.request) return;
      feed.series.replace(answer);
      if (feed.series.step === 1 && this.#view.live) {
        for (const second of feed.recent) if ((second.times[0] ?? 0) >= from) feed.series.merge(second);
      }
      feed.loaded = { from, to: this.#moving() ? Infinity : to, step };
      const unsubscribed = feed.error !== null || !isKnown(feed.stat);
      feed.error = null;
      if (unsubscribed) this.#subscribe();
    } catch (error) {
      if (request !== feed.request) return;
      feed.error = asError(error);
      feed.loaded = { from: Infinity, to: 0, step };
      this.#subscribe();
    }
    feed.loading = false;
    feed.touch();
  }

  #second(second: Data): void {
    const time = second.times[0];
    if (time === undefined) return;
    if (time + CLOCK_SET < this.#newest) this.#setBack(time);
    const name = canonical(second.stat);
    for (const feed of this.#feeds.values()) {
      if (feed.canonical !== name) continue;
      feed.recent.push(second);
      if (feed.recent.length > RECENT_MAX) feed.recent.shift();
      if (!feed.loading && feed.series.step === 1) feed.series.merge(second);
      feed.touch();
    }
    this.#newest = Math.max(this.#newest, time + 1);
    nextFrame(this.#advance);
  }

  /** What is known lies in the future now: it is forgotten, and asked for again. */
  #setBack(time: number): void {
    this.#newest = time + 1;
    for (const feed of this.#feeds.values()) {
      Object.assign(feed, { loaded: null, recent: [], asked: 0 });
    }
    // With the server's time, which decides what is asked for; a sign-in that ended is noticed by the stream.
    session.refresh().then(() => this.#loadAll(), () => undefined);
  }

  #streamState(state: StreamState): void {
    const back = state === 'live' && this.stream === 'connecting' && this.#interrupted;
    if (state === 'broken') this.#interrupted = true;
    this.stream = state;
    if (!back) return;
    this.#interrupted = false;
    // What was missed may be in the store; what is not there stays a gap.
    for (const feed of this.#feeds.values()) feed.loaded = null;
    this.#loadAll();
  }
  #interrupted = false;

  readonly #advance = (): void => {
    const now = Math.max(this.#newest, Math.floor(session.now()) - PATIENCE);
    if (now !== this.now) this.now = now;
  };

  /** Asks once for seconds that the stream left out; what the store has not either stays a gap. */
  #heal(): void {
    const { from, to } = intervalOf(this.#view, this.now);
    for (const feed of this.#feeds.values()) {
      const end = feed.series.gaps(from, to - PATIENCE).at(-1)?.[1] ?? 0;
      if (feed.loading || feed.error !== null || this.stream !== 'live' || end <= feed.asked) continue;
      if (performance.now() - feed.askedAt < POLL_MS) continue;
      feed.asked = end;
      feed.askedAt = performance.now();
      void this.#load(feed, from, Math.floor(session.now()), 1);
    }
  }

  /** Reads again what the server could not send at the time. */
  #retry(): void {
    const { from, to, step } = this.#interval();
    for (const feed of this.#feeds.values()) {
      const isTemporary = feed.error !== null && (feed.error.status === 0 || feed.error.status >= 500);
      if (!isTemporary || feed.loading || performance.now() - feed.requestedAt < POLL_MS) continue;
      void this.#load(feed, from, to, step);
    }
  }

  #tick(): void {
    this.#advance();
    if (document.hidden) return;
    this.#retry();
    if (!this.#view.live) return;
    if (this.#moving()) return this.#heal();
    const every = Math.max(POLL_MS, stepFor(this.#view.span) * 1000);
    if (Date.now() - this.#polled < every) return;
    this.#polled = Date.now();
    this.#loadAll();
  }
}
