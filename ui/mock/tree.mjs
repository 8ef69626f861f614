// An invented tree with memory: nodes, changes as transactions, revisions, audit, log. It checks less
// than the server does, but refuses what the pages must be able to show.
import { Cluster, isCluster } from './cluster.mjs';
import { TREE } from './declared.mjs';
import { Hardware, isHardware } from './hardware.mjs';
import { DEVICES, FIRST, Network, PREFIX } from './network.mjs';
import { isStorage, Pools } from './pools.mjs';

const segments = (path) => path.split('/').filter((part) => part !== '');
const now = () => Math.floor(Date.now() / 1000);
const START = now() - 93_784;

/** What was set: path → property → value. Items are paths with a table, even if it is empty. */
const first = () => ({
  '/shares/default': {}, '/shares/render': { nfs_exceptions: ['192.0.2.0/24(rw,root_squash)', '*(ro)'] },
  '/shares/default/projects': { directory: '/tank/projects' }, '/shares/default/home': { directory: '/tank/home', nfs_exceptions: ['192.0.2.0/24(rw,root_squash)', '*(ro,all_squash)'] },
  '/shares/render/archive': { directory: '/tank/archive', read_only: true },
  '/configuration/users/admin': { full_name: 'Ines Admin', kind: 'administrator', roles: ['administrator'] },
  '/configuration/users/tomas': { full_name: 'Tomás Ruiz', kind: 'administrator', roles: ['operator'] },
  '/configuration/users/render': { enabled: false },
  '/configuration/roles/administrator': { permissions: ['*'] }, '/configuration/roles/operator': { permissions: ['*:read', 'sessions:change', 'clients:change'] },
  '/configuration/roles/data': { permissions: [] },
  '/configuration/tokens/backup': { role: 'operator', ends: now() + 30 * 86_400 },
  '/configuration/services/nfs': { lease: 60 }, ...FIRST(),
});
const SPACE = { projects: [4e12, 1.31e12], home: [2e12, 9.2e11], archive: [8e12, 3.4e11] };

class Problem extends Error {
  constructor(status, failed, hint, path = null, property = null) {
    super(failed);
    Object.assign(this, { status, failed, hint, path, property });
  }
}

export class Tree {
  document = first();
  secrets = new Set(['/configuration/users/admin password', '/configuration/users/tomas password']);
  revisions = [];
  entries = [];
  sessions = { 's-1': { user: 'admin', from: '192.0.2.7', started: START, idle: 3 }, 's-2': { user: 'tomas', from: '192.0.2.9', started: START + 4000, idle: 412 } };
  listeners = new Set();
  network = new Network();
  hardware = new Hardware();
  pools = new Pools();
  cluster = new Cluster();

  constructor() {
    const before = structuredClone(this.document);
    delete before['/configuration/services/nfs'].lease;
    this.revisions.push({ revision: 12, when: now() - 86_400, who: 'admin', from: '192.0.2.7', comment: '', changes: 9, document: before });
    this.revisions.push({ revision: 13, when: now() - 5400, who: 'tomas', from: 'local', comment: 'Shorter lease for the tests in the hall', changes: 1, document: structuredClone(this.document) });
    this.entries.push({ when: now() - 5400, who: 'tomas', from: 'local', path: '/configuration/services/nfs', property: 'lease', before: 90, after: 60 });
    this.entries.push({ when: now() - 4000, who: 'tomas', from: '192.0.2.9', path: '/', action: 'sign in', before: null, after: null });
  }

  get revision() {
    return this.revisions.at(-1).revision;
  }

  place(path, document = this.document) {
    let found = { context: TREE, items: null };
    let at = '';
    for (const segment of segments(path)) {
      at += `/${segment}`;
      const child = found.context.children.find(({ name }) => name === segment);
      const { items } = found.context;
      const there = items && (items.origin === 'live' ? segment in this.liveAt(isHardware(at) || isStorage(at) || isCluster(at) ? at.slice(0, at.lastIndexOf('/')) : at) : at in document);
      if (!child && !there) throw new Problem(404, `there is no ${at}`, 'List what is above it.', at);
      found = child ? { context: child, items: null } : { context: items.context, items };
    }
    return found;
  }

