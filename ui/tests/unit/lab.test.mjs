// What can be done with a run, by its state.
import test from 'node:test';
import assert from 'node:assert/strict';
import { difference, differences, isOver, notNow, slim, verdict } from '../../src/lib/lab.ts';

test('a run is aborted while it lasts, and destroyed afterwards', () => {
  for (const state of ['queued', 'preparing', 'running']) {
    assert.ok(!isOver({ state }));
    assert.equal(notNow(state, 'abort'), null);
    assert.match(notNow(state, 'destroy'), /abort it first/);
  }
  for (const state of ['done', 'failed', 'aborted']) {
    assert.ok(isOver({ state }));
    assert.match(notNow(state, 'abort'), new RegExp(`the run has ended \\(${state}\\)`));
    assert.equal(notNow(state, 'destroy'), null);
  }
});

test('a result is sent without what its figures do not need', () => {
  const step = { ops_s: 7, windows: [1], server: { a: 1 }, latency: { p50: 3, histogram: 'x' } };
  const open = { rate: 1, lateness: { p99: 2, histogram: 'x' } };
  const kept = { ops_s: 7, windows: [], server: {}, latency: { p50: 3, histogram: '' } };
  assert.deepEqual(slim({ job: 'a', steps: [step, { ...step, open }] }), { job: 'a', steps: [kept, { ...kept, open: { rate: 1, lateness: { p99: 2, histogram: '' } } }] });
  for (const other of [null, 5, { rows: [] }, { steps: 1 }]) assert.deepEqual(slim(other), other);
});

test('the differences between two records are in words', () => {
  assert.deepEqual(difference(['plateau', '{"gain_percent":3.0,"min_steps":4}', '"none"']), ['Plateau', 'gain percent 3, min steps 4', 'none']);
  assert.deepEqual(difference(['schedule', '[[1,1],[4,2]]', '[]']), ['Schedule', '1 × 1, 4 × 2', '']);
  assert.deepEqual(difference(['file_size', '16777216', 'not JSON']), ['File size', '16777216', 'not JSON']);
});

test('of two jobs the names are told, not what describes them', () => {
  const found = { differences: [['answers', '"How many?"', '"How fast?"'], ['name', '"iops-4k"', '"create"']] };
  assert.deepEqual(differences(found), [['Job', 'iops-4k', 'create']]);
});

test('runs of one job are measured against each other, others are not', () => {
  assert.match(verdict({ differences: [['step_max_ms', '1', '2']], ratio: 1.5, distinction: 'differ' }), /1\.50 times the older one; the difference is significant/);
  assert.match(verdict({ differences: [], ratio: 1.5, distinction: 'undecided' }), /one run of each does not show/);
  assert.match(verdict({ differences: [['name', '"a"', '"b"']], ratio: 1.5, distinction: 'differ' }), /different jobs/);
});
