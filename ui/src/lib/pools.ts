// Pools of disks: what their pages show, and what each profile gives on chosen disks.
import type { Node } from '../api/tree.ts';
import { bytes } from './format.ts';
import { text, texts } from './network.ts';

/** Where they are in the tree. */
export const POOLS = '/storage/pools';
export const DISKS = '/storage/disks';

/** Which page a path has: that of all pools, of one, or a general one. */
export function pageOf(path: string): 'all' | 'pool' | null {
  if (path === '/storage' || path === POOLS) return 'all';
  const name = path.startsWith(`${POOLS}/`) ? path.slice(POOLS.length + 1) : '';
  return name !== '' && !name.includes('/') ? 'pool' : null;
}

/** A profile: copies of data, on as many disks. */
export interface Profile {
  name: string;
  title: string;
  copies: number;
  /** How many disks may fail without loss of data. */
  fails: string;
}
export const PROFILES: readonly Profile[] = [
  { name: 'mirror', title: 'Mirror', copies: 2, fails: 'Any one disk may fail. Reads from both copies; each write goes to two disks.' },
  { name: 'copies3', title: 'Three copies', copies: 3, fails: 'Any two disks may fail. Each write goes to three disks.' },
  { name: 'stripe', title: 'Stripe', copies: 1, fails: 'No disk may fail: the loss of one loses the pool. Fastest writes.' },
];

/** Kinds of pools, and the profiles that only ZFS has: disks of parity in each group. */
export const KINDS = [
  { name: 'btrfs', title: 'btrfs' },
  { name: 'zfs', title: 'ZFS' },
] as const;
export const PARITY = [1, 2, 3].map((parity) => ({
  name: `parity${parity}`,
  title: `${['Single', 'Double', 'Triple'][parity - 1]} parity`,
  copies: 1,
  parity,
  fails: `Any ${['one disk', 'two disks', 'three disks'][parity - 1]} of each group may fail.`,
}));
const GROUP_MAX = 12;

/** Disks of a group of ZFS, or 0 if so many disks cannot be divided. */
function group(copies: number, parity: number, count: number): number {
  if (parity === 0) return count > 0 && count % copies === 0 ? copies : 0;
  for (let width = Math.min(GROUP_MAX, count); width >= parity + 2; width--) if (count % width === 0) return width;
  return 0;
}

/** Bytes for data on groups of ZFS, of which the smallest disk counts; 0 if the disks do not fit. */
export function capacityOfZfs(copies: number, parity: number, sizes: readonly number[]): number {
  const width = group(copies, parity, sizes.length);
  if (width === 0) return 0;
  let space = 0;
  for (let at = 0; at < sizes.length; at += width) space += Math.min(...sizes.slice(at, at + width)) * (parity > 0 ? width - parity : 1);
  return space;
}

/** Bytes for data on disks of these sizes: each piece lies on the disks with the most free space. */
export function capacity(copies: number, sizes: readonly number[]): number {
  if (sizes.length < copies) return 0;
  let space = Math.floor(sizes.reduce((sum, size) => sum + size, 0) / copies);
  for (;;) {
    const limit = space;
    const next = Math.floor(sizes.reduce((sum, size) => sum + Math.min(size, limit), 0) / copies);
    if (next >= space) return space;
    space = next;
  }
}

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(' · ');
const size = (node: Node): string => (Number(text(node, 'size')) > 0 ? bytes(Number(text(node, 'size'))) : '');
/** What people find a disk by: its serial number, else its name. */
export const titleOf = (node: Node): string => text(node, 'serial') || text(node, 'by_id') || text(node, 'device') || text(node, 'name') || node.name;
export const ofDisk = (node: Node): string => joined(text(node, 'role') === 'data' ? '' : text(node, 'role'), text(node, 'group'), text(node, 'bay'), size(node), text(node, 'model'), text(node, 'device') || (text(node, 'usable') === '' ? '' : node.name));

/** Errors of a disk that are not zero, in words. */
export function errorsOf(node: Node): string {
  const kinds: Record<string, string> = { write_errors: 'write errors', read_errors: 'read errors', flush_errors: 'flush errors', corruption_errors: 'checksum errors', generation_errors: 'generation errors' };
  return joined(...Object.entries(kinds).map(([name, title]) => (Number(text(node, name)) > 0 ? `${text(node, name)} ${title}` : '')));
}

export const itemsOf = (node: Node | undefined): Node[] => Object.values(node?.below ?? {});
export const usable = (disks: readonly Node[]): Node[] => disks.filter((disk) => text(disk, 'usable') === 'true');

/** The state of a pool or of a disk of it: a word, and whether it is good, bad or neither. */
export function stateOf(node: Node): { word: string; mark: 'good' | 'bad' | 'warn' | '' } {
  const word = text(node, 'state');
  const marks: Record<string, 'good' | 'bad' | 'warn'> = { healthy: 'good', present: 'good', degraded: 'warn', offline: 'warn', available: 'good', 'in use': 'good', faulted: 'bad', repairing: 'warn', failed: 'bad', missing: 'bad' };
  return { word, mark: marks[word] ?? '' };
}

/** The task of a pool in a line; empty without one. */
export function taskOf(node: Node): string {
  const task = text(node, 'task');
  if (task === '') return '';
  const phase = text(node, 'phase');
  const left = Number(text(node, 'time_left'));
  const time = text(node, 'time_left') === '' ? '' : left < 90 ? `${left} s left` : `${Math.round(left / 60)} min left`;
  return joined(task === phase ? task : `${task}: ${phase}`, `${text(node, 'progress')} %`, phase !== '' && time !== '' ? time : '');
}

/** The name of a pool that can be imported, and its UUID. */
export function importable(node: Node | undefined): { line: string; uuid: string }[] {
  return (node === undefined ? [] : texts(node, 'importable')).map((line) => ({ line, uuid: /\(UUID ([0-9a-f-]+)\)/.exec(line)?.[1] ?? '' }));
}

/** Properties and actions that these pages show apart from the others. */
export const OF_POOLS = ['create_pool', 'importable', 'reason', 'reason_btrfs', 'reason_zfs'];
export const OF_POOL = ['state', 'reason', 'task', 'phase', 'progress', 'time_left', 'replace', 'capacity', 'used', 'available', 'without_copies'];

/** Why the state of a pool does not offer an action now, or null. */
export function notNow(node: Node, action: string): string | null {
  const failed = text(node, 'state') === 'failed';
  const busy = text(node, 'task') !== '';
  if (action === 'mount') return failed ? null : 'The pool is mounted.';
  if (action === 'stop') return busy ? null : 'No task is in progress.';
  if (action === 'account_snapshots' && ['full', 'scanning'].includes(text(node, 'accounting'))) return 'Snapshots are accounted already.';
  if (failed && !['export_pool', 'destroy_data', 'configure'].includes(action)) return 'The pool is not mounted.';
  if (busy && ['scrub', 'add', 'remove', 'offline', 'export_pool', 'destroy_data'].includes(action)) return 'A task is in progress.';
  return null;
}
