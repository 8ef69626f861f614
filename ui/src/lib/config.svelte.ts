// What all pages made from the tree share: its declaration, which places this user may see, the
// changes that wait to be committed, and what was committed meanwhile, here or elsewhere.
import * as tree from '../api/tree.ts';
import type { ApiError } from '../api/client.ts';
import { connection } from './connection.svelte.ts';
import { sentences } from './format.ts';
import * as pending from './pending.ts';
import { router } from './router.svelte.ts';
import { asError, session } from './session.svelte.ts';

/** Places with pages made from the tree, in the order of the bar. */
export const PLACES = ['storage', 'shares', 'analytics', 'configuration', 'cluster', 'maintenance', 'lab'] as const;
/** How long after a change the server is asked whether it would take it (ms). */
const CHECK_MS = 300;

/** How long after the declaration could not be read it is asked for again (ms). */
const AGAIN_MS = 1000;

/** How long it is said what was done (ms); notes stay until they are closed. */
const SAID_MS = 10_000;

const keyOf = (path: string, property: string): string => `${path}\n${property}`;

class Config {
  declared = $state.raw<tree.Context | null>(null);
  /** Those of PLACES that exist and may be read. */
  places = $state.raw<string[]>([]);
  loaded = $state(false);
  pending = $state.raw<pending.Pending[]>([]);
  /** Those of a commit that is not done yet. */
  #sent: readonly pending.Pending[] = [];
  /** What the server says against single properties. */
  #wrong = $state.raw<Record<string, string>>({});
  /** What the server says against all of it, or why a commit failed. */
  error = $state.raw<ApiError | null>(null);
  busy = $state(false);
  /** Goes up whenever nodes have to be read anew. */
  turn = $state(0);
  #said = $state('');
  notes = $state.raw<string[]>([]);
  /** What the server says would come of what is pending. */
  coming = $state.raw<string[]>([]);
  /** Where one wanted to go while changes were pending. */
  wanted = $state<string | null>(null);
  /** Fields whose text cannot be read as a value; nothing is committed while there are some. */
  #unread = $state.raw<Record<string, string>>({});
  #user: string | null = null;
  #revision: number | null = null;
  /** Goes up when fields shall forget what was typed into them. */
  emptied = $state(0);
  /** The last revision that was told, or made here: a page that has read a newer one has not told of it. */
  #known = 0;
  #live = true;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #saying: ReturnType<typeof setTimeout> | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;
  #stop: (() => void) | null = null;
  /** Counts starts and stops: what was read for an earlier one is not used. */
  #starts = 0;

  constructor() {
    router.guard = (to) => this.#mayLeave(to);
    connection.onBack(() => (this.turn += 1));
    addEventListener('beforeunload', (event) => {
      if (this.dirty) event.preventDefault();
    });
  }

