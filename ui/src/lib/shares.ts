// A share as its node tells it: room, mount commands, who may use it.
import type { Node, Value } from '../api/tree.ts';
import { valueOf } from './tree.ts';

const value = (node: Node | undefined, name: string): Value => valueOf(node, name)?.value ?? null;

/** Bytes of the file system that it lies on, or null if they are not known. */
export function room(node: Node | undefined): { total: number; available: number } | null {
  const [total, available] = [value(node, 'total'), value(node, 'available')];
  return typeof total === 'number' && typeof available === 'number' && total > 0 ? { total, available } : null;
}

/** Commands that mount it, each with the version of NFS that it asks for. */
export function mounts(node: Node | undefined): { version: string; command: string }[] {
  const commands = value(node, 'mount');
  return (Array.isArray(commands) ? commands : []).map(String).map((command) => {
    const version = /vers=([\d.]+)/.exec(command)?.[1];
    return { version: version === undefined ? 'NFS' : `NFSv${version}`, command };
  });
}

/** Why clients cannot use it, or null if they can. */
export function offline(node: Node | undefined): string | null {
  if (value(node, 'state') !== 'offline') return null;
  const reason = value(node, 'reason');
  return typeof reason === 'string' && reason !== '' ? reason : 'It cannot be served.';
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
