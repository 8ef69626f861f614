// Time axis, worksheet URLs, colour scale, numbers and CSV.
import test from 'node:test';
import assert from 'node:assert/strict';
import * as time from '../../src/lib/time.ts';
import { formatWorksheet, parseWorksheet, graphHref } from '../../src/lib/worksheet.ts';
import { cropTop, darkness, logPosition, logValue, quantile, rangeAxis } from '../../src/lib/heat.ts';
import * as write from '../../src/lib/format.ts';
import { toCsv } from '../../src/lib/csv.ts';
import { parse } from '../../src/lib/statid.ts';

test('a minute is asked for by the second, a day is not', () => {
  assert.equal(time.stepFor(60), 1);
  assert.equal(time.stepFor(3600), 5);
  assert.equal(time.stepFor(86400), 120);
  assert.ok((366 * 86400) / time.stepFor(366 * 86400) <= time.POINTS_MAX);
});

test('zooming at a time keeps that time in place', () => {
  const view = time.zoom({ live: false, from: 1000, to: 1100 }, 0.5, 5000, 1025);
  assert.deepEqual(view, { live: false, from: 1013, to: 1063 });
  assert.deepEqual(time.zoom({ live: true, span: 60 }, 2, 5000), { live: true, span: 120 });
});

test('nothing reaches beyond now, and pausing keeps the interval', () => {
  assert.deepEqual(time.pan({ live: false, from: 4900, to: 5000 }, 0.5, 5000), { live: false, from: 4900, to: 5000 });
  assert.deepEqual(time.pan({ live: true, span: 60 }, -0.5, 5000), { live: false, from: 4910, to: 4970 });
  assert.deepEqual(time.pause({ live: true, span: 60 }, 5000), { live: false, from: 4940, to: 5000 });
  assert.deepEqual(time.resume({ live: false, from: 4940, to: 5000 }), { live: true, span: 60 });
});

test('marks are round and lie within', () => {
  const found = time.marks(1000, 1060, 6);
  assert.deepEqual(found.map(({ at }) => at % 10), found.map(() => 0));
  assert.ok(found.length >= 3 && found.length <= 7);
  assert.deepEqual(time.marks(10, 10, 5), []);
  assert.deepEqual(time.valueMarks(100, 1000), [50, 100]);
  assert.deepEqual(time.valueMarks(0, 1000), []);
  assert.ok(time.valueMarks(3.3 * 1024 * 1024, 1024).every((mark) => mark % (1024 * 1024) === 0));
});

test('a worksheet is its URL and back', () => {
  for (const search of [
    '', '?w=nfs3.ops[client]', '?w=nfs3.ops[client]&w=nfs3.ops[latency]!crop=1&span=3600',
    '?w=nfs3.ops[op=read][client]!line!hl=10.0.0.7,10.0.0.8&from=1000&to=1100',
    '?w=nfs3.ops[file=/a%20b%26c%5C]d%5C=][op]',
    '?w=nfs3.ops[file]!hl=/x%2521y',
  ]) {
    const sheet = parseWorksheet(search);
    const again = parseWorksheet(formatWorksheet(sheet));
    assert.deepEqual(again, sheet, search);
  }
  assert.equal(formatWorksheet(parseWorksheet('?w=nfs3.ops[client]&span=3600')), '?w=nfs3.ops[client]&span=3600');
  assert.equal(graphHref(parse('nfs3.ops[op=read][client]')), '/analytics?w=nfs3.ops[op=read][client]');
});

test('a worksheet has one panel of a statistic, the first', () => {
  const { panels } = parseWorksheet('?w=all.ops[client]&w=all.ops[latency]&w=all.ops[client]!line');
  assert.deepEqual(panels.map(({ stat, plot }) => [stat.breakdown, plot]), [['client', 'stack'], ['latency', 'stack']]);
});

test('highlights with separators in them survive', () => {
  const sheet = { panels: [{ stat: parse('nfs3.ops[file]'), plot: 'line', crop: 0, highlights: ['/a,b!c&d=]', 'ü%'] }],
    view: { live: true, span: 60 } };
  assert.deepEqual(parseWorksheet(formatWorksheet(sheet)), sheet);
});

