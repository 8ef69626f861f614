// Statistic ids: parsing, printing, escapes and drill-down.
import test from 'node:test';
import assert from 'node:assert/strict';
import { canonical, drill, format, formatRange, parse, parsePrefix, parseRange, without } from '../../src/lib/statid.ts';

test('an id is read and written back', () => {
  for (const id of [
    'nfs3.ops',
    'nfs3.ops[op]',
    'nfs3.ops[op=read][client=10.0.0.7][latency]',
    'cpu.utilization[mode]',
    'nfs3.ops[file=/a\\]b\\\\c\\=d][op]',
    'nfs3.ops[client=fe80::1]',
  ]) {
    assert.equal(format(parse(id)), id);
  }
});

test('escapes are taken away and put back', () => {
  const id = parse('nfs3.ops[file=/a\\]b\\\\c\\=d][op]');
  assert.deepEqual(id.filters, [{ name: 'file', value: '/a]b\\c=d' }]);
  assert.equal(id.breakdown, 'op');
});

test('what is not an id is refused', () => {
  for (const text of ['', 'nfs3', 'nfs3.', '[op]', 'nfs3.ops[', 'nfs3.ops[]', 'nfs3.ops[op][client]',
    'nfs3.ops[op=read', 'nfs3.ops[op=a\\', 'nfs3.ops x', 'nfs3.ops[op=read]x', 'nfs3.ops[a b]']) {
    assert.equal(parse(text), null, text);
  }
});

test('the rest after an id is kept for its reader', () => {
  assert.equal(parsePrefix('nfs3.ops[op]!line').rest, '!line');
});

test('drilling narrows, and a filter can be taken away in any order', () => {
  const one = drill(parse('nfs3.ops[client]'), '10.0.0.7', 'file');
  assert.equal(format(one), 'nfs3.ops[client=10.0.0.7][file]');
  const two = drill(one, '/x', null);
  assert.equal(format(two), 'nfs3.ops[client=10.0.0.7][file=/x]');
  assert.equal(format(without(two, 'client')), 'nfs3.ops[file=/x]');
});

test('drilling into the same breakdown again replaces the filter', () => {
  const id = drill(parse('nfs3.ops[latency=0-100][latency]'), '10-20', null);
  assert.equal(format(id), 'nfs3.ops[latency=10-20]');
});

test('the order of filters does not matter', () => {
  assert.equal(canonical('nfs3.ops[op=read][client=a][file]'), canonical('nfs3.ops[client=a][op=read][file]'));
  assert.notEqual(canonical('nfs3.ops[op=read]'), canonical('nfs3.ops[op=write]'));
  assert.equal(canonical('not an id'), 'not an id');
});

test('ranges', () => {
  assert.deepEqual(parseRange('1000-2000'), { low: 1000, high: 2000 });
  assert.equal(parseRange('1e3-2'), null);
  assert.equal(formatRange(1000.4, 2000), '1000-2000');
  assert.equal(formatRange(8, Number(2n ** 64n - 1n)), '8-18446744073709551615');
  assert.equal(formatRange(0, 2 ** 63), '0-9223372036854775808');
});
