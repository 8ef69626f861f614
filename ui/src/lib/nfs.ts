// Clients of NFS as rows: narrowing, order, and the words for what they hold.
import type { Node } from '../api/tree.ts';
import type { Listing, NfsClient, NfsLock, NfsOpen } from '../api/types.ts';
import { count, duration } from './format.ts';
import { mounts, value } from './shares.ts';

/** Where the clients are, and where one of them is. */
export const CLIENTS = '/nfs';
export const PAGE = { service: 'nfs', href: CLIENTS, title: 'NFS clients' };
export const clientHref = (id: string): string => `${CLIENTS}?client=${encodeURIComponent(id)}`;

export type Column = 'label' | 'version' | 'state' | 'silent_s' | 'opens' | 'locks' | 'delegations';

/** Clients that contain every word, in the order of a column; what is equal stays in place. */
export function arrange(clients: NfsClient[], text: string, by: Column, down: boolean): NfsClient[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  const all = (c: NfsClient): string => [c.id, c.version, c.state, c.label, c.name, c.principal, ...c.addresses].join(' ').toLowerCase();
  const found = clients.filter((client) => words.every((word) => all(client).includes(word)));
  const order = (a: NfsClient, b: NfsClient): number => {
    const [x, y] = [a[by] ?? -1, b[by] ?? -1];
    return typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
  };
  return found.sort((a, b) => (down ? order(b, a) : order(a, b)));
}

/** "3 opens", "1 open". */
const some = (n: number, one: string): string => `${count(n)} ${one}${n === 1 ? '' : 's'}`;

/** What ends with a client, as in a sentence; null if that is nothing. */
export function holdings(client: NfsClient): string | null {
  const parts: [number, string][] = [[client.opens, 'open'], [client.locks, 'lock'], [client.delegations, 'delegation']];
  const held = parts.filter(([n]) => n > 0).map(([n, one]) => some(n, one));
  const last = held.pop();
  if (last === undefined) return null;
  return held.length === 0 ? last : `${held.join(', ')} and ${last}`;
}

/** How long nothing was heard of it. */
export const silence = (seconds: number | null): string => (seconds === null ? '–' : seconds < 1 ? 'now' : duration(seconds));

/** Whether it has outlived its lease, in words. */
export const stateOf = (client: NfsClient): string => (client.state === 'courtesy' ? 'lease expired' : client.state);

/** The bytes of a lock, both ends included. */
export function bytesOf(lock: NfsLock): string {
  if (lock.length === null) return lock.offset === 0 ? 'all' : `${lock.offset} to the end`;
  const last = lock.offset + lock.length - 1;
  return last === lock.offset ? `${last}` : `${lock.offset}–${last}`;
}

/** What may be done to a file, in words. */
export const RIGHTS: Record<string, string> = { both: 'read, write', none: 'nothing' };

/** What an open or a delegation is for. */
export function accessOf(open: NfsOpen): string {
  const access = RIGHTS[open.access] ?? open.access;
  if (open.kind === 'open') return access;
  return `${access}: delegation${open.kind === 'recall' ? ', recalled' : ''}`;
}

/** How many there are in all, as the list tells it. */
export function total(list: Listing<unknown>, one: string): string {
  return list.more ? `more than ${some(list.rows.length, one)}` : some(list.rows.length, one);
}

/** Whether a share is mounted by a protocol of the status. */
export const isMount = (protocol: string): boolean => protocol.startsWith('nfs');

/** Commands that mount a share: what a table has room for. */
export function nfsMounts(node: Node | undefined): { version: string; command: string }[] {
  return mounts(node).filter(({ version }) => version.startsWith('NFS'));
}

export function exceptions(node: Node | undefined): string[] {
  const list = value(node, 'nfs_exceptions');
  return Array.isArray(list) ? list.map(String) : [];
}

const MODES: Record<string, string> = { rw: 'read-write', ro: 'read-only', none: 'none' };

/** What somebody may do whom no exception names. */
export function access(node: Node | undefined): string {
  const mode = value(node, 'nfs');
  const all = typeof mode === 'string' ? (MODES[mode] ?? mode) : '–';
  return value(node, 'read_only') === true && mode !== 'none' ? 'read-only' : all;
}
