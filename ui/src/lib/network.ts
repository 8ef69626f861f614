// The network of the machine: what its page shows of each node, and where the administration is after
// a change of its address.
import type { Node, Value } from '../api/tree.ts';
import { valueOf } from './tree.ts';

/** Where it is in the tree. */
export const NETWORK = '/configuration/network';

export const isNetwork = (path: string): boolean => path === NETWORK || path.startsWith(`${NETWORK}/`);

/** Properties and actions of its node that the page shows separately. */
export const SHOWN = ['state', 'reason', 'time_left', 'steps', 'problem', 'confirm', 'revert'] as const;

export const text = (node: Node | undefined, name: string): string => {
  const value = valueOf(node, name)?.value ?? '';
  return Array.isArray(value) ? value.map(String).join(', ') : String(value);
};

export const texts = (node: Node | undefined, name: string): string[] => {
  const value = valueOf(node, name)?.value;
  return Array.isArray(value) ? value.map(String) : [];
};

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(' · ');
const named = (word: string, value: string): string => (value === '' || value === '0' ? '' : `${word} ${value}`);

/** A device in one line. */
export const ofDevice = (node: Node): string =>
  joined(text(node, 'kind'), text(node, 'speed'), named('MTU', text(node, 'mtu')), named('used by', text(node, 'used_by')));

/** Its hardware address and its IP addresses, a line each. */
export const ofDeviceMore = (node: Node): string[] =>
  [text(node, 'mac'), ...texts(node, 'addresses')].filter((one) => /[^0:]/.test(one));

const MODES: Record<string, string> = { 'active-backup': 'Active-backup', lacp: 'LACP' };

/** What a datalink is made of, as it is configured. */
export function ofDatalink(node: Node): string {
  const mode = text(node, 'mode');
  const made: Record<string, string> = {
    device: 'Device',
    vlan: `VLAN ${text(node, 'id')} on ${text(node, 'link')}`,
    aggregation: joined(`${MODES[mode] ?? mode} of ${text(node, 'links')}`, mode === 'lacp' ? text(node, 'policy') : named('primary', text(node, 'primary'))),
    partition: `Partition ${text(node, 'pkey')} on ${text(node, 'link')}`,
  };
  return joined(made[text(node, 'class')] ?? '', named('MTU', text(node, 'found_mtu') || text(node, 'mtu')));
}

/** Which datalinks an interface uses, and how it gets addresses other than those that are listed. */
export function ofInterface(node: Node): string {
  const [links, standbys] = [texts(node, 'links'), texts(node, 'standbys')];
  const named = links.map((one) => (standbys.includes(one) ? `${one} (standby)` : one)).join(', ');
  return joined(links.length > 1 ? `Group of ${named}` : `On ${named}`,
    valueOf(node, 'v4dhcp')?.value === true ? 'DHCP' : '', valueOf(node, 'v6auto')?.value === true ? 'router advertisements' : '');
}

/** The addresses that an interface has, or those that it is to have. */
export function addressesOf(node: Node): string[] {
  const found = texts(node, 'found').filter((one) => !one.toLowerCase().startsWith('fe80:'));
  return found.length > 0 ? found : [...texts(node, 'v4addrs'), ...texts(node, 'v6addrs')];
}

/** Where this page is once the administration has another address; null: where it is now. */
export function urlAt({ protocol, hostname, port }: Pick<Location, 'protocol' | 'hostname' | 'port'>, address: Value): string | null {
  if (typeof address !== 'string' || address === '') return null;
  const host = address.includes(':') ? `[${address}]` : address;
  if (host.toLowerCase() === hostname.toLowerCase()) return null;
  return `${protocol}//${host}${port === '' ? '' : `:${port}`}${NETWORK}`;
}