test('what cannot be read in a URL is left out', () => {
  const sheet = parseWorksheet('?w=nonsense&w=nfs3.ops[op&w=nfs3.ops!crop=x!hl=%25&from=9&to=3&span=-1');
  assert.equal(sheet.panels.length, 1);
  assert.deepEqual(sheet.view, { live: true, span: 60 });
});

test('one operation among a million can be seen', () => {
  assert.equal(darkness(0, 1e6), 0);
  assert.ok(darkness(1, 1e6) >= 0.1);
  assert.equal(darkness(1e6, 1e6), 1);
  assert.ok(darkness(10, 1e6) < darkness(100, 1e6));
});

test('a logarithmic axis maps there and back', () => {
  const axis = { low: 1000, high: 1e9 };
  assert.ok(Math.abs(logValue(logPosition(5e6, axis), axis) - 5e6) < 1);
  assert.equal(logPosition(1000, axis), 0);
});

test('a share that is cropped is a number without sign and exponent', () => {
  const crop = (text) => parseWorksheet(`?w=nfs3.ops!crop=${encodeURIComponent(text)}`).panels[0].crop;
  assert.deepEqual(['1', '0.1', '+1', '-1', '1e1', '100', ''].map(crop), [1, 0.1, 0, 0, 0, 0, 0]);
});

test('cropping leaves out rare rows at the top only', () => {
  const buckets = [{ low: 1000, high: 1250, values: [999] }, { low: 1e9, high: 1.25e9, values: [1] }];
  assert.ok(rangeAxis(buckets, 0, 1, 0).high > 1e9);
  assert.ok(rangeAxis(buckets, 0, 1, 1).high < 1e6);
  assert.equal(cropTop([1, 2, 100, null], 0, 4, 0), 100);
  assert.equal(cropTop([1, 2, 100, null], 0, 4, 34), 2);
});

test('quantiles come from the buckets', () => {
  const buckets = [{ low: 0, high: 10, values: [98] }, { low: 1000, high: 1250, values: [2] }];
  assert.equal(quantile(buckets, 0, 0.99), 1125);
  assert.equal(quantile(buckets, 0, 0.5), 0.5);
  assert.equal(quantile([{ low: 0, high: 10, values: [0] }], 0, 0.5), null);
});

test('numbers carry their units', () => {
  assert.equal(write.bytes(0), '0 B');
  assert.equal(write.bytes(1536), '1.5 KiB');
  assert.equal(write.bytes(1048575), '1 MiB');
  assert.equal(write.nanoseconds(1250), '1.25 µs');
  assert.equal(write.nanoseconds(0), '0 ns');
  assert.equal(write.value(12345, 'ops/s'), '12.3 k ops/s');
  assert.equal(write.value(2048, 'bytes/s'), '2 KiB/s');
  assert.equal(write.value(null, 'ops/s'), '–');
  assert.equal(write.short(12345, 'packets/s'), '12.3 k');
  assert.equal(write.short(2048, 'bytes/s'), '2 KiB');
  assert.equal(write.value(2e6, 'ns/s'), '2 ms/s');
  assert.equal(write.range(1e6, 1.25e6, 'ns'), '1–1.25 ms');
  assert.equal(write.range(9e5, 1.25e6, 'ns'), '900 µs–1.25 ms');
  assert.equal(write.duration(3700), '1 h 1 min');
});

test('CSV quotes what needs it and leaves unknown seconds empty', () => {
  const csv = toCsv({ stat: 'nfs3.ops[file]', title: '', unit: 'ops/s', from: 0, to: 2, step: 1, times: [0, 1],
    total: [3, null], rows: [{ key: 'k', label: 'a,"b"', average: 3, values: [3, null] }], other: null,
    dropped: [0, 5], source: 'store', exact: true, error_bound: 0, note: null });
  assert.equal(csv, 'time,total (ops/s),"a,""b""",dropped\r\n1970-01-01T00:00:00.000Z,3,3,0\r\n1970-01-01T00:00:01.000Z,,,5\r\n');
});
