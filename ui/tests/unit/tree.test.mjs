// Pages made from the tree, as far as they need no page: values by kind, pending changes, paths.
import test from 'node:test';
import assert from 'node:assert/strict';
import { nodeOf, encodePath } from '../../src/api/tree.ts';
import { allowed, asText, exactBytes, exactSeconds, localTime, read, readLocalTime, show, showWithUnit, side, wrongWith } from '../../src/lib/kinds.ts';
import * as pending from '../../src/lib/pending.ts';
import { applies, columns, fixedBy, href, join, nameOf, parentOf, pathOf, placeAt, itemHits, sourceOf, titleOf, treeHits, way } from '../../src/lib/tree.ts';
import { access, nfsMounts } from '../../src/lib/nfs.ts';
import { mounts, offline, room } from '../../src/lib/shares.ts';
import { TREE } from '../../mock/declared.mjs';
import { Tree, answer } from '../../mock/tree.mjs';

const BYTES = { type: 'bytes', min: 1024, max: 2 ** 30 };
const SECONDS = { type: 'seconds', min: 10, max: 3600 };
const LIST = { type: 'list', max_length: 2, of: { type: 'text', max_length: 4 } };

test('what was typed is read with its unit', () => {
  assert.deepEqual(read(BYTES, '64M'), { value: 64 * 2 ** 20 });
  assert.deepEqual(read(BYTES, ' 1.5 KiB '), { value: 1536 });
  assert.deepEqual(read(BYTES, '4096'), { value: 4096 });
  assert.deepEqual(read(SECONDS, '90'), { value: 90 });
  assert.deepEqual(read(SECONDS, '1 min 30 s'), { value: 90 });
  assert.deepEqual(read(SECONDS, '1h'), { value: 3600 });
  assert.deepEqual(read({ type: 'integer', min: -5, max: 5 }, '-3'), { value: -3 });
});

test('what cannot be read, or is out of range, is one sentence', () => {
  assert.match(read(BYTES, '64 parsecs').wrong, /such as 64 MiB/);
  assert.match(read(BYTES, '0.3 B').wrong, /number of bytes/);
  assert.match(read(BYTES, '2G').wrong, /2 GiB is too large; the maximum is 1 GiB/);
  assert.match(read(SECONDS, '5 s').wrong, /5 s is too small; the minimum is 10 s/);
  assert.match(read(SECONDS, '5 s later').wrong, /such as 90 s/);
  assert.match(read({ type: 'integer' }, '3.5').wrong, /whole number/);
  assert.match(read({ type: 'integer' }, '').wrong, /whole number/);
  assert.match(read({ type: 'text', max_length: 3 }, 'äö').wrong, /4 bytes; the maximum is 3/);
});

test('lists are checked as a whole', () => {
  assert.equal(wrongWith(LIST, ['a', 'b']), null);
  assert.match(wrongWith(LIST, ['a', 'b', 'c']), /3 entries; the maximum is 2/);
  assert.match(wrongWith(LIST, ['a', 'a']), /a appears twice/);
  assert.match(wrongWith(LIST, ['a', '']), /empty/);
  assert.match(wrongWith(LIST, ['abcde']), /5 bytes/);
});

test('what is shown in a field can be typed again', () => {
  for (const n of [0, 1, 1023, 1024, 1536, 3 * 2 ** 20, 2 ** 40]) assert.equal(read({ type: 'bytes' }, exactBytes(n)).value, n, exactBytes(n));
  for (const n of [0, 1, 60, 61, 90, 3599, 3600, 86_400, 93_784]) assert.equal(read({ type: 'seconds' }, exactSeconds(n)).value, n, exactSeconds(n));
  assert.equal(asText(BYTES, 1536), '1536 B');
  assert.equal(asText(SECONDS, null), '');
});

