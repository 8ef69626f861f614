// What can stand in a field that names something else: proposed while one types, enforced by the
// server alone.
import { node as read } from '../api/tree.ts';
import { session } from './session.svelte.ts';

/** Where the things are whose names a property takes. */
const NAMED: Record<string, string> = {
  role: '/configuration/roles',
  roles: '/configuration/roles',
};

/** Whether there is anything to propose for a property of this name. */
export const isNaming = (property: string): boolean => property === 'share' || property in NAMED;

/** The names that there are; none if they cannot be read. */
export async function proposed(property: string): Promise<string[]> {
  if (property === 'share') return (session.status?.shares ?? []).map(({ name }) => name);
  const at = NAMED[property];
  return at === undefined ? [] : read(at).then(({ items }) => items, () => []);
}
