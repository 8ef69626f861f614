// Finding one's way in the tree: paths, addresses of pages, and what is declared at a path.
import type { Action, Context, Items, Node, NodeProperty, Property, Value } from '../api/tree.ts';
import { encodePath } from '../api/tree.ts';

/** What a path leads to. */
export interface Place {
  context: Context;
  /** If it is an item: of which kind. */
  item: Items | null;
  path: string;
}

/** The segments of `/shares/default/a`; none for the root. */
export const segments = (path: string): string[] => path.split('/').filter((part) => part !== '');

export const join = (path: string, name: string): string => (path === '/' ? `/${name}` : `${path}/${name}`);

export const nameOf = (path: string): string => segments(path).at(-1) ?? '';

export const parentOf = (path: string): string => `/${segments(path).slice(0, -1).join('/')}`;

/** The address of the page of a node is its path. */
export const href = (path: string): string => encodePath(path);

/** The path of the node whose page has this address. */
export function pathOf(address: string): string {
  try {
    return `/${segments(address).map(decodeURIComponent).join('/')}`;
  } catch {
    return address;
  }
}

/** Every place from the root to a path, or null if the declaration has no such path. */
export function way(tree: Context, path: string): Place[] | null {
  const found: Place[] = [{ context: tree, item: null, path: '/' }];
  for (const segment of segments(path)) {
    const { context, path: above } = found.at(-1) as Place;
    const child = context.children.find(({ name }) => name === segment);
    const items = child === undefined ? context.items : null;
    if (child === undefined && !items) return null;
    found.push({ context: child ?? (items as Items).context, item: items, path: join(above, segment) });
  }
  return found;
}

export const placeAt = (tree: Context, path: string): Place | null => way(tree, path)?.at(-1) ?? null;

export const propertyAt = (tree: Context, path: string, name: string): Property | undefined =>
  placeAt(tree, path)?.context.properties.find((property) => property.name === name);

/** What a place is called: items by their own name. */
export const titleOf = (place: Place): string => (place.item === null ? place.context.title : nameOf(place.path));

export const valueOf = (node: Node | undefined, name: string): NodeProperty | undefined =>
  node?.properties.find((property) => property.name === name);

/** Where a value comes from, in words. */
export function sourceOf(property: NodeProperty | undefined, declared: Property): string {
  if (property === undefined) return '';
  if (declared.role === 'secret') return property.set ? 'set, not shown' : 'not set';
  if (declared.role === 'at-create') return 'set at creation';
  if (property.source === 'inherited') return property.from ? `inherited from ${property.from}` : 'inherited';
  return property.source;
}

/** Whether a property is of use where others have these values. */
export const applies = ({ only_if: only }: Property, value: (name: string) => Value | undefined): boolean =>
  !only || only.values.includes(String(value(only.property) ?? ''));

/** Why a property cannot be changed now, or null if it can. */
export function fixedBy(node: Node, property: NodeProperty | undefined, declared: Property): string | null {
  if (declared.role === 'at-create') return 'This can only be set at creation.';
  if (!node.may.change) return node.may.why || 'Your role has read-only access.';
  if (property?.why) return property.why;
  if (property?.source === 'command line') return 'Set on the command line, which overrides the configuration while this server runs.';
  return null;
}

/** Actions of a node that its state offers, as they are declared. What only shows something has a page of its own. */
export const actionsOf = (context: Context, node: Node): Action[] =>
  context.actions.filter(({ name, reads }) => node.actions.includes(name) && reads !== true);

const isNothing = (value: Value | undefined): boolean => value === null || value === undefined || value === '';

/** At most so many columns beside the name fit into a table. */
const COLUMNS_MAX = 5;
/** Longer texts belong on the page of the item, not in a table. */
const isBroad = ({ kind, role, required }: Property): boolean =>
  role === 'secret' || (role === 'at-create' && required !== true) || (kind.type === 'text' && kind.shape === 'lines') || (kind.type === 'text' && /pem|sshkey|ssh-key/i.test(kind.shape ?? '')) || (kind.type === 'list' && /ssh/i.test(kind.of?.shape ?? ''));

const isState = ({ name, role }: Property): boolean => name === 'state' && role === 'state';

/**
 * Which properties of items stand in their table: of those, if there are some, that any of them has. Whether an
 * item works comes first: a narrow window has no room for more than two.
 */
export function columns(context: Context, of: Node[] = []): Property[] {
  const says = ({ name }: Property): boolean => of.length === 0 || of.some((node) => !isNothing(valueOf(node, name)?.value));
  const told = context.properties.filter((property) => !isBroad(property) && says(property));
  const shown = [...told.filter(isState), ...told.filter((property) => !isState(property))];
  // What says itself in a sentence need not be told word by word.
  return (shown.some(isSentence) ? shown.filter(({ role }) => role === 'state').slice(0, COLUMNS_MAX - 2) : shown).slice(0, COLUMNS_MAX);
}

/** The text that says all that was set. */
export const isSentence = ({ name, role }: Property): boolean => name === 'sentence' && role === 'state';

/** A page, an item or a property that the search can jump to. */
export interface TreeHit {
  /** Page, Setting, State, or the noun of an item. */
  kind: string;
  name: string;
  detail: string;
  href: string;
}

function below(context: Context, path: string, titles: string[], into: TreeHit[]): void {
  const here = [...titles, context.title];
  into.push({ kind: 'Page', name: here.join(' › '), detail: context.help, href: href(path) });
  for (const property of context.properties) {
    const kind = property.role === 'state' ? 'State' : 'Setting';
    into.push({ kind, name: `${context.title}: ${property.title}`, detail: `${path.slice(1).replaceAll('/', ' ')} ${property.name}`,
      href: `${href(path)}?property=${encodeURIComponent(property.name)}` });
  }
  for (const child of context.children) below(child, join(path, child.name), here, into);
}

/** All pages and properties below those contexts of the root that have pages made from the tree. */
export function treeHits(tree: Context | null, places: readonly string[]): TreeHit[] {
  const found: TreeHit[] = [];
  for (const context of tree?.children ?? []) {
    if (places.includes(context.name)) below(context, `/${context.name}`, [], found);
  }
  return found;
}

/** What tells one item from another at a glance: its first values that are words. */
const about = (node: Node): string =>
  node.properties.filter(({ value }) => typeof value === 'string' && value !== '').slice(0, 2).map(({ value }) => String(value)).join(', ');

/** The items that users made, at a node and below it, as far as it was read: of some only the name. */
export function itemHits(tree: Context | null, node: Node): TreeHit[] {
  const place = tree === null ? null : placeAt(tree, node.path);
  if (place === null) return [];
  const hit = (noun: string, path: string, detail: string): TreeHit =>
    ({ kind: noun.charAt(0).toUpperCase() + noun.slice(1), name: nameOf(path), detail: [path, detail].filter((part) => part !== '').join(' · '), href: href(path) });
  const own = place.item === null ? [] : [hit(place.item.noun, node.path, about(node))];
  const unread = node.items.filter((name) => !(name in node.below)).map((name) => hit(place.context.items?.noun ?? 'item', join(node.path, name), ''));
  return [...own, ...unread, ...Object.values(node.below).flatMap((one) => itemHits(tree, one))];
}