  liveAt(path) {
    if (isHardware(path)) return this.hardware.listAt(path);
    if (isStorage(path)) return this.pools.listAt(path);
    if (isCluster(path)) return this.cluster.listAt(path);
    return path.startsWith(PREFIX) ? DEVICES : this.sessions;
  }

  itemsOf(path, context, document = this.document) {
    if (!context.items) return [];
    if (context.items.origin === 'live') return Object.keys(this.liveAt(path));
    return Object.keys(document).filter((one) => one.startsWith(`${path}/`) && !one.slice(path.length + 1).includes('/')).map((one) => one.slice(path.length + 1)).sort();
  }

  /** The value in force and where it comes from. */
  effective(path, property) {
    const own = this.document[path]?.[property.name];
    if (own !== undefined) return { value: own, source: 'set', from: null };
    const parts = segments(path);
    if (parts[0] === 'shares' && parts.length === 3) {
      const above = `/${parts.slice(0, 2).join('/')}`;
      const value = this.document[above]?.[property.name];
      if (value !== undefined) return { value, source: 'inherited', from: above };
    }
    return { value: property.default, source: 'default', from: null };
  }

  live(path, name) {
    if (isHardware(path)) return this.hardware.live(path, name);
    if (isStorage(path)) return this.pools.live(path, name);
    if (isCluster(path)) return this.cluster.live(path, name);
    if (path.startsWith(PREFIX)) return this.network.live(path, name, this.document);
    const parts = segments(path);
    if (parts[1] === 'sessions') return this.sessions[parts[2]]?.[name] ?? null;
    if (path === '/maintenance/system') return { version: '0.1.0', state_folder: '/var/lib/plimsoll/tank', pid: 4711, uptime: now() - START }[name];
    if (parts[0] === 'shares') return this.ofShare(parts[2], name);
    if (parts[1] === 'services') {
      const on = this.document[path]?.enabled ?? true;
      const log = ['2026-11-21 09:12:44 warning: 1 TLS connections to NFS failed, the last from 192.0.2.24: no certificate', '2026-11-21 11:40:02 info: mia restarts NFS'];
      const told = { state: on ? 'online' : 'disabled', reason: on ? null : 'disabled by mia at 2026-11-21 12:00:00 UTC', connections: on ? 9 : 0, clients: on ? 3 : 0, log };
      if (name in told) return told[name];
    }
    return { state: 'online', uptime: now() - START, listen: '192.0.2.10:12049', connections: 9, last_sign_in: START }[name] ?? null;
  }

  ofShare(share, name) {
    const [total, available] = SPACE[share] ?? [null, null];
    const mount = ['3', '4.2'].map((version) => `mount -t nfs -o vers=${version},proto=tcp,port=12049${version === '3' ? ',mountport=12049,mountproto=tcp,nolock' : ''} 192.0.2.10:/export/${share} /mnt`);
    const lost = total === null;
    return { total, available, mount: lost ? [] : mount, state: lost ? 'offline' : 'online', reason: lost ? 'there is no such directory' : null, holders: lost ? [] : ['192.0.2.21', '192.0.2.24'] }[name] ?? null;
  }

  propertyOf(path, property, who) {
    const { name, role } = property;
    if (role === 'state') return { name, role, value: this.live(path, name), source: 'state', from: null };
    if (role === 'secret') return { name, role, value: null, source: 'set', from: null, set: this.secrets.has(`${path} ${name}`) };
    const found = { name, role, ...this.effective(path, property) };
    return path === '/configuration/services/nfs' && name === 'domain' && !who.settable
      ? { ...found, value: 'example.org', source: 'command line', why: '--nfs-domain was given on the command line: it wins as long as this server runs.' } : found;
  }