test('values are shown in words', () => {
  assert.equal(show({ type: 'bool' }, true), 'on');
  assert.equal(show(LIST, []), 'none');
  assert.equal(show(LIST, ['a', 'b']), 'a, b');
  assert.equal(show(BYTES, null), '–');
  assert.equal(show({ type: 'bytes' }, 1953125000 * 1024), '1.82 TiB');
  assert.equal(show({ type: 'time' }, 0), 'never');
  assert.equal(showWithUnit({ kind: { type: 'integer' }, unit: 'days' }, 30), '30 days');
  assert.equal(allowed(SECONDS), 'From 10 s to 1 h.');
  assert.equal(allowed({ type: 'integer', min: 0, max: 2 ** 63 }), '');
});

const now = (more) => ({ name: 'lease', value: 60, source: 'set', from: null, role: 'setting', ...more });
const change = (more) => ({ path: '/a/b', property: 'lease', title: 'Lease', unset: false, value: 90, before: 60, secret: false, ...more });

test('a property has one pending change, and none that changes nothing', () => {
  let list = pending.put([], change({}), now({}));
  list = pending.put(list, change({ property: 'domain', value: 'x' }), now({ value: 'y' }));
  list = pending.put(list, change({ value: 120 }), now({}));
  assert.deepEqual(pending.requests(list), [{ set: '/a/b', property: 'lease', value: 120 }, { set: '/a/b', property: 'domain', value: 'x' }]);
  list = pending.put(list, change({ value: 60 }), now({}));
  assert.deepEqual(list.map(({ property }) => property), ['domain']);
  // To set what is inherited is a change, even to the same value.
  assert.equal(pending.put([], change({ value: 60 }), now({ source: 'inherited' })).length, 1);
});

test('to unset changes something only where something is set', () => {
  assert.deepEqual(pending.requests(pending.put([], change({ unset: true }), now({}))), [{ unset: '/a/b', property: 'lease' }]);
  assert.equal(pending.put([], change({ unset: true }), now({ source: 'default' })).length, 0);
  assert.equal(pending.put([], change({ unset: true, secret: true }), now({ set: false })).length, 0);
  assert.equal(pending.put([], change({ value: 'x', secret: true }), now({ set: true, value: 'x' })).length, 1, 'nobody knows what a secret was');
});

test('what was changed during a commit is pending after it', () => {
  const sent = [change({}), change({ property: 'domain', value: 'x' })];
  const later = change({ value: 120 });
  const list = pending.put(pending.put(sent, later, now({})), change({ property: 'port' }), now({}));
  assert.deepEqual(pending.remaining(list, sent), [{ ...later, before: 90 }, change({ property: 'port' })]);
  assert.deepEqual(pending.remaining(sent, sent), []);
  // To set the former value again is a change: it is not the current one by then.
  const again = change({ value: 60 });
  assert.deepEqual(pending.put(sent, again, pending.committed(now({}), '/a/b', sent))[0], again);
  assert.equal(pending.put(sent, change({}), pending.committed(now({}), '/a/b', sent)).length, 1);
  assert.deepEqual(pending.committed(now({}), '/a', sent), now({}));
});

test('changes follow a node that is renamed and go with one that is destroyed', () => {
  const list = [change({}), change({ path: '/a/bc' }), change({ path: '/a/b/c' })];
  assert.deepEqual(pending.moved(list, '/a/b', '/a/z').map(({ path }) => path), ['/a/z', '/a/bc', '/a/z/c']);
  assert.deepEqual(pending.withoutNode(list, '/a/b').map(({ path }) => path), ['/a/bc']);
  assert.equal(pending.counted(1), '1 change');
});

test('a path leads to what is declared there', () => {
  assert.equal(placeAt(TREE, '/configuration/services/nfs').context.title, 'NFS');
  assert.equal(titleOf(placeAt(TREE, '/shares/default/tank')), 'tank');
  assert.equal(placeAt(TREE, '/shares/default/tank').item.noun, 'share');
  assert.equal(placeAt(TREE, '/configuration/nothing'), null);
  assert.deepEqual(way(TREE, '/shares/default').map(({ path }) => path), ['/', '/shares', '/shares/default']);
  assert.equal(parentOf('/shares/default/a'), '/shares/default');
  assert.equal(join('/', 'shares'), '/shares');
  assert.equal(nameOf('/shares/a b'), 'a b');
});

