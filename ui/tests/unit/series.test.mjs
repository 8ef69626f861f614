// The buffer behind a panel: merging, gaps, averages over the visible interval.
import test from 'node:test';
import assert from 'node:assert/strict';
import { Series } from '../../src/lib/series.ts';

const second = (time, rows, extra = {}) => ({
  stat: 'nfs3.ops[client]', title: 't', unit: 'ops/s', from: time, to: time + 1, step: 1, times: [time],
  total: [Object.values(rows).reduce((sum, n) => sum + n, 0)],
  rows: Object.entries(rows).map(([key, n]) => ({ key, label: key, average: n, values: [n] })),
  other: null, dropped: [0], source: 'store', exact: true, error_bound: 0, note: null, ...extra,
});

test('an element that appears late was at zero before, not unknown', () => {
  const series = new Series();
  series.merge(second(100, { a: 4 }));
  series.merge(second(101, { a: 2, b: 6 }));
  assert.deepEqual(series.elements.get('b').values, [0, 6]);
  assert.deepEqual(series.summary(100, 102).map(({ element, average }) => [element.key, average]),
    [['a', 3], ['b', 3]]);
});

test('seconds that never came are gaps and do not count in the average', () => {
  const series = new Series();
  series.merge(second(100, { a: 4 }));
  series.merge(second(103, { a: 8 }));
  assert.deepEqual(series.gaps(100, 105), [[101, 103], [104, 105]]);
  assert.equal(series.average(100, 105), 6);
  assert.equal(series.average(101, 103), null);
});

test('a second given as null is a gap too', () => {
  const series = new Series();
  series.merge(second(100, { a: 4 }));
  series.merge(second(101, {}, { total: [null] }));
  series.merge(second(102, { a: 4 }));
  assert.deepEqual(series.gaps(100, 103), [[101, 102]]);
  assert.equal(series.elements.get('a').values[1], null);
});

test('late seconds are put where they belong, repeated ones replace', () => {
  const series = new Series();
  for (const [time, n] of [[100, 1], [102, 3], [101, 2], [102, 5]]) series.merge(second(time, { a: n }));
  assert.deepEqual(series.times, [100, 101, 102]);
  assert.deepEqual(series.elements.get('a').values, [1, 2, 5]);
});

test('what is known stays bounded', () => {
  const series = new Series();
  for (let time = 0; time < 3000; time += 1) series.merge(second(time, { [`c${time}`]: 1 }));
  assert.ok(series.times.length <= 1500);
  assert.ok(series.elements.size <= 256);
  const at = series.times.length - 1;
  const rows = [...series.elements.values()].reduce((sum, e) => sum + (e.values[at] ?? 0), 0);
  assert.equal(rows + (series.other[at] ?? 0), series.total[at]);
});

test('buckets are listed from high to low and found by time', () => {
  const series = new Series();
  series.merge({ ...second(100, {}), stat: 'nfs3.ops[latency]', rows: undefined, total: [3],
    buckets: [{ low: 10, high: 12, average: 1, values: [1] }, { low: 20, high: 24, average: 2, values: [2] }] });
  assert.equal(series.kind, 'range');
  assert.deepEqual(series.summary(100, 101).map(({ element }) => element.low), [20, 10]);
  assert.equal(series.at(100.9), 0);
  assert.equal(series.at(101), -1);
});

test('the least sure part says where the whole is from', () => {
  const series = new Series();
  series.replace(second(100, { a: 4 }, { source: 'recorder', exact: false, error_bound: 7, note: 'from 100 on' }));
  series.merge(second(101, { a: 4 }));
  assert.deepEqual([series.source, series.exact, series.errorBound, series.note], ['recorder', false, 7, 'from 100 on']);
  series.replace(second(102, { a: 4 }));
  assert.deepEqual([series.source, series.exact, series.errorBound, series.note], ['store', true, 0, null]);
});

test('phases have their part of the latency of what is visible, by operations', () => {
  const phases = (time, total, ns) => second(time, {}, {
    stat: 'nfs3.ops[phase]', total: [total],
    rows: Object.entries(ns).map(([key, n]) => ({
      key, label: key, average: total / 2, values: [total / 2], time: { average_ns: n, share: 0.5, values_ns: [n] },
    })),
  });
  const series = new Series();
  series.merge(phases(100, 30, { flush: 4000, inline: 1000 }));
  series.merge(phases(101, 10, { flush: 8000, inline: 1000 }));
  const times = (from, to) => Object.fromEntries(series.summary(from, to).map(({ element, time }) => [element.key, time]));
  assert.deepEqual(times(100, 101), { flush: { average: 4000, share: 0.8 }, inline: { average: 1000, share: 0.2 } });
  // Three quarters of the operations came in the first second.
  assert.equal(times(100, 102).flush.average, 5000);
  assert.ok(Math.abs(times(100, 102).flush.share - 5 / 6) < 1e-9);
  // What is no phase has none.
  const plain = new Series();
  plain.merge(second(100, { a: 4 }));
  assert.equal(plain.summary(100, 101)[0].time, undefined);
});
