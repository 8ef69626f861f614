// What the page of the fabric shows of each node, port and link.
import assert from 'node:assert/strict';
import test from 'node:test';
import { errorsFirst, narrowFirst, ofLink, ofNode, ofPort, stateOf } from '../../src/lib/fabric.ts';

const node = (values, name = 'x') => ({ name, path: `/${name}`, properties: Object.entries(values).map(([name, value]) => ({ name, value, role: 'state', source: 'state', from: null })), below: {}, items: [], actions: [] });

test('lines of nodes, links and ports', () => {
  assert.equal(ofNode(node({ kind: 'switch', lid: '1001', linked: 5, ports: 36 })), 'switch · LID 1001 · 5 of 36 ports linked');
  assert.equal(ofNode(node({ kind: 'channel adapter', lid: '', ports: 2 })), 'channel adapter · 0 of 2 ports linked');
  assert.equal(ofLink(node({ width: '1x of 4x', speed: 'QDR of QDR' })), '1x of 4x · QDR of QDR');
  assert.equal(ofPort(node({ counters: '64 bits', rate_in: 2 ** 20, rate_out: 0 })), 'in 1 MiB/s · out 0 B/s');
  assert.equal(ofPort(node({ counters: 'no reply in time' })), 'no counters: no reply in time');
});

test('the state of a port', () => {
  assert.deepEqual(stateOf(node({ physical: 'link up', state: 'active' })), { word: 'active', mark: 'good' });
  assert.deepEqual(stateOf(node({ physical: 'link up', state: 'initialize' })), { word: 'initialize', mark: 'warn' });
  assert.deepEqual(stateOf(node({ physical: 'polling', state: 'down' })), { word: 'polling', mark: '' });
});

test('what needs attention is first', () => {
  const [plain, narrow] = [node({ below_maximum: false }, 'a'), node({ below_maximum: true }, 'b')];
  assert.deepEqual([plain, narrow].sort(narrowFirst), [narrow, plain]);
  const [none, old, grows] = [node({ errors: [] }, 'a'), node({ errors: ['symbol: 1'] }, 'b'), node({ errors: ['symbol: 1'], errors_grow: true }, 'c')];
  assert.deepEqual([none, old, grows].sort(errorsFirst), [grows, old, none]);
});
