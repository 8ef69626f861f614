// Which properties of an alert are words of its sentence; the others have fields below it.

import { clock, day } from '../lib/format.ts';

/** Where alerts are in the tree. */
export const ALERTS = '/configuration/alerts';

export const WORDS = ['when', 'statistic', 'condition', 'limit', 'days_left', 'for', 'days', 'from', 'until', 'mail', 'webhook', 'syslog', 'keep', 'keep_for', 'repeat'] as const;

export const isAlert = (path: string): boolean => path.startsWith(`${ALERTS}/`);

/** `2026-11-21 13:00:00 what happened`, with its time in the viewer's zone. */
export function said(line: string): { when: string; what: string } {
  const at = Date.parse(`${line.slice(0, 10)}T${line.slice(11, 19)}Z`) / 1000;
  return Number.isNaN(at) ? { when: '', what: line } : { when: `${day(at)} ${clock(at)}`, what: line.slice(20) };
}
