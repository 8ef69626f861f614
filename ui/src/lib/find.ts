// What the search finds: pages, statistics with their breakdowns, shares, clients.
import type { Statistic, Status } from '../api/types.ts';
import { sentence } from '../analytics/words.ts';
import { CLIENTS } from './nfs.ts';
import { LOCKS } from './webdav.ts';
import { type StatId } from './statid.ts';
import { graphHref, HIGHLIGHTS_MAX, panel, sheetHref } from './worksheet.ts';

export interface Hit {
  /** What it is, in a word: Page, Statistic, Setting, or the noun of an item. */
  kind: string;
  name: string;
  detail: string;
  href: string;
}

/** More than this is not looked through by anybody. */
const HITS_MAX = 12;

const stat = (base: string, breakdown: string | null, filters: StatId['filters'] = []): StatId => ({ base, filters, breakdown });

/** What one asks next of an element: of a client its files, of a file or a share its clients. */
const NEXT: Record<string, string[]> = {
  client: ['file', 'op', 'latency'],
  file: ['client', 'op', 'latency'],
  share: ['client', 'file', 'latency'],
};

/** Graphs of one element: whom or what it concerns, what it does, and how long that takes. */
export function elementHref(name: string, value: string): string {
  const filters = [{ name, value }];
  return graphHref(...(NEXT[name] ?? ['client', 'op', 'latency']).map((breakdown) => stat('all.ops', breakdown, filters)));
}

/** The graph of a breakdown with its foremost elements in colour. */
export function topHref(breakdown: string, keys: string[], next: string): string {
  const first = { ...panel(stat('all.ops', breakdown)), highlights: keys.slice(0, HIGHLIGHTS_MAX) };
  return sheetHref([first, panel(stat('all.ops', next)), panel(stat('all.ops', 'latency'))]);
}

/** `more`: pages, items and properties of the tree; pages and items come before statistics. */
export function everything(catalogue: Statistic[], status: Status | null, clients: { key: string; label: string }[], more: Hit[] = []): Hit[] {
  const hits: Hit[] = [
    { kind: 'Page', name: 'Status', detail: 'health, shares, clients', href: '/' },
    { kind: 'Page', name: 'Analytics', detail: 'worksheet of graphs', href: '/analytics' },
    { kind: 'Page', name: 'NFS clients', detail: 'open files and locks; expire a client', href: CLIENTS },
    { kind: 'Page', name: 'WebDAV locks', detail: 'locked files; release a lock', href: LOCKS },
  ];
  const late = (kind: string): boolean => kind === 'Setting' || kind === 'State';
  hits.push(...more.filter(({ kind }) => !late(kind)));
  for (const share of status?.shares ?? []) {
    hits.push({ kind: 'Activity', name: share.name, detail: `activity on the share ${share.name}, ${share.dir}`, href: elementHref('share', share.name) });
  }
  for (const client of clients) {
    hits.push({ kind: 'Client', name: client.label, detail: 'active in the last minute', href: elementHref('client', client.key) });
  }
  hits.push(...more.filter(({ kind }) => late(kind)));
  for (const entry of catalogue) {
    hits.push({ kind: 'Statistic', name: entry.id, detail: sentence(entry), href: graphHref(stat(entry.id, null)) });
    for (const breakdown of entry.breakdowns) {
      const name = `${entry.id}[${breakdown.id}]`;
      hits.push({ kind: 'Statistic', name, detail: sentence(entry), href: graphHref(stat(entry.id, breakdown.id)) });
    }
  }
  return hits;
}

/** The hits that contain every word, those whose name begins with the first one foremost. */
export function search(hits: Hit[], text: string): Hit[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return hits.slice(0, HITS_MAX);
  const rank = (hit: Hit): number => (hit.name.toLowerCase().startsWith(words[0] as string) ? 0 : 1);
  return hits
    .filter((hit) => {
      const all = `${hit.kind} ${hit.name} ${hit.detail}`.toLowerCase();
      return words.every((word) => all.includes(word));
    })
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, HITS_MAX);
}
