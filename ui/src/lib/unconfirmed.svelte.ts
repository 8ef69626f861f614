// A change of the network that is not confirmed: how long it may still be, and where the
// administration is meanwhile. An address that is gone swallows requests without an answer, so that
// what is known before the commit is all that the page has.
import { limitRequests } from '../api/client.ts';

/** How long a request may wait for its answer while an address may be gone (ms). */
const ANSWER_MS = 5000;
/** The same of the commit itself, which takes the steps (ms). */
const COMMIT_MS = 20_000;

class Unconfirmed {
  /** Where the administration is after the commit in progress; null: where it is now. */
  elsewhere = $state<string | null>(null);
  /** When the change is reverted (ms since the epoch); 0: there is none. */
  until = $state(0);
  #read = false;

  /** A commit is sent that moves the administration to this page; `within`: time to confirm it (s). */
  begin(elsewhere: string, within: number): void {
    [this.elsewhere, this.until, this.#read] = [elsewhere, Date.now() + within * 1000, false];
    limitRequests({ reads: ANSWER_MS, changes: COMMIT_MS });
  }

  /** The server has answered: whether a change waits, and how long (s). */
  answered(waits: boolean, left: number): void {
    if (waits) {
      [this.until, this.#read] = [Date.now() + left * 1000, true];
      limitRequests({ reads: ANSWER_MS, changes: COMMIT_MS });
      return;
    }
    // What was read before the commit says nothing of it.
    if (this.elsewhere !== null && !this.#read && Date.now() < this.until) return;
    this.end();
  }

  end(): void {
    [this.elsewhere, this.until, this.#read] = [null, 0, false];
    limitRequests({});
  }
}

export const unconfirmed = new Unconfirmed();
