// The cluster: what its page shows of heads and resources.
import type { Node } from '../api/tree.ts';
import { clock, day } from './format.ts';
import { text, texts } from './network.ts';

/** Where it is in the tree. */
export const CLUSTER = '/cluster';

/** Properties of its node that the page shows separately. */
export const OF_CLUSTER = ['state', 'reason', 'name', 'head'];

/** Properties of a resource that its page shows separately. */
export const OF_RESOURCE = ['state', 'takeover_at', 'takeover_from', 'takeover_to', 'takeover_cause', 'takeover_total', 'takeover_hand_over', 'takeover_claim', 'takeover_lock', 'takeover_start', 'takeover_address'];

export const isResource = (path: string): boolean => /^\/cluster\/resources\/[^/]+$/.test(path);

type Mark = { word: string; mark: 'good' | 'bad' | 'warn' | '' };

const RESOURCES: Record<string, Mark> = {
  served: { word: 'served', mark: 'good' },
  starting: { word: 'starting', mark: 'warn' },
  handing_over: { word: 'handing over', mark: 'warn' },
  unowned: { word: 'no owner', mark: 'bad' },
  failed: { word: 'failed', mark: 'bad' },
};
const HEADS: Record<string, Mark> = { member: { word: 'member', mark: 'good' }, draining: { word: 'draining', mark: 'warn' }, absent: { word: 'absent', mark: 'bad' } };

export const stateOf = (resource: Node): Mark => RESOURCES[text(resource, 'state')] ?? { word: text(resource, 'state'), mark: '' };
export const stateOfHead = (head: Node): Mark => HEADS[text(head, 'state')] ?? { word: text(head, 'state'), mark: '' };

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(' · ');

/** Owner, preferred owner and addresses of a resource in one line. */
export function ofResource(resource: Node): string {
  const [owner, preferred] = [text(resource, 'owner'), text(resource, 'preferred')];
  return joined(owner === '' ? 'no owner' : `owner ${owner}`, owner === preferred ? '' : `preferred owner ${preferred}`, text(resource, 'addresses'));
}

/** What a head owns, in one line. */
export function ofHead(head: Node): string {
  const owns = texts(head, 'owns');
  return joined(text(head, 'this_machine') === 'true' ? 'this machine' : '', owns.length === 0 ? 'owns nothing' : `owns ${owns.join(', ')}`);
}

const CAUSES: Record<string, string> = { command: 'requested', drain: 'drain', head_lost: 'lease over', server_ended: 'server ended', unreachable: 'link cut', start: 'first start' };

/** The last takeover of a resource in one line; empty without one. */
export function takeoverOf(resource: Node): string {
  const at = Number(text(resource, 'takeover_at'));
  const [from, to] = [text(resource, 'takeover_from'), text(resource, 'takeover_to')];
  if (to === '') return '';
  const moved = from === '' ? to : `${from} → ${to}`;
  return joined(at > 0 ? `${day(at)} ${clock(at)}` : 'in progress', moved, CAUSES[text(resource, 'takeover_cause')] ?? '', at > 0 ? `${text(resource, 'takeover_total')} ms` : '');
}

const PHASES = [['Hand-over', 'takeover_hand_over'], ['Claim', 'takeover_claim'], ['Fence and lock', 'takeover_lock'], ['Start', 'takeover_start'], ['Address', 'takeover_address']] as const;

/** The phases of the last takeover in order, each with its part of the whole; none until it is done. */
export function phasesOf(resource: Node): { name: string; ms: number; part: number }[] {
  const total = Number(text(resource, 'takeover_total'));
  if (text(resource, 'takeover_total') === '') return [];
  return PHASES.map(([name, property]) => {
    const ms = Number(text(resource, property));
    return { name, ms, part: total > 0 ? ms / total : 0 };
  });
}
