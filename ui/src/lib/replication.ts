// Replication actions: what their page shows, and what their state does not offer.
import { act, type Node } from '../api/tree.ts';
import { valueOf } from './tree.ts';

/** Where actions are in the tree. */
export const ACTIONS = '/configuration/replication';

export const isAction = (path: string): boolean => path.startsWith(`${ACTIONS}/`);

/** What came of a run, as docs/formats/replication.md has it. */
export interface Result {
  action: string;
  when: number;
  ended: number;
  by: string;
  outcome: 'done' | 'partial' | 'failed' | 'stopped';
  reason?: string;
  entries: number;
  changes: number;
  files: number;
  bytes: number;
  sent: number;
  failures: number;
  failed?: string[];
  skipped?: number;
}

/** The newest results of an action, the newest first. */
export const results = async (path: string, limit: number): Promise<Result[]> =>
  ((await act(path, 'runs', { limit })).result as { rows: Result[] }).rows;

/** What its page shows by itself. */
export const SHOWN = ['state', 'progress', 'began', 'by', 'entries', 'files', 'files_done', 'size', 'size_done', 'rate', 'time_left', 'limiter', 'last', 'last_outcome', 'last_reason', 'last_failed', 'recent'] as const;

/** Why an action is not offered now, or null. */
export function notNow(node: Node, action: string): string | null {
  const state = String(valueOf(node, 'state')?.value ?? '');
  const runs = state === 'running' || state === 'stopping';
  if (action === 'start' && runs) return 'A run is in progress.';
  if (action === 'stop' && state === 'stopping') return 'The run is being stopped.';
  if (action === 'stop' && !runs) return 'No run in progress.';
  return null;
}

/** What stands behind the outcome. */
export const why = ({ reason = '', failures, skipped = 0 }: Result): string =>
  [reason, failures > 0 ? `${failures} failed` : '', skipped > 0 ? `${skipped} scheduled runs skipped` : ''].filter((part) => part !== '').join(', ');

/** How much of a run is done, from 0 to 1; null as long as it is not known how much there is. */
export function share(node: Node): number | null {
  const [done, all] = ['size_done', 'size'].map((name) => Number(valueOf(node, name)?.value ?? 0)) as [number, number];
  return all > 0 ? Math.min(1, done / all) : null;
}