  node(path, depth, who) {
    const { context, items } = this.place(path);
    const below = (names) => (depth > 0 ? names.map((name) => this.node(`${path}/${name}`, depth - 1, who)) : names);
    const locked = path.startsWith(PREFIX) ? this.network.reason : null;
    const why = who.may ? locked : `Your role operator has no ${context.scope}:change.`;
    return {
      path, name: segments(path).at(-1) ?? '', title: context.title, help: context.help, revision: this.revision,
      properties: context.properties.map((property) => this.propertyOf(path, property, who)),
      children: below(context.children.map(({ name }) => name)), items: below(this.itemsOf(path, context)), actions: context.actions.map(({ name }) => name),
      may: { change: why === null, why: why ?? '' }, item: items !== null,
    };
  }

  check(path, property, value) {
    const { kind } = property;
    const bad = (failed) => { throw new Problem(400, failed, property.example ? `Such as ${property.example}.` : '', path, property.name); };
    if (['setting', 'secret', 'at-create'].includes(property.role) === false) bad(`${property.name} can only be seen`);
    if (typeof value === 'number' && (value < kind.min || value > kind.max)) bad(`${value} is not from ${kind.min} to ${kind.max}`);
    if (kind.type === 'choice' && !kind.choices.some((choice) => choice.value === value)) bad(`${value} is none of ${kind.choices.map((choice) => choice.value).join(', ')}`);
    if (kind.of?.shape === 'export-rule') for (const rule of value) if (!/^[^\s()]+\([a-z_,=0-9]*\)$/.test(rule)) bad(`${rule} is not CLIENT(OPTIONS)`);
    if (kind.shape === 'path' && !value.startsWith('/')) bad(`${value} is not an absolute path`);
    if (kind.shape === 'host' && /\s/.test(value)) bad(`${value} is not the name of a host`);
    if (property.name === 'password' && value.length < 8) bad('it has fewer than 8 characters');
  }

  /** Applies one change to a copy; tells what changed. */
  one(document, secrets, change, told) {
    const note = (path, property, before, after, action = null) => told.changes.push({ path, property, action, before, after });
    const declared = (path, name) => {
      const found = this.place(path, document).context.properties.find((property) => property.name === name);
      if (!found) throw new Problem(404, `${path} has no ${name}`, 'See what it has.', path, name);
      return found;
    };
    if (change.create !== undefined) {
      const path = `${change.create}/${change.name}`;
      if (path in document) throw new Problem(409, `there is a ${change.name} already`, 'Choose another name.', path);
      if (!/^[A-Za-z0-9][\w.-]*$/.test(change.name)) throw new Problem(400, `${change.name} is not a name`, 'Letters, digits, dot, dash.', path);
      this.place(change.create, document);
      document[path] = {};
      note(path, null, null, null, 'create');
      for (const [property, value] of Object.entries(change.properties ?? {})) this.one(document, secrets, { set: path, property, value }, told);
      const { properties } = this.place(path, document).context;
      const lacking = properties.find((property) => property.required && document[path][property.name] === undefined
        && (!property.only_if || property.only_if.values.includes(document[path][property.only_if.property])));
      if (lacking) throw new Problem(400, `${lacking.name} is missing`, '', path, lacking.name);
    } else if (change.destroy !== undefined) {
      this.place(change.destroy, document);
      const gone = Object.keys(document).filter((path) => path === change.destroy || path.startsWith(`${change.destroy}/`));
      const what = gone.length > 1 ? `with it ${gone.length - 1} shares are no longer served` : change.destroy.startsWith('/shares') ? 'it is no longer served; 3 clients use it. Its files stay as they are' : 'it is gone with its settings';
      if (!change.confirm) throw new Problem(409, what, 'Confirm it.', change.destroy);
      for (const path of gone) delete document[path];
      note(change.destroy, null, null, null, 'destroy');
    } else if (change.rename !== undefined) {
      const to = `${change.rename.slice(0, change.rename.lastIndexOf('/'))}/${change.to}`;
      if (to in document) throw new Problem(409, `there is a ${change.to} already`, 'Choose another name.', to);
      for (const path of Object.keys(document)) {
        if (path !== change.rename && !path.startsWith(`${change.rename}/`)) continue;
        document[to + path.slice(change.rename.length)] = document[path];
        delete document[path];
      }
      note(change.rename, null, change.rename, to, 'rename');
    } else {
      const path = change.set ?? change.unset;
      const property = declared(path, change.property);
      const table = (document[path] ??= {});
      if (change.set !== undefined) this.check(path, property, change.value);
      if (property.role === 'secret') {
        secrets[change.set === undefined ? 'delete' : 'add'](`${path} ${property.name}`);
        note(path, property.name, null, '(secret)');
        return;
      }
      note(path, property.name, table[property.name] ?? property.default, change.value ?? property.default);
      if (change.set !== undefined) table[property.name] = change.value;
      else delete table[property.name];
    }
  }

