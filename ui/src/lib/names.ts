// Names of items: their order, and those that go on from what was typed.

const collator = new Intl.Collator(undefined, { numeric: true });

/** Order of names: numbers in them by their value. */
export const byName = (a: string, b: string): number => collator.compare(a, b);

/** So many are proposed at once. */
const PROPOSED_MAX = 50;

/** Those that go on from what was typed: they begin with it, or contain it. */
export function continued(names: string[], typed: string): string[] {
  const text = typed.trim().toLowerCase();
  const found = names.filter((name) => name.toLowerCase().includes(text));
  const first = found.filter((name) => name.toLowerCase().startsWith(text));
  return [...first, ...found.filter((name) => !first.includes(name))].slice(0, PROPOSED_MAX);
}
