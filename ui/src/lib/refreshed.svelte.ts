// What a page asks for again and again while it is open.
import { untrack } from 'svelte';
import type { ApiError } from '../api/client.ts';
import { asError } from './session.svelte.ts';

/** What is asked now, or `null` for nothing; it is put anew when anything changes that is read for it. */
type Question<T> = () => (() => Promise<T>) | null;

/** Made while a component is; ends with it. */
export class Refreshed<T> {
  /** The last answer. */
  value = $state.raw<T | null>(null);
  /** Why there is no answer since then. */
  error = $state.raw<ApiError | null>(null);
  #ask: (() => Promise<T>) | null = null;
  #asked = 0;
  /** Which of them was answered last: what was asked before it is of no use any more. */
  #answered = 0;

  /** Asks every so often (ms); another question than the first not before it has stood for `settled` (ms). */
  constructor(question: Question<T>, every: number, settled = 0) {
    $effect(() => {
      this.#ask = question();
      if (this.#ask === null) return;
      // What the answer changes is no reason to ask again.
      const first = setTimeout(() => void this.now(), untrack(() => this.value) === null ? 0 : settled);
      const again = setInterval(() => void this.now(), every);
      return () => {
        clearTimeout(first);
        clearInterval(again);
      };
    });
  }

  /** Asks at once. */
  async now(): Promise<void> {
    const [ask, turn] = [this.#ask, ++this.#asked];
    if (ask === null) return;
    const answered = (value: T | null, error: ApiError | null) => {
      if (ask !== this.#ask || turn < this.#answered) return;
      [this.#answered, this.value, this.error] = [turn, value, error];
    };
    try {
      answered(await ask(), null);
    } catch (failed) {
      answered(this.value, asError(failed));
    }
  }
}