  change(body, who) {
    const document = structuredClone(this.document);
    const secrets = new Set(this.secrets);
    const told = { revision: this.revision, changes: [], notes: [] };
    if (!who.may) throw new Problem(403, 'your role does not allow it', 'Ask an administrator.');
    if (body.revision !== undefined && body.revision < this.revision) {
      const touched = new Set(this.entries.filter((entry) => entry.revision > body.revision).map((entry) => entry.path));
      const both = (body.changes ?? []).map((change) => change.set ?? change.unset).find((path) => touched.has(path));
      if (both) throw new Problem(409, `${both} was changed by tomas a moment ago (revision ${this.revision})`, 'Look at it, then commit again.', both);
    }
    for (const change of body.changes ?? []) this.one(document, secrets, change, told);
    const ends = told.changes.some(({ path, property, after }) => path === '/configuration/services/nfs' && property === 'enabled' && after === false);
    if (ends) told.notes.push('NFS is disabled; disconnected: 3 clients with 9 connections');
    const moves = told.changes.filter(({ path }) => path.startsWith(`${PREFIX}/`));
    if (moves.length > 0 && this.network.reason !== null) throw new Problem(409, this.network.reason, '', PREFIX);
    if (body.dry_run) return told;
    if (moves.length > 0) this.unconfirmed(document, moves, told);
    return this.keep(document, secrets, told, body.comment ?? '', who);
  }

  /** A change of the network waits for its confirmation. */
  unconfirmed(document, moves, told) {
    const before = structuredClone(this.document);
    const within = document[PREFIX]?.confirm_within ?? 60;
    const plimsoll = { user: 'plimsoll', from: 'host', may: true };
    this.network.begin(within, moves.map(({ path, property }) => `change ${property ?? 'all'} of ${path.slice(PREFIX.length + 1)}`), () => this.put(before, 'not confirmed', false, plimsoll));
    told.notes.push(`the change is reverted in ${within} s unless it is confirmed: /configuration/network confirm`);
  }

  keep(document, secrets, told, comment, who) {
    [this.document, this.secrets] = [document, secrets];
    told.revision = this.revision + 1;
    const meta = { when: now(), who: who.user, from: who.from ?? '127.0.0.1' };
    this.revisions.push({ revision: told.revision, ...meta, comment, changes: told.changes.length, document: structuredClone(document) });
    for (const change of told.changes) this.entries.push({ ...meta, ...change, revision: told.revision });
    for (const listener of this.listeners) listener({ revision: told.revision, who: who.user, changes: told.changes });
    return told;
  }

  toml(document, revision) {
    const tables = Object.entries(document).filter(([, table]) => Object.keys(table).length > 0).sort();
    const lines = tables.map(([path, table]) => `\n["${path}"]\n${Object.entries(table).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join('\n')}`);
    return `# Plimsoll configuration, revision ${revision}\n${lines.join('\n')}\n`;
  }