test('an address is a path and back, whatever is in the name', () => {
  for (const path of ['/shares/default/a b', '/shares/default/tank.v1', '/configuration/users/ü?#%']) assert.equal(pathOf(href(path)), path);
  assert.equal(encodePath('/a b'), '/a%20b');
  assert.equal(pathOf('/%'), '/%', 'what cannot be read stays');
});

test('names or nodes in place of names', () => {
  const plain = nodeOf({ path: '/shares/default', children: [], items: ['a', 'b'], actions: [], properties: [] });
  assert.deepEqual([plain.name, plain.items, plain.below], ['default', ['a', 'b'], {}]);
  const nested = nodeOf({ path: '/shares', children: [], items: [{ path: '/shares/a%20b', name: 'a b', items: ['x'], properties: [] }] });
  assert.deepEqual(nested.items, ['a b']);
  assert.deepEqual(nested.below['a b'].items, ['x']);
});

test('where a value comes from, and why it cannot be changed', () => {
  const declared = { role: 'setting' };
  const node = { may: { change: true, why: '' } };
  assert.equal(sourceOf(now({ source: 'inherited', from: '/shares/default' }), declared), 'inherited from /shares/default');
  assert.equal(sourceOf(now({ set: true }), { role: 'secret' }), 'set, not shown');
  assert.equal(fixedBy(node, now({}), declared), null);
  assert.match(fixedBy(node, now({ source: 'command line' }), declared), /command line/);
  assert.equal(fixedBy({ may: { change: false, why: 'No.' } }, now({}), declared), 'No.');
  assert.match(fixedBy(node, now({}), { role: 'at-create' }), /at creation/);
});

test('the search finds pages and properties of the places that may be seen', () => {
  const hits = treeHits(TREE, ['configuration']);
  assert.deepEqual(hits.find(({ name }) => name === 'NFS: Lease'), { kind: 'Setting', name: 'NFS: Lease', detail: 'configuration services nfs lease', href: '/configuration/services/nfs?property=lease' });
  assert.ok(hits.every((hit) => hit.href.startsWith('/configuration')));
  assert.deepEqual(treeHits(null, ['configuration']), []);
});

test('the search finds single users and shares, as far down as was read', () => {
  const user = { path: '/configuration/users/anna', properties: [{ name: 'full_name', value: 'Anna Berg' }, { name: 'enabled', value: true }] };
  const node = nodeOf({ path: '/configuration', properties: [], children: [{ path: '/configuration/users', properties: [], items: [user] }] });
  assert.deepEqual(itemHits(TREE, node), [{ kind: 'User', name: 'anna', detail: '/configuration/users/anna · Anna Berg', href: '/configuration/users/anna' }]);
  const shares = nodeOf({ path: '/shares', properties: [], items: [{ path: '/shares/default', properties: [], items: [{ path: '/shares/default/lab', properties: [] }] }] });
  assert.deepEqual(itemHits(TREE, shares).map(({ kind, name }) => `${kind} ${name}`), ['Project default', 'Share lab']);
  assert.deepEqual(itemHits(null, shares), []);
  const names = nodeOf({ path: '/configuration/users', properties: [], items: ['bert'] });
  assert.deepEqual(itemHits(TREE, names), [{ kind: 'User', name: 'bert', detail: '/configuration/users/bert', href: '/configuration/users/bert' }], 'of some only the name was read');
});

test('tables have no secrets and no keys in them', () => {
  const user = placeAt(TREE, '/configuration/users/x').context;
  assert.ok(columns(user).every(({ name }) => name !== 'password' && name !== 'ssh_keys'));
  assert.ok(columns(user).length <= 5);
  const [first, second] = columns(user);
  const node = { properties: [{ name: first.name, value: null }, { name: second.name, value: 'x' }] };
  assert.deepEqual(columns(user, [node]).map(({ name }) => name), [second.name], 'what no item has is no column');
  const state = { ...first, name: 'state', role: 'state' };
  const names = columns({ ...user, properties: [...user.properties, state] }).map(({ name }) => name);
  assert.deepEqual([names[0], names.length], ['state', 5], 'whether an item works comes first');
});

