// Who is signed in, what can be asked, and the server's clock. Loaded once after sign-in.
import * as api from '../api/client.ts';
import type { Statistic, Status } from '../api/types.ts';
import { connection } from './connection.svelte.ts';
import { router } from './router.svelte.ts';

/** How long after a first request that failed it is made again (ms). */
const AGAIN_MS = 1000;

class Session {
  user = $state<string | null>(null);
  /** False until it is known whether somebody is signed in. */
  known = $state(false);
  catalogue = $state.raw<Statistic[]>([]);
  status = $state.raw<Status | null>(null);
  error = $state.raw<api.ApiError | null>(null);
  /** Server time minus ours, in seconds. */
  skew = 0;

  constructor() {
    api.onSignedOut(() => this.lost());
    connection.onGone(() => this.lost());
    connection.onBack(() => void (this.user !== null && this.refresh().catch(() => undefined)));
  }

  async start(): Promise<void> {
    try {
      this.user = (await api.whoAmI()).user;
      await this.#load();
    } catch (failed) {
      const error = asError(failed);
      if (error.status === 0 || error.status >= 500) {
        // Nobody was refused: it is asked again, and the session may still be there.
        this.error = error;
        setTimeout(() => void this.start(), AGAIN_MS);
        return;
      }
      this.user = null;
      if (error.status !== 401) this.error = error;
      this.lost();
    }
    this.known = true;
  }

  async signIn(user: string, password: string): Promise<void> {
    const session = await api.signIn(user, password);
    this.error = null;
    this.user = session.user;
    await this.#load();
  }

  /** Leaves the sign-in page for where one wanted to go. */
  goBack(): void {
    const back = new URLSearchParams(router.search).get('to');
    // Only paths of our own: `//elsewhere` and `/\elsewhere` would leave the site.
    router.go(back && /^\/(?![/\\])/.test(back) ? back : '/', true);
  }

  async signOut(): Promise<void> {
    if (!router.guard('/login')) return;
    await api.signOut().catch(() => undefined);
    this.user = null;
    router.go('/login');
  }

  /** Leads to the sign-in page and back again afterwards. */
  lost(): void {
    this.user = null;
    if (router.path === '/login') return;
    const here = router.path + router.search;
    router.go(here === '/' ? '/login' : `/login?to=${encodeURIComponent(here)}`, true);
  }

  async #load(): Promise<void> {
    await Promise.all([this.refresh(), api.statistics().then((list) => (this.catalogue = list))]);
  }

  async refresh(): Promise<void> {
    try {
      const sent = Date.now();
      const status = await api.status();
      this.skew = status.now - (sent + Date.now()) / 2000;
      this.status = status;
      this.error = null;
    } catch (error) {
      this.error = asError(error);
      if (this.error.status === 401) throw error;
    }
  }

  /** The server's time, in seconds. */
  now(): number {
    return Date.now() / 1000 + this.skew;
  }

  statistic(base: string): Statistic | undefined {
    return this.catalogue.find((entry) => entry.id === base);
  }

  breakdown(base: string, id: string | null): Statistic['breakdowns'][number] | undefined {
    return this.statistic(base)?.breakdowns.find((one) => one.id === id);
  }
}

export function asError(error: unknown): api.ApiError {
  return error instanceof api.ApiError ? error : new api.ApiError(0, 'answer', String(error), '');
}

export const session = new Session();