  parse(text) {
    const document = Object.fromEntries(Object.keys(this.document).map((path) => [path, {}]));
    let table = null;
    text.split('\n').forEach((line, at) => {
      if (line.trim() === '' || line.startsWith('#')) return;
      const head = /^\["(.+)"\]$/.exec(line);
      const entry = /^(\w+) = (.+)$/.exec(line);
      if (head) table = document[head[1]] ??= {};
      else if (entry && table) table[entry[1]] = JSON.parse(entry[2]);
      else throw new Problem(400, `line ${at + 1} is not TOML`, 'Take an export as an example.');
    });
    return document;
  }

  differences(a, b) {
    const found = [];
    for (const path of [...new Set([...Object.keys(a), ...Object.keys(b)])].sort()) {
      for (const name of [...new Set([...Object.keys(a[path] ?? {}), ...Object.keys(b[path] ?? {})])].sort()) {
        const [before, after] = [a[path]?.[name] ?? null, b[path]?.[name] ?? null];
        if (JSON.stringify(before) !== JSON.stringify(after)) found.push({ path, property: name, before, after });
      }
    }
    return found;
  }

  at(n) {
    const found = this.revisions.find(({ revision }) => revision === n);
    if (!found) throw new Problem(404, `there is no revision ${n}`, 'See the history.');
    return found;
  }

  put(document, comment, dry, who) {
    const told = { revision: this.revision, changes: this.differences(this.document, document), notes: [] };
    return dry ? told : this.keep(document, this.secrets, told, comment, who);
  }

  act(path, action, who, given = {}) {
    const { context } = this.place(path);
    if (!context.actions.some(({ name }) => name === action)) throw new Problem(404, `${path} has no action ${action}`, '', path);
    if (path === PREFIX) {
      if (!this.network.waits) throw new Problem(409, 'no change waits for a confirmation', '', path);
      return { result: this.network.act(action) };
    }
    if (isHardware(path)) return { result: this.hardware.act(path) };
    if (isStorage(path)) return { result: this.pools.act(path, action, given) };
    if (isCluster(path)) return { result: this.cluster.act(path, action, given) };
    if (action === 'end') delete this.sessions[segments(path).at(-1)];
    else this.secrets.add(`${path} secret`);
    this.entries.push({ when: now(), who: who.user, from: '127.0.0.1', path, action, before: null, after: null });
    return { result: action === 'issue' ? { token: `plimsoll_${segments(path).at(-1)}_5f0c1d9b2e` } : null };
  }
}

const SAID = ['listening at 192.0.2.10:12049', 'client 192.0.2.21 (anna) has a lease', 'client 192.0.2.24 (dora) was silent for 90 s: its lease is over, it keeps what nobody else needs',
  'share projects: rules read', 'signed in: admin from 192.0.2.7', 'flush of /tank/home took 1.2 s'];
const LEVEL = ['info', 'debug', 'warning', 'info', 'info', 'error'];
const FILES = ['reports/2026/summary.pdf', 'raw/caf\\xe9.csv', 'images/disk image with a rather long name, which breaks.iso', 'notes.txt', 'video/interview.mkv'];
const PROTOCOLS = ['sftp', 'https', 'ftp', 'webdav', 'ftps', 'http'];
const OUTCOMES = [['complete', ''], ['complete', ''], ['complete', ''], ['cut', 'the connection ended'], ['complete', ''], ['refused', 'permission denied'], ['partial', 'closed before its end was read']];
/** Transfer `n`, counted back from the newest. */
const transfer = (n) => {
  const [protocol, [outcome, reason]] = [PROTOCOLS[n % 6], OUTCOMES[n % 7]];
  const secured = { sftp: ['SSH-2.0', 'aes256-gcm@openssh.com'], https: ['TLSv1.3', 'TLS13_AES_256_GCM_SHA384'], ftps: ['TLSv1.3', 'TLS13_AES_256_GCM_SHA384'] }[protocol];
  const end = now() - n * 97;
  return {
    start: new Date((end - 2) * 1000).toISOString(), end: new Date(end * 1000).toISOString(), protocol, direction: n % 3 === 0 ? 'upload' : 'download',
    share: n % 2 === 0 ? 'projects' : 'home', path: FILES[n % 5], user: n % 4 === 0 ? 'admin' : 'anna', client: `192.0.2.${7 + n % 3}`,
    bytes: outcome === 'refused' ? 0 : 4096 * (1 + n * n * 37), ...(n % 5 === 4 ? { offset: 1 << 20 } : {}), duration_us: 800 + n * 41_017,
    outcome, ...(reason ? { reason } : {}), ...(secured ? { security: secured[0], cipher: secured[1] } : {}),
  };
};

