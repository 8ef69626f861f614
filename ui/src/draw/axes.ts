// What graphs and heat maps share: ground, time axis, value axis, hatched gaps, dropped samples.
import { clock } from '../lib/format.ts';
import type { Series } from '../lib/series.ts';
import { marks } from '../lib/time.ts';
import { setFont, xOf, type Box, type Span } from './canvas.ts';
import type { Palette } from './palette.ts';

/** Pixels between time labels. */
const LABEL_DISTANCE = 96;
/** The newest seconds of a moving graph may still be on their way; they are not a gap yet. */
const LAG_SECONDS = 3;

export function drawGround(ctx: CanvasRenderingContext2D, box: Box, span: Span, p: Palette): void {
  ctx.fillStyle = p.plot;
  ctx.fillRect(box.left, box.top, box.width, box.height);
  setFont(ctx);
  ctx.textBaseline = 'top';
  ctx.textAlign = 'center';
  for (const { at, label } of marks(span.from, span.to, box.width / LABEL_DISTANCE)) {
    const x = Math.round(xOf(at, span, box));
    ctx.fillStyle = p.grid;
    ctx.fillRect(x, box.top, 1, box.height);
    const half = ctx.measureText(label).width / 2;
    if (x - half < box.left - 24 || x + half > box.left + box.width + 8) continue;
    ctx.fillStyle = p.muted;
    ctx.fillText(label, x, box.top + box.height + 6);
  }
}

/** A horizontal line with its label in the left margin. */
export function drawValueMark(ctx: CanvasRenderingContext2D, box: Box, y: number, label: string, p: Palette): void {
  const line = Math.round(y);
  ctx.fillStyle = p.grid;
  ctx.fillRect(box.left, line, box.width, 1);
  setFont(ctx);
  ctx.fillStyle = p.muted;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.fillText(label, box.left - 8, Math.min(box.top + box.height - 5, Math.max(box.top + 5, line)));
}

export function drawFrame(ctx: CanvasRenderingContext2D, box: Box, p: Palette): void {
  ctx.fillStyle = p.hatch;
  ctx.fillRect(box.left, box.top + box.height, box.width, 1);
}

let pattern: { colour: string; made: CanvasPattern } | null = null;

function hatching(ctx: CanvasRenderingContext2D, colour: string): CanvasPattern | null {
  if (pattern?.colour === colour) return pattern.made;
  const tile = document.createElement('canvas');
  tile.width = 8;
  tile.height = 8;
  const t = tile.getContext('2d');
  if (t === null) return null;
  t.strokeStyle = colour;
  t.lineWidth = 1;
  for (const shift of [-8, 0, 8]) {
    t.moveTo(shift, 8);
    t.lineTo(shift + 8, 0);
  }
  t.stroke();
  const made = ctx.createPattern(tile, 'repeat');
  if (made !== null) pattern = { colour, made };
  return made;
}

/** Hatches where nothing was measured. */
export function drawGaps(ctx: CanvasRenderingContext2D, box: Box, span: Span, series: Series, live: boolean, p: Palette): void {
  const fill = hatching(ctx, p.hatch);
  if (fill === null) return;
  ctx.fillStyle = fill;
  for (const [from, to] of series.gaps(span.from, span.to)) {
    if (live && to >= span.to && to - from <= Math.max(LAG_SECONDS, series.step * 1.5)) continue;
    const [x0, x1] = [xOf(from, span, box), xOf(to, span, box)];
    ctx.fillRect(x0, box.top, x1 - x0, box.height);
  }
}

/** A mark at the top of each column in which operations were not aggregated. */
export function drawDropped(ctx: CanvasRenderingContext2D, box: Box, span: Span, series: Series, p: Palette): void {
  ctx.fillStyle = p.warn;
  const [start, end] = series.bounds(span.from, span.to);
  for (let at = start; at < end; at += 1) {
    if (!series.dropped[at]) continue;
    const x0 = xOf(series.times[at] as number, span, box);
    const x1 = xOf((series.times[at] as number) + series.step, span, box);
    ctx.fillRect(x0, box.top - 4, Math.max(2, x1 - x0 - 1), 3);
  }
}

/** The line that runs through all panels, with its time. */
export function drawCross(ctx: CanvasRenderingContext2D, box: Box, span: Span, time: number, pinned: boolean, p: Palette): void {
  if (time < span.from || time > span.to) return;
  const x = Math.round(xOf(time, span, box));
  ctx.fillStyle = p.cross;
  if (pinned) ctx.fillRect(x, box.top, 1, box.height);
  else for (let y = box.top; y < box.top + box.height; y += 4) ctx.fillRect(x, y, 1, 2);
  setFont(ctx);
  const label = clock(Math.floor(time));
  const width = ctx.measureText(label).width + 8;
  const left = Math.min(box.left + box.width - width, Math.max(box.left, x - width / 2));
  // A label of the axis that would stick out beside it is no time that anybody could read.
  ctx.fillStyle = p.ground;
  for (const { at, label: mark } of marks(span.from, span.to, box.width / LABEL_DISTANCE)) {
    const half = ctx.measureText(mark).width / 2 + 1;
    const middle = Math.round(xOf(at, span, box));
    if (middle + half > left && middle - half < left + width) ctx.fillRect(middle - half, box.top + box.height + 3, 2 * half, 16);
  }
  ctx.fillStyle = p.cross;
  ctx.fillRect(left, box.top + box.height + 3, width, 16);
  ctx.fillStyle = p.plot;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.fillText(label, left + 4, box.top + box.height + 11.5);
}
