// Canvas basics: sharp at any pixel density, one animation frame for everything that changed.

const queue = new Set<() => void>();
let asked = false;

/** Runs `job` once in the next animation frame, however often it is asked for. */
export function nextFrame(job: () => void): void {
  queue.add(job);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    const jobs = [...queue];
    queue.clear();
    for (const one of jobs) one();
  });
}

/** Clears a canvas and gives its context in CSS pixels; `null` while it has no size. */
export function prepare(canvas: HTMLCanvasElement): { ctx: CanvasRenderingContext2D; width: number; height: number } | null {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (width === 0 || height === 0) return null;
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const ctx = canvas.getContext('2d');
  if (ctx === null) return null;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return { ctx, width, height };
}

/** Calls back with each change of size, also the first. For `use:`. */
export function onResize(node: HTMLElement, callback: () => void): { destroy(): void } {
  const observer = new ResizeObserver(() => nextFrame(callback));
  observer.observe(node);
  return { destroy: () => observer.disconnect() };
}

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** Room for the value axis; the same in all panels, so that their times lie above one another. */
export const AXIS_LEFT = 64;
/** Room for the time axis. */
export const AXIS_BOTTOM = 20;
export const AXIS_TOP = 8;

export function plotBox(width: number, height: number): Box {
  return { left: AXIS_LEFT, top: AXIS_TOP, width: Math.max(1, width - AXIS_LEFT - 8), height: Math.max(1, height - AXIS_TOP - AXIS_BOTTOM) };
}

export interface Span {
  from: number;
  to: number;
}

export const xOf = (time: number, span: Span, box: Box): number =>
  box.left + ((time - span.from) / (span.to - span.from)) * box.width;

export const timeOf = (x: number, span: Span, box: Box): number =>
  span.from + ((x - box.left) / box.width) * (span.to - span.from);

const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

export function setFont(ctx: CanvasRenderingContext2D): void {
  ctx.font = FONT;
}
