// Invented locks of WebDAV, and releasing one.

const now = () => Math.floor(Date.now() / 1000);
const lock = (n, user, host, file, more = {}) => ({
  id: `0f3c2a1${n}-7be4`, user, client: `192.0.2.${20 + n}`, label: `192.0.2.${20 + n} (${host})`, file, share: file.split('/')[1],
  scope: 'exclusive', depth: '0', owner: user, since: now() - 400 * n, timeout_s: 600, left_s: 600 - 37 * n, ...more,
});

let locks = [
  lock(1, 'anna', 'laptop', '/home/anna/plan.odt', { owner: 'Anna Berg, mailto:anna@example.org' }),
  lock(2, 'bert', 'mac-mini', '/projects/a/very/deep/path/with/many/parts/until/it/is/too/long/for/a/line/drawing.svg', { scope: 'shared' }),
  lock(3, 'carla', 'build-server-with-a-long-name-17', '/projects/release', { depth: 'infinity', timeout_s: 86_400, left_s: 71_234 }),
  lock(4, 'a-user-with-a-rather-long-name', 'x', '/home/notes.txt', { client: null, label: 'unknown', since: null, owner: '' }),
];

/** Answers what is below `/services/http`: status and body; null for what is not there. */
export function webdav(method, path) {
  if (method === 'GET' && path === '/locks') return [200, { rows: locks, more: false }];
  const id = method === 'DELETE' ? path.match(/^\/locks\/([^/]+)$/)?.[1] : undefined;
  const one = locks.find((known) => known.id === id);
  if (one === undefined) return null;
  locks = locks.filter((known) => known !== one);
  return [200, one];
}
