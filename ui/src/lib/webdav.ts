// Locks of WebDAV as rows: where they are, narrowing, the words for them.
import type { DavLock } from '../api/types.ts';

/** Where the locks are. */
export const LOCKS = '/webdav';
export const PAGE = { service: 'http', href: LOCKS, title: 'WebDAV locks' };

/** What a lock of depth infinity covers beside its root. */
export const below = 'and everything below';

/** Locks that contain every word. */
export function narrow(locks: DavLock[], text: string): DavLock[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  const all = (l: DavLock): string => [l.id, l.user, l.client ?? '', l.label, l.file, l.scope, l.owner].join(' ').toLowerCase();
  return locks.filter((lock) => words.every((word) => all(lock).includes(word)));
}