  /** Reads the declaration and what may be seen of it; a server without a tree has no such pages. */
  async start(user: string): Promise<void> {
    clearTimeout(this.#again);
    const start = (this.#starts += 1);
    // What waits survives a session that ran out, but is nobody else's.
    if (this.#user !== user) this.abort();
    this.#user = user;
    try {
      const declared = await tree.tree();
      const names = PLACES.filter((name) => declared.children.some((child) => child.name === name));
      const readable = await Promise.all(names.map((name) => this.#readable(`/${name}`)));
      if (start !== this.#starts) return;
      this.declared = declared;
      this.places = names.filter((_, at) => readable[at]);
      if (this.places.includes('configuration')) this.#follow();
    } catch (failed) {
      if (start !== this.#starts) return;
      const { status } = asError(failed);
      if (status === 0 || status >= 500) {
        // Nothing is known of what there is: the pages wait for it.
        this.#again = setTimeout(() => void this.start(user), AGAIN_MS);
        return;
      }
      this.places = [];
    }
    this.loaded = true;
  }

  /** Whether a place may be seen; that nobody answers is thrown on. */
  async #readable(path: string): Promise<boolean> {
    try {
      await tree.node(path);
      return true;
    } catch (failed) {
      const { status } = asError(failed);
      if (status === 0 || status >= 500) throw failed;
      return false;
    }
  }

  stop(): void {
    clearTimeout(this.#again);
    this.#starts += 1;
    this.#stop?.();
    this.#stop = null;
    this.declared = null;
    this.places = [];
    this.loaded = false;
  }

  #follow(): void {
    type Told = { revision: number; who: string; changes?: unknown };
    this.#stop?.();
    this.#stop = tree.follow<Told>('/changes/stream', 'change', ({ revision, who }) => {
      if (typeof revision !== 'number' || revision <= this.#known) return;
      this.#known = revision;
      this.said = `${who} committed revision ${revision}.`;
      this.turn += 1;
    }, (connected) => {
      // What was committed while nobody listened is not told again.
      if (connected && !this.#live) this.turn += 1;
      this.#live = connected;
    });
  }

  #mayLeave(to: string): boolean {
    // A session that has ended leads to the sign-in page and back: nothing is lost by that.
    if (!this.dirty || to.startsWith('/login?')) return true;
    const first = to.split(/[/?]/)[1] ?? '';
    if ((PLACES as readonly string[]).includes(first)) return true;
    this.wanted = to;
    return false;
  }

  /** Gives up what is pending and goes where one wanted to. */
  leave(): void {
    const to = this.wanted;
    this.wanted = null;
    this.abort();
    if (to === '/login') void session.signOut();
    else if (to !== null) router.go(to);
  }

  /** A field says what cannot be read in it, or that all is well. */
  mark(path: string, property: string, wrong: string | null): void {
    const key = keyOf(path, property);
    if ((this.#unread[key] ?? null) === wrong) return;
    const { [key]: _gone, ...rest } = this.#unread;
    this.#unread = wrong === null ? rest : { ...rest, [key]: wrong };
  }

  /** Why nothing can be committed now, or null. */
  get blocked(): string | null {
    if (Object.keys(this.#unread).length > 0) return 'A field is not valid: correct it first.';
    if (Object.keys(this.#wrong).length > 0) return 'The server rejected a value: correct the marked fields first.';
    return this.busy ? 'Commit in progress.' : null;
  }

  /** One sentence about what happened last. */
  get said(): string {
    return this.#said;
  }

  set said(sentence: string) {
    clearTimeout(this.#saying);
    this.#said = sentence;
    if (sentence !== '') this.#saying = setTimeout(() => (this.#said = ''), SAID_MS);
  }

  found(path: string, property: string): pending.Pending | undefined {
    return pending.find(this.pending, path, property);
  }

  wrong(path: string, property: string): string | null {
    return this.#wrong[keyOf(path, property)] ?? null;
  }

  /** Adds a change (or takes it back, if it changes nothing) and has it checked. */
  put(change: pending.Pending, now: tree.NodeProperty, revision: number): void {
    this.#revision ??= revision;
    this.#keep(pending.put(this.pending, change, pending.committed(now, change.path, this.#sent)));
  }

  take(path: string, property: string): void {
    this.#keep(pending.without(this.pending, path, property));
  }

  abort(): void {
    this.#keep([]);
    this.#unread = {};
    this.emptied += 1;
  }

  /** Whether there is anything that would be lost. */
  get dirty(): boolean {
    return this.pending.length > 0 || Object.keys(this.#unread).length > 0;
  }

  #keep(list: pending.Pending[]): void {
    this.pending = list;
    this.said = '';
    if (list.length === 0) this.#revision = null;
    clearTimeout(this.#timer);
    if (list.length === 0) this.#clear();
    else this.#timer = setTimeout(() => void this.#check(), CHECK_MS);
  }

  #clear(): void {
    this.#wrong = {};
    this.error = null;
    this.coming = [];
  }

  #fail(failed: unknown): void {
    const error = asError(failed);
    const { path, property } = error;
    const field = path !== null && property !== null && pending.find(this.pending, path, property) !== undefined;
    this.#wrong = field ? { [keyOf(path, property)]: sentences(error.failed, error.hint) } : {};
    this.error = error;
  }

  async #check(): Promise<void> {
    const asked = this.pending;
    try {
      const { notes } = await tree.change({ dry_run: true, changes: pending.requests(asked) });
      if (asked !== this.pending) return;
      this.#clear();
      this.coming = notes;
    } catch (failed) {
      if (asked === this.pending) this.#fail(failed);
    }
  }

  /** Commits everything pending, or nothing; `over`: also over what others changed meanwhile. */
  async commit(comment: string, over: boolean): Promise<boolean> {
    if (this.pending.length === 0 || this.busy) return false;
    clearTimeout(this.#timer);
    const revision = over || this.#revision === null ? {} : { revision: this.#revision };
    const sent = this.pending;
    this.#sent = sent;
    const done = await this.run({ ...revision, comment, changes: pending.requests(sent) });
    this.#sent = [];
    if (done === null) return false;
    this.#committed(pending.remaining(this.pending, sent), done.revision);
    this.said = `Committed ${pending.counted(done.changes.length)} as revision ${done.revision}.`;
    return true;
  }

  /** Of a commit that is done: what was changed or typed meanwhile is there, on top of its revision. */
  #committed(list: pending.Pending[], revision: number): void {
    if (list.length === 0 && Object.keys(this.#unread).length === 0) return this.abort();
    this.#revision = revision;
    this.#keep(list);
  }

  /** One transaction of its own, beside what is pending; the error is told by `error` and thrown no further. */
  async run(transaction: tree.Transaction): Promise<tree.Committed | null> {
    this.busy = true;
    try {
      return this.done(await tree.change(transaction));
    } catch (failed) {
      this.#fail(failed);
      return null;
    } finally {
      this.busy = false;
    }
  }

  /** Something was committed: everything shown is read anew. */
  done(result: tree.Committed): tree.Committed {
    this.#known = Math.max(this.#known, result.revision);
    this.#clear();
    this.notes = result.notes;
    this.turn += 1;
    return result;
  }

  gone(path: string): void {
    this.#keep(pending.withoutNode(this.pending, path));
  }

  renamed(from: string, to: string): void {
    this.#keep(pending.moved(this.pending, from, to));
  }
}

export const config = new Config();
