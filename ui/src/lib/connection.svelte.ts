// Whether the server answers, and in time: told on every page, because whoever waits wants to know
// what for. While it does not answer it is asked again and again, and then everything is read anew.
import { ApiError, onAsked, whoAmI } from '../api/client.ts';

/** An answer that takes longer is worth a word (ms). */
const SLOW_MS = 2500;
/** How long after a request that was not answered the server is asked again (ms). */
const AGAIN_MS = 1000;

class Connection {
  /** The last request was not answered. */
  lost = $state(false);
  /** Requests that have waited for longer than SLOW_MS. */
  #late = $state(0);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #back: (() => void)[] = [];
  #gone: () => void = () => {};

  constructor() {
    onAsked(() => this.#begin());
  }

  get slow(): boolean {
    return this.#late > 0;
  }

  /** Calls `again` whenever the server answers again. */
  onBack(again: () => void): void {
    this.#back.push(again);
  }

  /** Calls `gone` if it answers again, but the session has ended meanwhile. */
  onGone(gone: () => void): void {
    this.#gone = gone;
  }

  #begin(): (answered: boolean) => void {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      this.#late += 1;
    }, SLOW_MS);
    return (answered) => {
      clearTimeout(timer);
      if (late) this.#late -= 1;
      this.#set(!answered);
    };
  }

  #set(lost: boolean): void {
    const before = this.lost;
    this.lost = lost;
    if (lost) this.#timer ??= setTimeout(() => this.#ask(), AGAIN_MS);
    else if (before) for (const again of this.#back) again();
  }

  #ask(): void {
    this.#timer = undefined;
    if (!this.lost) return;
    whoAmI().catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 401) this.#gone();
    });
  }
}

export const connection = new Connection();
