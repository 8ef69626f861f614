// A share as its node tells it: room, mount commands, who may use it.
import type { Node, Value } from '../api/tree.ts';
import { valueOf } from './tree.ts';

export const value = (node: Node | undefined, name: string): Value => valueOf(node, name)?.value ?? null;

/** Bytes of the file system that it lies on, or null if they are not known. */
export function room(node: Node | undefined): { total: number; available: number } | null {
  const [total, available] = [value(node, 'total'), value(node, 'available')];
  return typeof total === 'number' && typeof available === 'number' && total > 0 ? { total, available } : null;
}

const SCHEMES: Record<string, string> = { ftp: 'FTP', ftps: 'FTPS', http: 'HTTP', https: 'HTTPS' };

/** What a command goes by: the version of NFS that it asks for, or the service. */
function service(command: string): string {
  const version = /vers=([\d.]+)/.exec(command)?.[1];
  if (version !== undefined) return `NFSv${version}`;
  if (command.includes('davfs')) return 'WebDAV';
  if (command.includes('cifs')) return 'SMB';
  if (command.startsWith('sftp ')) return 'SFTP';
  return SCHEMES[/(\w+):\/\//.exec(command)?.[1] ?? ''] ?? 'NFS';
}

/** Commands that mount or open it, each with what it goes by. */
export function mounts(node: Node | undefined): { version: string; command: string }[] {
  const commands = value(node, 'mount');
  return (Array.isArray(commands) ? commands : []).map(String).map((command) => ({ version: service(command), command }));
}

/** Why clients cannot use it, or null if they can. */
export function offline(node: Node | undefined): string | null {
  if (value(node, 'state') !== 'offline') return null;
  const reason = value(node, 'reason');
  return typeof reason === 'string' && reason !== '' ? reason : 'Not available; see reason.';
}
