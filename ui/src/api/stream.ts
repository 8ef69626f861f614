// One stream of server-sent events for every statistic on the page. It reconnects by itself and
// says whether it is connected; what was missed meanwhile is fetched by whoever listens.
import type { Data } from './types.ts';
import { whoAmI, ApiError } from './client.ts';

/** Waits between attempts, in milliseconds; the last one repeats. */
const BACKOFF_MS = [500, 1000, 2000, 5000];
/** A stream that says nothing for so long is taken for dead: a second has one event per statistic. */
const SILENCE_MS = 6000;

export type StreamState = 'idle' | 'connecting' | 'live' | 'broken';

export interface StreamListener {
  data(second: Data): void;
  /** `live` after an interruption means that seconds may be missing. */
  state(state: StreamState): void;
  /** Seconds that the server could not get through in time; it has them. */
  lost(): void;
  signedOut(): void;
}

/** A stream whose set of statistics can change; equal sets do not reconnect. */
export class LiveStream {
  #listener: StreamListener;
  #source: EventSource | null = null;
  #stats: string[] = [];
  #attempt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #watchdog: ReturnType<typeof setTimeout> | undefined;

  constructor(listener: StreamListener) {
    this.#listener = listener;
  }

  /** Listens to exactly these statistics from now on. */
  subscribe(stats: string[]): void {
    const wanted = [...new Set(stats)].sort();
    if (wanted.join('\n') === this.#stats.join('\n')) return;
    this.#stats = wanted;
    this.#attempt = 0;
    this.#connect();
  }

  close(): void {
    this.#stats = [];
    this.#drop();
    this.#listener.state('idle');
  }

  #drop(): void {
    clearTimeout(this.#retry);
    clearTimeout(this.#watchdog);
    this.#source?.close();
    this.#source = null;
  }

  #connect(): void {
    this.#drop();
    if (this.#stats.length === 0) return this.#listener.state('idle');
    this.#listener.state('connecting');
    const query = this.#stats.map((stat) => `stat=${encodeURIComponent(stat)}`).join('&');
    const source = new EventSource(`/api/v1/analytics/stream?${query}`);
    this.#source = source;
    source.onopen = () => this.#alive();
    source.onmessage = (event: MessageEvent<string>) => {
      this.#alive();
      try {
        this.#listener.data(JSON.parse(event.data) as Data);
      } catch {
        // A frame that is not JSON is not data; the second stays a gap.
      }
    };
    source.addEventListener('lost', () => {
      this.#alive();
      this.#listener.lost();
    });
    source.onerror = () => this.#broken();
    this.#arm();
  }

  #arm(): void {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.#broken(), SILENCE_MS);
  }

  #alive(): void {
    this.#attempt = 0;
    this.#listener.state('live');
    this.#arm();
  }

  #broken(): void {
    this.#drop();
    this.#listener.state('broken');
    const wait = BACKOFF_MS[Math.min(this.#attempt, BACKOFF_MS.length - 1)];
    this.#attempt += 1;
    this.#retry = setTimeout(() => this.#connect(), wait);
    // EventSource hides the status; a refused session must lead to the sign-in page, not to retries.
    whoAmI().catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 401) this.#listener.signedOut();
    });
  }
}
