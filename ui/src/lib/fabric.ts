// The InfiniBand fabric: what its page shows of each node, port and link.
import type { Node } from '../api/tree.ts';
import { bytes } from './format.ts';
import { byName } from './names.ts';
import { text, texts } from './network.ts';

/** Where it is in the tree. */
export const FABRIC = '/maintenance/fabric';

/** Properties of its node that the page shows separately. */
export const OF_FABRIC = ['state', 'reason', 'subnet_manager', 'pkeys', 'problems', 'nodes_found', 'ports_linked', 'links_found'];

/** With more linked ports than this the page does not read every port. */
export const PORTS_READ_MAX = 512;

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(' · ');

export const ofNode = (node: Node): string =>
  joined(text(node, 'kind'), text(node, 'lid') === '' ? '' : `LID ${text(node, 'lid')}`, `${text(node, 'linked') || 0} of ${text(node, 'ports') || 0} ports linked`);

export const ofLink = (link: Node): string => joined(text(link, 'width'), text(link, 'speed'));

export const isNarrow = (link: Node): boolean => text(link, 'below_maximum') === 'true';

export const isLinked = (port: Node): boolean => text(port, 'physical') === 'link up';

/** Rates of a port in both directions; without counters why there are none. */
export function ofPort(port: Node): string {
  const counters = text(port, 'counters');
  const rate = (name: string): string => `${bytes(Number(text(port, name)))}/s`;
  return /^\d+ bits$/.test(counters) ? `in ${rate('rate_in')} · out ${rate('rate_out')}` : `no counters: ${counters}`;
}

export const errorsOf = (port: Node): string => texts(port, 'errors').join(', ');

export const errorsGrow = (port: Node): boolean => text(port, 'errors_grow') === 'true';

/** The state of a port in a word: the logical one where the link is up. */
export function stateOf(port: Node): { word: string; mark: 'good' | 'bad' | 'warn' | '' } {
  if (!isLinked(port)) return { word: text(port, 'physical') || text(port, 'state'), mark: '' };
  const word = text(port, 'state');
  return { word, mark: word === 'active' ? 'good' : 'warn' };
}

/** What needs attention first, then by name. */
export const narrowFirst = (a: Node, b: Node): number => Number(isNarrow(b)) - Number(isNarrow(a)) || byName(a.name, b.name);
const attention = (port: Node): number => (errorsGrow(port) ? 2 : errorsOf(port) !== '' ? 1 : 0);
export const errorsFirst = (a: Node, b: Node): number => attention(b) - attention(a) || byName(a.name, b.name);
