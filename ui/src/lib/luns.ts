// A logical unit as its node tells it: how full it is, who uses it, how to use it.
import type { Node, Value } from '../api/tree.ts';
import { valueOf } from './tree.ts';

const value = (node: Node | undefined, name: string): Value => valueOf(node, name)?.value ?? null;
const texts = (node: Node | undefined, name: string): string[] => {
  const list = value(node, name);
  return Array.isArray(list) ? list.map(String) : [];
};

/** The name of the node below a project. */
export const LUNS = 'luns';
/** What stands above the settings in a form of its own. */
export const SHOWN = ['connect', 'size', 'allocated'];

/** Bytes that initiators see, and those that are taken, or null if it is not open. */
export function space(node: Node | undefined): { size: number; allocated: number | null } | null {
  const [size, allocated] = [value(node, 'size'), value(node, 'allocated')];
  if (typeof size !== 'number') return null;
  return { size, allocated: typeof allocated === 'number' ? allocated : null };
}

/** Why initiators cannot use it, or null if they can. */
export function offline(node: Node | undefined): string | null {
  if (value(node, 'state') !== 'offline') return null;
  const reason = value(node, 'reason');
  return typeof reason === 'string' && reason !== '' ? reason : 'It cannot be served.';
}

/** Who may use it. */
export function group(node: Node | undefined): string {
  const name = value(node, 'initiatorgroup');
  return typeof name === 'string' && name !== '' ? name : 'secret of SAN';
}

/** Its number at its targets. */
export function number(node: Node | undefined): string {
  const found = value(node, 'number');
  return typeof found === 'number' ? String(found) : '–';
}

/** Initiators that use it now. */
export const users = (node: Node | undefined): string[] => texts(node, 'initiators');

/** Lines to type to use it: the program that each is for, and the line. */
export function ways(node: Node | undefined): { program: string; line: string }[] {
  return texts(node, 'connect').map((line) => ({ program: line.startsWith('qemu') ? 'QEMU' : 'Linux', line }));
}
