// Line and stacked graphs. Values are drawn as the steps they are: a second is a plateau, and
// nothing is drawn between what was measured and what was not.
import { short } from '../lib/format.ts';
import { cropTop } from '../lib/heat.ts';
import type { Element, Series } from '../lib/series.ts';
import type { Values } from '../api/types.ts';
import type { PanelState } from '../lib/worksheet.ts';
import { valueMarks } from '../lib/time.ts';
import { drawDropped, drawFrame, drawGaps, drawGround, drawValueMark } from './axes.ts';
import { plotBox, prepare, xOf, type Box, type Span } from './canvas.ts';
import type { Palette } from './palette.ts';

interface Plot {
  ctx: CanvasRenderingContext2D;
  box: Box;
  span: Span;
  series: Series;
  start: number;
  end: number;
  top: number;
}

const yOf = (value: number, plot: Plot): number =>
  plot.box.top + plot.box.height * (1 - Math.min(1.02, value / plot.top));

/** Walks the stretches of known columns: `each(at, x0, x1, first)` and `done` after each stretch. */
function stretches(plot: Plot, values: Values, each: (at: number, x0: number, x1: number, first: boolean) => void, done: (x0: number, x1: number, from: number, to: number) => void): void {
  const { series, span, box } = plot;
  let begin = -1;
  let from = 0;
  let last = 0;
  let previous = -Infinity;
  for (let at = plot.start; at < plot.end; at += 1) {
    const time = series.times[at] as number;
    const known = values[at] !== null && values[at] !== undefined;
    if (begin >= 0 && (!known || time - previous > series.step * 1.5)) {
      done(begin, last, from, at);
      begin = -1;
    }
    previous = time;
    if (!known) continue;
    const x0 = xOf(time, span, box);
    const x1 = xOf(time + series.step, span, box);
    each(at, x0, x1, begin < 0);
    if (begin < 0) {
      begin = x0;
      from = at;
    }
    last = x1;
  }
  if (begin >= 0) done(begin, last, from, plot.end);
}

function line(plot: Plot, values: Values, colour: string, width: number): void {
  const { ctx } = plot;
  ctx.strokeStyle = colour;
  ctx.lineWidth = width;
  ctx.lineJoin = 'round';
  ctx.beginPath();
  stretches(plot, values, (at, x0, x1, first) => {
    const y = yOf(values[at] as number, plot);
    if (first) ctx.moveTo(x0, y);
    else ctx.lineTo(x0, y);
    ctx.lineTo(x1, y);
  }, () => {});
  ctx.stroke();
}

/** Fills between two stacks of values. */
function area(plot: Plot, lower: Values | null, upper: Values, colour: string): void {
  const { ctx, series, span, box } = plot;
  ctx.fillStyle = colour;
  ctx.beginPath();
  stretches(plot, upper, (at, x0, x1, first) => {
    const y = yOf(upper[at] as number, plot);
    if (first) ctx.moveTo(x0, y);
    else ctx.lineTo(x0, y);
    ctx.lineTo(x1, y);
  }, (_x0, _x1, from, to) => {
    for (let at = to - 1; at >= from; at -= 1) {
      const y = yOf(lower?.[at] ?? 0, plot);
      ctx.lineTo(xOf((series.times[at] as number) + series.step, span, box), y);
      ctx.lineTo(xOf(series.times[at] as number, span, box), y);
    }
    ctx.closePath();
  });
  ctx.fill();
}

function stacked(plot: Plot, chosen: (Element | undefined)[], p: Palette): void {
  area(plot, null, plot.series.total, p.area);
  let lower: Values | null = null;
  chosen.forEach((element, at) => {
    if (element === undefined) return;
    const below = lower;
    const upper = element.values.map((value, column) => (value === null ? null : value + (below?.[column] ?? 0)));
    area(plot, below, upper, p.series[at % p.series.length] as string);
    lower = upper;
  });
  line(plot, plot.series.total, p.stroke, 1.25);
}

function lines(plot: Plot, chosen: (Element | undefined)[], p: Palette): void {
  const some = chosen.some((element) => element !== undefined);
  line(plot, plot.series.total, p.stroke, some ? 1 : 1.5);
  chosen.forEach((element, at) => {
    if (element) line(plot, element.values, p.series[at % p.series.length] as string, 1.5);
  });
}

const isBytes = (unit: string): boolean => /byte|^B|KiB|KB/.test(unit);

/** The top of the axis: what is in view, or a hundred for a percentage that stays below it. */
function topOf(series: Series, start: number, end: number, crop: number): number {
  const top = cropTop(series.total, start, end, crop) * 1.06;
  if ((series.unit === '%' || series.unit === 'percent') && top <= 106) return 100;
  return top > 0 ? top : 1;
}

export interface Look {
  span: Span;
  live: boolean;
  state: PanelState;
  palette: Palette;
}

export function drawGraph(canvas: HTMLCanvasElement, series: Series, { span, live, state, palette: p }: Look): void {
  const ready = prepare(canvas);
  if (ready === null) return;
  const { ctx, width, height } = ready;
  const box = plotBox(width, height);
  const [start, end] = series.bounds(span.from, span.to);
  const top = topOf(series, start, end, state.crop);
  const plot: Plot = { ctx, box, span, series, start, end, top };
  drawGround(ctx, box, span, p);
  // Rates in KiB are marked at round numbers of bytes, like every other size.
  const factor = /^(KiB|KB|kilobytes)/.test(series.unit) ? 1024 : 1;
  // Without a value there is no scale.
  const known = plot.series.total.slice(start, end).some((value) => value !== null);
  for (const mark of known ? valueMarks(top * factor, isBytes(series.unit) ? 1024 : 1000) : []) {
    drawValueMark(ctx, box, yOf(mark / factor, plot), short(mark / factor, series.unit), p);
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, box.top - 1, box.width, box.height + 1);
  ctx.clip();
  const chosen = state.highlights.map((key) => series.elements.get(key));
  if (state.plot === 'line') lines(plot, chosen, p);
  else stacked(plot, chosen, p);
  drawGaps(ctx, box, span, series, live, p);
  ctx.restore();
  drawDropped(ctx, box, span, series, p);
  drawFrame(ctx, box, p);
}

/** A line without axes, for tables. */
export function drawSpark(canvas: HTMLCanvasElement, values: Values, top: number, p: Palette): void {
  const ready = prepare(canvas);
  if (ready === null) return;
  const { ctx, width, height } = ready;
  const step = width / Math.max(1, values.length);
  ctx.fillStyle = p.area;
  ctx.strokeStyle = p.stroke;
  ctx.lineWidth = 1;
  const y = (value: number): number => height - 1 - (height - 3) * Math.min(1, value / (top || 1));
  ctx.beginPath();
  values.forEach((value, at) => {
    if (value !== null) ctx.rect(at * step, y(value), step + 0.5, height - y(value));
  });
  ctx.fill();
  ctx.beginPath();
  values.forEach((value, at) => {
    if (value === null) return;
    if (at === 0 || values[at - 1] === null) ctx.moveTo(at * step, y(value));
    else ctx.lineTo(at * step, y(value));
    ctx.lineTo((at + 1) * step, y(value));
  });
  ctx.stroke();
}
