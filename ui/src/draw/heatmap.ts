// Heat maps: time across, ranges up on a logarithmic scale, darkness by count. The cells are put
// into a small image, one pixel each, which is then stretched row by row: cheap at any size.
import { bound } from '../lib/format.ts';
import { darkness, logPosition, rangeAxis, type RangeAxis } from '../lib/heat.ts';
import { ranges } from '../lib/ranges.ts';
import type { Element, Series } from '../lib/series.ts';
import { drawDropped, drawFrame, drawGaps, drawGround, drawValueMark } from './axes.ts';
import { plotBox, prepare, xOf, type Box } from './canvas.ts';
import type { Look } from './graph.ts';
import type { Palette, Rgb } from './palette.ts';

/** A row is at least so high, so that a thin one at the edge can still be seen. */
const ROW_MIN_PX = 2;

const mixed = (a: Rgb, b: Rgb, share: number): Rgb => [
  a[0] + (b[0] - a[0]) * share,
  a[1] + (b[1] - a[1]) * share,
  a[2] + (b[2] - a[2]) * share,
];

const scratch = typeof document === 'undefined' ? null : document.createElement('canvas');

export const axisOf = (series: Series, start: number, end: number, crop: number): RangeAxis =>
  rangeAxis(ranges(series), start, end, crop);

function image(rows: Element[], start: number, end: number, highlights: readonly string[], p: Palette): HTMLCanvasElement | null {
  const ctx = scratch?.getContext('2d');
  const columns = end - start;
  if (!scratch || !ctx || columns < 1 || rows.length < 1) return null;
  scratch.width = columns;
  scratch.height = rows.length;
  const cells = ctx.createImageData(columns, rows.length);
  let largest = 0;
  for (const row of rows) for (let at = start; at < end; at += 1) largest = Math.max(largest, row.values[at] ?? 0);
  rows.forEach((row, y) => {
    const marked = highlights.includes(row.key);
    for (let x = 0; x < columns; x += 1) {
      const dark = darkness(row.values[start + x], largest);
      if (dark === 0) continue;
      const colour = marked ? p.heatMark : mixed(p.heatLow, p.heatHigh, dark);
      const at = (y * columns + x) * 4;
      cells.data[at] = colour[0];
      cells.data[at + 1] = colour[1];
      cells.data[at + 2] = colour[2];
      cells.data[at + 3] = marked ? 110 + 145 * dark : 255;
    }
  });
  ctx.putImageData(cells, 0, 0);
  return scratch;
}

/** Marks at powers of ten (latency) or of two (bytes), as many as fit. */
function drawRangeAxis(ctx: CanvasRenderingContext2D, box: Box, axis: RangeAxis, unit: string, p: Palette): void {
  const base = unit === 'ns' ? 10 : 4;
  let every = 1;
  const count = Math.log(axis.high / axis.low) / Math.log(base);
  while (count / every > box.height / 20) every += 1;
  const first = Math.ceil(Math.log(axis.low) / Math.log(base));
  for (let power = first; base ** power <= axis.high; power += every) {
    const y = box.top + box.height * (1 - logPosition(base ** power, axis));
    drawValueMark(ctx, box, y, bound(Math.round(base ** power), unit), p);
  }
}

export function drawHeatmap(canvas: HTMLCanvasElement, series: Series, unit: string, { span, live, state, palette: p }: Look): void {
  const ready = prepare(canvas);
  if (ready === null) return;
  const { ctx, width, height } = ready;
  const box = plotBox(width, height);
  const [start, end] = series.bounds(span.from, span.to);
  const axis = axisOf(series, start, end, state.crop);
  drawGround(ctx, box, span, p);
  if (series.summary(span.from, span.to).length > 0) drawRangeAxis(ctx, box, axis, unit, p);
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, box.top, box.width, box.height);
  ctx.clip();
  ctx.imageSmoothingEnabled = false;
  const rows = ranges(series);
  // Columns are not always adjacent; each stretch without a hole is one image.
  for (let from = start; from < end; ) {
    let to = from + 1;
    while (to < end && (series.times[to] as number) - (series.times[to - 1] as number) < series.step * 1.5) to += 1;
    drawStretch(ctx, box, series, rows, from, to, axis, { span, live, state, palette: p });
    from = to;
  }
  drawGaps(ctx, box, span, series, live, p);
  ctx.restore();
  drawDropped(ctx, box, span, series, p);
  drawFrame(ctx, box, p);
}

function drawStretch(ctx: CanvasRenderingContext2D, box: Box, series: Series, rows: Element[], from: number, to: number, axis: RangeAxis, look: Look): void {
  const cells = image(rows, from, to, look.state.highlights, look.palette);
  if (cells === null) return;
  const x0 = xOf(series.times[from] as number, look.span, box);
  const x1 = xOf((series.times[to - 1] as number) + series.step, look.span, box);
  rows.forEach((row, y) => {
    const upper = box.top + box.height * (1 - logPosition(row.high, axis));
    const lower = box.top + box.height * (1 - logPosition(row.low, axis));
    const heightPx = Math.max(ROW_MIN_PX, lower - upper);
    ctx.drawImage(cells, 0, y, to - from, 1, x0, lower - heightPx, x1 - x0, heightPx);
  });
}
