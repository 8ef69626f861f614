/** Certificates in the tree: which of their properties belong together. */
import type { Node } from '../api/tree.ts';
import { valueOf } from './tree.ts';

/** The node of all certificates. */
const ALL = '/configuration/certificates';
/** The one that the server makes for itself. */
export const OWN = 'self-signed';

const SUPPLIED = ['chain', 'key'];
const ACME = ['domains', 'directory', 'terms_agreed', 'contacts', 'challenge', 'http_port', 'authorities'];

/** Whether this is the node of all certificates. */
export const isAll = (path: string): boolean => path.replace(/\/$/, '') === ALL;

/** Whether this is about certificates. */
export const isCertificates = (path: string): boolean => isAll(path) || path.startsWith(`${ALL}/`);

/** What a certificate has no use for, by where it comes from; and what is shown in another way. */
export function unused(node: Node): string[] {
  if (isAll(node.path)) return [];
  switch (valueOf(node, 'source')?.value) {
    case 'acme':
      return ['authority', ...SUPPLIED];
    case OWN:
      return ['authority', ...SUPPLIED, ...ACME];
    default:
      return ['authority', 'renews', ...ACME];
  }
}
