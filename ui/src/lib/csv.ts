// A data object as CSV (RFC 4180): one line per second, one column per element. An empty field is
// a second without data.
import type { Data, Values } from '../api/types.ts';

const quote = (field: string): string =>
  /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;

const cell = (values: Values, at: number): string => {
  const v = values[at];
  return v === null || v === undefined ? '' : String(v);
};

export function toCsv(data: Data): string {
  const columns: { name: string; values: Values }[] = [{ name: `total (${data.unit})`, values: data.total }];
  for (const row of data.rows ?? []) columns.push({ name: row.label, values: row.values });
  for (const bucket of data.buckets ?? []) {
    columns.push({ name: `${bucket.low}-${bucket.high}`, values: bucket.values });
  }
  if (data.other) columns.push({ name: 'other', values: data.other.values });
  columns.push({ name: 'dropped', values: data.dropped });
  const head = ['time', ...columns.map((column) => column.name)].map(quote).join(',');
  const lines = data.times.map((time, at) =>
    [new Date(time * 1000).toISOString(), ...columns.map((column) => cell(column.values, at))].join(','),
  );
  return `${[head, ...lines].join('\r\n')}\r\n`;
}
