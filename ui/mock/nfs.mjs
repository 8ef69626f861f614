// Invented clients of NFS, what they hold, and ending one.

const HEX = (n) => `nfs4-9c2f11aa${n.toString(16).padStart(8, '0')}`;

const client = (n, host, more = {}) => ({
  id: HEX(n), protocol: 'nfs4', version: '4.2', addresses: [`192.0.2.${20 + n}`], label: `192.0.2.${20 + n} (${host})`,
  name: `Linux NFSv4.2 ${host}.example.org`, principal: 'root', state: 'active', silent_s: 0.4 + (n * 7) % 40,
  sessions: 1, opens: (n * 5) % 17, locks: n % 4, waiting: 0, delegations: n % 3, ...more,
});

let clients = [
  client(1, 'anna'), client(2, 'bert'), client(3, 'carla', { version: '4.0', sessions: 0, name: String.raw`Linux NFSv4.0 carla/192.0.2.10\x00` }),
  client(4, 'dora', { state: 'courtesy', silent_s: 5412, opens: 2, locks: 1 }), client(5, 'build-server-with-a-long-name-17', { opens: 1243, locks: 88, waiting: 3 }),
  { ...client(6, 'emil'), id: 'nlm-0000000000000001', protocol: 'nlm', version: '3', name: 'emil', sessions: 0, opens: 0, locks: 2, delegations: 0, silent_s: null, principal: 'none' },
];

const FILES = ['/export/projects/build/out/lib.a', '/export/home/anna/mail/inbox.db', '/export/projects/a/very/deep/path/with/many/parts/until/it/is/too/long/for/a/line/data.sqlite', 'inode 73924 in home'];
const owner = (n) => String.raw`open id:\x00\x00\x00\x1e\x00${n}`;

const opens = (one) => Array.from({ length: one.opens }, (_, n) => ({
  client: one.id, protocol: one.protocol, label: one.label, file: FILES[n % FILES.length], share: 'projects',
  kind: 'open', access: ['read', 'both', 'write'][n % 3], deny: n % 7 === 6 ? 'write' : 'none', owner: owner(n),
})).concat(Array.from({ length: one.delegations }, (_, n) => ({
  client: one.id, protocol: one.protocol, label: one.label, file: FILES[n], share: 'projects',
  kind: n === 1 ? 'recall' : 'delegation', access: 'read', deny: 'none', owner: owner(n),
})));

const locks = (one) => Array.from({ length: one.locks + one.waiting }, (_, n) => ({
  client: one.id, protocol: one.protocol, label: one.label, file: FILES[(n + 1) % FILES.length], share: 'home',
  kind: n % 2 ? 'read' : 'write', offset: n % 3 ? 1_073_741_824 + n : 0, length: n % 3 ? 510 : null,
  waiting: n >= one.locks, owner: owner(n),
}));

/** Answers what is below `/services/nfs`: status and body; null for what is not there. */
export function nfs(method, path, query) {
  const list = (rows) => [200, { rows, more: false }];
  if (method === 'GET' && path === '/clients') return list(clients);
  const ended = method === 'DELETE' ? path.match(/^\/clients\/([^/]+)$/) : null;
  const id = ended ? decodeURIComponent(ended[1]) : query.get('client');
  const one = clients.find((known) => known.id === id);
  if (one === undefined) return null;
  if (ended) {
    clients = clients.filter((known) => known !== one);
    return [200, one];
  }
  if (path === '/opens') return list(opens(one));
  return path === '/locks' ? list(locks(one)) : null;
}
