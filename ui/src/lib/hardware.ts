// The hardware of the machine and its problems: what their pages show of each node.
import type { Node } from '../api/tree.ts';
import { bytes } from './format.ts';
import { text, texts } from './network.ts';

/** Where they are in the tree. */
export const HARDWARE = '/maintenance/hardware';
export const PROBLEMS = '/maintenance/problems';

/** Which page a path below the hardware has: that of a slot, of a disk, or a general one. */
export function pageOf(path: string): 'all' | 'slot' | 'disk' | 'problems' | null {
  if (path === HARDWARE) return 'all';
  if (path === PROBLEMS) return 'problems';
  const [kind, name, more] = path.startsWith(`${HARDWARE}/`) ? path.slice(HARDWARE.length + 1).split('/') : [];
  if (name === undefined || more !== undefined) return null;
  return kind === 'slots' ? 'slot' : kind === 'disks' ? 'disk' : null;
}

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join(' · ');
const amount = (node: Node, name: string, unit: string): string => (text(node, name) === '' ? '' : `${text(node, name)} ${unit}`);
const size = (node: Node): string => (Number(text(node, 'size')) > 0 ? bytes(Number(text(node, 'size'))) : '');

export const ofCpu = (node: Node): string =>
  text(node, 'state') === 'empty' ? 'Empty' : joined(text(node, 'model') || text(node, 'manufacturer'), amount(node, 'cores', 'cores'), amount(node, 'threads', 'threads'), amount(node, 'speed', 'MHz'));

/** A module in one line; its errors apart. */
export const ofModule = (node: Node): string =>
  text(node, 'state') === 'empty' ? 'Empty' : joined(size(node), text(node, 'type'), amount(node, 'speed_configured', 'MT/s') || amount(node, 'speed', 'MT/s'), text(node, 'part'));

export function errorsOf(node: Node): string {
  const [corrected, uncorrected] = [Number(text(node, 'corrected_errors')), Number(text(node, 'uncorrected_errors'))];
  return joined(uncorrected > 0 ? `${uncorrected} uncorrected errors` : '', corrected > 0 ? `${corrected} corrected errors` : '');
}

export const ofSlot = (node: Node): string =>
  text(node, 'state') === 'empty' ? 'Empty' : joined(text(node, 'class'), text(node, 'device'), texts(node, 'adapters').join(', '));

export const isBelowMaximum = (node: Node): boolean => text(node, 'below_maximum') === 'true';

export const ofDisk = (node: Node): string =>
  joined(text(node, 'bay'), size(node), text(node, 'type') === 'rotating' ? 'Hard disk' : 'SSD', text(node, 'transport').toUpperCase(), texts(node, 'devices').join(', '),
    text(node, 'pool') === '' ? '' : `pool ${text(node, 'pool')}`);

/** The state of a disk in a word, and whether it is good, bad or neither. */
export function stateOf(node: Node): { word: string; mark: 'good' | 'bad' | 'warn' | '' } {
  const state = text(node, 'state');
  if (state !== 'present') return { word: state, mark: 'bad' };
  const health = text(node, 'health');
  const marks: Record<string, 'good' | 'bad' | 'warn'> = { healthy: 'good', failing: 'bad', 'pre-failure': 'warn' };
  return { word: health === 'unknown' ? 'health unknown' : health, mark: marks[health] ?? '' };
}

/** The order of severities, the most urgent first. */
export const SEVERITIES = ['critical', 'major', 'minor'];
export const byUrgency = (a: Node, b: Node): number =>
  SEVERITIES.indexOf(text(a, 'severity')) - SEVERITIES.indexOf(text(b, 'severity')) || Number(text(a, 'since')) - Number(text(b, 'since'));

/** Properties that these pages show apart from the others. */
export const OF_SLOT = ['state', 'link', 'below_maximum', 'device', 'class'];
export const OF_DISK = ['state', 'health', 'reason', 'errors'];
