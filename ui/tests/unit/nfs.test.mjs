// Clients of NFS: order, narrowing, and the words for what they hold.
import test from 'node:test';
import assert from 'node:assert/strict';
import { accessOf, arrange, bytesOf, clientHref, holdings, silence, total } from '../../src/lib/nfs.ts';

const client = (more) => ({
  id: 'nfs4-01', protocol: 'nfs4', version: '4.2', addresses: ['10.0.0.7'], label: '10.0.0.7 (anna)', name: 'Linux NFSv4.2 anna',
  principal: 'root', state: 'active', silent_s: 1, sessions: 1, opens: 0, locks: 0, waiting: 0, delegations: 0, ...more,
});
const labels = (clients) => clients.map(({ label }) => label);

test('clients stand in the order of a column, addresses by their numbers', () => {
  const all = [client({ label: '10.0.0.10', opens: 2 }), client({ label: '10.0.0.9', opens: 30 }), client({ label: '10.0.0.8', opens: 4 })];
  assert.deepEqual(labels(arrange(all, '', 'label', false)), ['10.0.0.8', '10.0.0.9', '10.0.0.10']);
  assert.deepEqual(labels(arrange(all, '', 'opens', true)), ['10.0.0.9', '10.0.0.8', '10.0.0.10']);
  assert.deepEqual(labels(all), ['10.0.0.10', '10.0.0.9', '10.0.0.8'], 'what was given stays as it is');
});

test('every word must be somewhere in it', () => {
  const all = [client({}), client({ label: 'x', version: '4.0', name: 'bert' })];
  assert.deepEqual(labels(arrange(all, 'ANNA 4.2', 'label', false)), ['10.0.0.7 (anna)']);
  assert.deepEqual(labels(arrange(all, 'bert', 'label', false)), ['x']);
  assert.deepEqual(arrange(all, 'anna 4.0', 'label', false), []);
});

test('what ends with a client is said in a sentence', () => {
  assert.equal(holdings(client({})), null);
  assert.equal(holdings(client({ opens: 1 })), '1 open');
  assert.equal(holdings(client({ opens: 3, locks: 1 })), '3 opens and 1 lock');
  assert.equal(holdings(client({ opens: 3, locks: 1, delegations: 2 })), '3 opens, 1 lock and 2 delegations');
});

test('bytes of a lock have both ends', () => {
  assert.equal(bytesOf({ offset: 0, length: null }), 'all');
  assert.equal(bytesOf({ offset: 5, length: null }), '5 to the end');
  assert.equal(bytesOf({ offset: 100, length: 10 }), '100–109');
  assert.equal(bytesOf({ offset: 7, length: 1 }), '7');
});

test('other words', () => {
  assert.equal(accessOf({ kind: 'open', access: 'both' }), 'read, write');
  assert.equal(accessOf({ kind: 'recall', access: 'read' }), 'read: delegation, recalled');
  assert.equal(silence(0.4), 'now');
  assert.equal(silence(75), '1 min 15 s');
  assert.equal(silence(null), '–');
  assert.equal(total({ rows: [1], more: false }, 'client'), '1 client');
  assert.equal(total({ rows: [1, 2], more: true }, 'row'), 'more than 2 rows');
  assert.equal(clientHref('a&b'), '/nfs?client=a%26b');
});
