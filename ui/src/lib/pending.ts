// Changes that are not committed yet: a list in the order in which they were made, one entry for a
// property at most.
import type { ChangeRequest, NodeProperty, Value } from '../api/tree.ts';
import { same } from './kinds.ts';

/** Why a button cannot be used while what it began is under way. */
export const BUSY = 'Wait until the commit is done.';

export interface Pending {
  readonly path: string;
  readonly property: string;
  /** What it is called on the page. */
  readonly title: string;
  /** Back to the default, or to what it inherits. */
  readonly unset: boolean;
  readonly value: Value;
  readonly before: Value;
  readonly secret: boolean;
}

const is = (one: Pending, path: string, property: string): boolean => one.path === path && one.property === property;

export const find = (list: readonly Pending[], path: string, property: string): Pending | undefined =>
  list.find((one) => is(one, path, property));

/** Takes one change back. */
export const without = (list: readonly Pending[], path: string, property: string): Pending[] =>
  list.filter((one) => !is(one, path, property));

/** Everything at a node and below it is gone with the node. */
export const withoutNode = (list: readonly Pending[], path: string): Pending[] =>
  list.filter((one) => one.path !== path && !one.path.startsWith(`${path}/`));

/** A node has another name now. */
export const moved = (list: readonly Pending[], from: string, to: string): Pending[] =>
  list.map((one) => (one.path === from || one.path.startsWith(`${from}/`) ? { ...one, path: to + one.path.slice(from.length) } : one));

/** Whether setting it to this would change nothing. */
const isNothing = (change: Pending, now: NodeProperty): boolean => {
  if (change.secret) return change.unset && now.set !== true;
  return change.unset ? now.source !== 'set' : now.source === 'set' && same(change.value, now.value);
};

/** Adds a change, in place of an earlier one to the same property; one that changes nothing goes. */
export function put(list: readonly Pending[], change: Pending, now: NodeProperty): Pending[] {
  if (isNothing(change, now)) return without(list, change.path, change.property);
  const at = list.findIndex((one) => is(one, change.path, change.property));
  return at < 0 ? [...list, change] : list.map((one, place) => (place === at ? change : one));
}

/** A property as it is once the changes that were `sent` are committed. */
export function committed(now: NodeProperty, path: string, sent: readonly Pending[]): NodeProperty {
  const change = find(sent, path, now.name);
  return change === undefined ? now : { ...now, value: change.value, source: change.unset ? 'default' : 'set', set: !change.unset };
}

/** What is still pending once the changes that were `sent` are committed: what was made since. */
export function remaining(list: readonly Pending[], sent: readonly Pending[]): Pending[] {
  return list.filter((one) => !sent.includes(one)).map((one) => {
    const before = find(sent, one.path, one.property);
    return before === undefined || before.unset ? one : { ...one, before: before.secret ? null : before.value };
  });
}

/** As the server takes them. */
export const requests = (list: readonly Pending[]): ChangeRequest[] =>
  list.map(({ path, property, unset, value }) => (unset ? { unset: path, property } : { set: path, property, value }));

/** "1 change", "3 changes". */
export const counted = (n: number): string => `${n} change${n === 1 ? '' : 's'}`;