test('the mock is all or nothing, as the server is', () => {
  const tree = new Tree();
  const who = { user: 'admin', may: true };
  const query = new URLSearchParams();
  const ask = (body) => answer(tree, 'POST', '/changes', query, JSON.stringify(body), who);
  const before = structuredClone(tree.document);
  const [status, { error }] = ask({ changes: [{ set: '/configuration/services/nfs', property: 'lease', value: 30 }, { set: '/configuration/services/nfs', property: 'lease', value: 1 }] });
  assert.deepEqual([status, error.property], [400, 'lease']);
  assert.deepEqual(tree.document, before);
  assert.equal(ask({ dry_run: true, changes: [{ set: '/configuration/services/nfs', property: 'lease', value: 30 }] })[0], 200);
  assert.deepEqual(tree.document, before);
  assert.equal(ask({ changes: [{ destroy: '/shares/default', confirm: false }] })[0], 409);
});

test('a share tells its room, who may use it, and how it is mounted', () => {
  const node = (values) => ({ properties: Object.entries(values).map(([name, value]) => ({ name, value })) });
  assert.deepEqual(room(node({ total: 10, available: 4 })), { total: 10, available: 4 });
  assert.equal(room(node({ total: 0, available: 0 })), null);
  assert.equal(access(node({ nfs: 'rw', read_only: true })), 'read-only');
  assert.equal(access(node({ nfs: 'none', read_only: true })), 'none');
  assert.equal(access(undefined), '–');
  assert.deepEqual(mounts(node({ mount: ['mount -o vers=4.2,proto=tcp a:/b /mnt'] })), [{ version: 'NFSv4.2', command: 'mount -o vers=4.2,proto=tcp a:/b /mnt' }]);
  const others = ['lftp -u USER ftps://a:990/b', 'sftp -P 218 USER@a:/b', 'curl -u USER https://a/b/', 'mount -t davfs https://a/b/ /mnt', 'mount -t cifs -o username=USER,port=10445 //a/b /mnt'];
  assert.deepEqual(mounts(node({ mount: others })).map(({ version }) => version), ['FTPS', 'SFTP', 'HTTPS', 'WebDAV', 'SMB']);
  assert.deepEqual(nfsMounts(node({ mount: others })), []);
  assert.equal(offline(node({ state: 'offline', reason: 'gone' })), 'gone');
  assert.equal(offline(node({ state: 'online' })), null);
});

test('a point in time is typed in the zone of the viewer', () => {
  assert.equal(readLocalTime(localTime(1798761600)), 1798761600);
  assert.equal(readLocalTime(''), null);
  assert.equal(localTime(null), '');
});

test('both sides of a change are words', () => {
  assert.equal(side({ kind: SECONDS }, true, 90), '1 min 30 s');
  assert.equal(side({ kind: SECONDS }, true, null), 'default');
  assert.equal(side({ kind: { type: 'text' }, role: 'secret' }, true, undefined), 'not set');
  assert.equal(side(undefined, false, true), 'there');
  assert.equal(side(undefined, false, null), '–');
  assert.equal(side(undefined, false, {}), '–');
  assert.equal(side(undefined, false, { days: 3 }), 'days: 3');
});

test('a property is of use only where it was declared to be', () => {
  const own = { name: 'days_left', only_if: { property: 'when', values: ['certificate', 'any'] } };
  assert.ok(applies(own, () => 'certificate') && applies(own, (name) => (name === 'when' ? 'any' : null)));
  assert.ok(!applies(own, () => 'statistic') && !applies(own, () => undefined) && !applies(own, () => null));
  assert.ok(applies({ name: 'enabled' }, () => undefined) && applies({ name: 'enabled', only_if: null }, () => undefined));
});
