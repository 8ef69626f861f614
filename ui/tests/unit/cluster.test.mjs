// What the page of the cluster shows of each head and resource.
import assert from 'node:assert/strict';
import test from 'node:test';
import { isResource, ofHead, ofResource, phasesOf, stateOf, stateOfHead, takeoverOf } from '../../src/lib/cluster.ts';

const node = (values, name = 'x') => ({ name, path: `/${name}`, properties: Object.entries(values).map(([name, value]) => ({ name, value, role: 'state', source: 'state', from: null })), below: {}, items: [], actions: [] });

test('lines of resources and heads', () => {
  assert.equal(ofResource(node({ owner: 'left', preferred: 'left', addresses: ['10.0.0.7/24'] })), 'owner left · 10.0.0.7/24');
  assert.equal(ofResource(node({ owner: '', preferred: 'left', addresses: [] })), 'no owner · preferred owner left');
  assert.equal(ofHead(node({ owns: ['a', 'b'], this_machine: true })), 'this machine · owns a, b');
  assert.equal(ofHead(node({ owns: [], this_machine: false })), 'owns nothing');
});

test('states have a word and a sign', () => {
  assert.deepEqual(stateOf(node({ state: 'handing_over' })), { word: 'handing over', mark: 'warn' });
  assert.deepEqual(stateOf(node({ state: 'unowned' })), { word: 'no owner', mark: 'bad' });
  assert.deepEqual(stateOfHead(node({ state: 'absent' })), { word: 'absent', mark: 'bad' });
});

test('the last takeover in a line, and its phases', () => {
  const done = node({ takeover_at: 1_700_000_000, takeover_from: 'left', takeover_to: 'right', takeover_cause: 'head_lost', takeover_total: 200, takeover_hand_over: 0, takeover_claim: 50, takeover_lock: 0, takeover_start: 150, takeover_address: 0 });
  assert.match(takeoverOf(done), / · left → right · lease over · 200 ms$/);
  assert.deepEqual(phasesOf(done).map(({ ms, part }) => [ms, part]), [[0, 0], [50, 0.25], [0, 0], [150, 0.75], [0, 0]]);
  assert.equal(takeoverOf(node({ takeover_from: 'left', takeover_to: 'right', takeover_cause: 'command' })), 'in progress · left → right · requested');
  assert.equal(takeoverOf(node({})), '');
  assert.deepEqual(phasesOf(node({})), []);
});

test('paths of resources', () => {
  assert.equal(isResource('/cluster/resources/accounts'), true);
  assert.equal(isResource('/cluster/resources'), false);
});