function transfers(query) {
  const asked = ['protocol', 'direction', 'outcome', 'user', 'client', 'share'].filter((name) => query.has(name));
  const rows = Array.from({ length: 240 }, (_, n) => transfer(n)).filter((row) => asked.every((name) => row[name] === query.get(name)));
  const limit = Number(query.get('limit') ?? 100);
  return { rows: rows.slice(0, limit), more: rows.length > limit };
}

export const logLine = (number, when) => ({ number, when: Math.floor(when), service: ['nfs', 'nfs', 'nfs', 'shares', 'administration', 'nfs'][number % 6], level: LEVEL[number % 6], text: SAID[number % 6] });

/** Answers what belongs to the tree: [status, body]; null for what does not. */
export function answer(tree, method, path, query, body, who) {
  try {
    return [200, route(tree, method, path, query, body, who)];
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    const { status, failed, hint, path: at, property } = problem;
    return [status, { error: { tried: method === 'GET' ? 'read it' : 'change it', failed, hint, path: at, property } }];
  }
}

const reads = (who, path) => {
  if (who.hidden?.some((hidden) => path === hidden || path.startsWith(`${hidden}/`))) throw new Problem(403, 'your role may not see this', 'Ask an administrator.', path);
};

function route(tree, method, path, query, body, who) {
  const is = (wanted, to) => method === wanted && path === to;
  const action = method === 'POST' ? /^\/nodes(\/.+)\/actions\/([^/]+)$/.exec(path) : null;
  if (is('GET', '/tree')) return TREE;
  if (action) return tree.act(action[1], action[2], who, body === '' ? {} : JSON.parse(body).parameters);
  if (method === 'GET' && path.startsWith('/nodes/')) {
    const of = path.slice('/nodes'.length);
    reads(who, of);
    return tree.node(of, Number(query.get('depth') ?? 0), who);
  }
  if (is('POST', '/changes')) return tree.change(JSON.parse(body), who);
  if (is('GET', '/configuration')) return tree.toml(tree.document, tree.revision);
  if (is('PUT', '/configuration')) return tree.put(tree.parse(body), 'imported', query.has('dry_run'), who);
  if (is('GET', '/configuration/history')) return tree.revisions.map(({ document: _, ...one }) => one);
  if (method === 'GET' && path.startsWith('/configuration/history/')) {
    const one = tree.at(Number(path.split('/').at(-1)));
    return tree.toml(one.document, one.revision);
  }
  if (is('GET', '/configuration/compare')) return { changes: tree.differences(tree.at(Number(query.get('from'))).document, tree.at(Number(query.get('to'))).document) };
  if (is('POST', '/configuration/restore')) {
    const { revision } = JSON.parse(body);
    return tree.put(structuredClone(tree.at(revision).document), `restored revision ${revision}`, false, who);
  }
  if (is('GET', '/audit')) {
    const rows = tree.entries.filter((entry) => entry.path.startsWith(query.get('path') ?? ''));
    return { rows: [...rows].reverse().slice(0, Number(query.get('limit') ?? 200)), more: false };
  }
  if (is('GET', '/transfers')) return transfers(query);
  if (is('GET', '/logs')) return { rows: Array.from({ length: 60 }, (_, n) => logLine(n, now() - (60 - n) * 37)), more: false };
  throw new Problem(404, 'there is no such request', 'See docs/protocols/api.md.');
}
