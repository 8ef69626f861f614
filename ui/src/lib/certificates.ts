/** Certificates in the tree: which of their properties belong together. */

/** The node of all certificates. */
const ALL = '/configuration/certificates';
/** The one that the server makes for itself. */
export const OWN = 'self-signed';

/** Whether this is the node of all certificates. */
export const isAll = (path: string): boolean => path.replace(/\/$/, '') === ALL;

/** Whether this is about certificates. */
export const isCertificates = (path: string): boolean => isAll(path) || path.startsWith(`${ALL}/`);

/** What is shown in another way. */
export const SHOWN: readonly string[] = ['authority'];
