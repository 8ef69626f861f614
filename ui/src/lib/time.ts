// The time axis: which interval is looked at, at which resolution, and where its marks go.
// A view is either live (the last `span` seconds, moving) or fixed (`from` to `to`).

export type View =
  | { readonly live: true; readonly span: number }
  | { readonly live: false; readonly from: number; readonly to: number };

export const MINUTE = 60;
export const HOUR = 3600;
export const DAY = 86_400;

/** Nothing shorter can be looked at: one column would fill a quarter of the graph. */
export const SPAN_MIN = 4;
/** A year: the longest that is kept. */
export const SPAN_MAX = 366 * DAY;
/** More points than this are not asked for: a graph is about this many pixels wide. */
export const POINTS_MAX = 720;

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, DAY];

/** Whole seconds per point so that the interval has at most POINTS_MAX of them. */
export function stepFor(span: number): number {
  return STEPS.find((step) => span / step <= POINTS_MAX) ?? DAY;
}

export function spanOf(view: View): number {
  return view.live ? view.span : view.to - view.from;
}

/** The interval of a view at the moment `now`; `to` is not included. */
export function intervalOf(view: View, now: number): { from: number; to: number } {
  return view.live ? { from: now - view.span, to: now } : { from: view.from, to: view.to };
}

const clamp = (span: number): number => Math.min(SPAN_MAX, Math.max(SPAN_MIN, Math.round(span)));

/** An interval cut to whole seconds that does not reach beyond `now`. */
function fixed(from: number, span: number, now: number): View {
  const length = clamp(span);
  const end = Math.min(Math.round(from) + length, Math.ceil(now));
  return { live: false, from: end - length, to: end };
}

/** Zooms by `factor` (below 1 = closer). Live stays live; otherwise `at` keeps its place. */
export function zoom(view: View, factor: number, now: number, at?: number): View {
  const span = clamp(spanOf(view) * factor);
  if (view.live && at === undefined) return { live: true, span };
  const { from, to } = intervalOf(view, now);
  const anchor = at ?? (from + to) / 2;
  const share = (anchor - from) / Math.max(1, to - from);
  return fixed(anchor - share * span, span, now);
}

/** Moves by a share of the span; moving left of now stops the graph. */
export function pan(view: View, share: number, now: number): View {
  const { from, to } = intervalOf(view, now);
  return fixed(from + share * (to - from), to - from, now);
}

export const pause = (view: View, now: number): View =>
  view.live ? fixed(now - view.span, view.span, now) : view;

export const resume = (view: View): View => ({ live: true, span: clamp(spanOf(view)) });

export const select = (from: number, to: number, now: number): View =>
  fixed(Math.floor(Math.min(from, to)), Math.max(from, to) - Math.min(from, to), now);

const MARKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR,
  12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY];

export interface Mark {
  at: number;
  label: string;
}

const two = (n: number): string => String(n).padStart(2, '0');

function markLabel(at: number, distance: number): string {
  const d = new Date(at * 1000);
  if (distance >= DAY) return `${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  const time = `${two(d.getHours())}:${two(d.getMinutes())}`;
  return distance >= MINUTE ? time : `${time}:${two(d.getSeconds())}`;
}

/** Seconds by which local time is behind UTC at a moment: another number in summer. */
const offsetAt = (at: number): number => new Date(at * 1000).getTimezoneOffset() * 60;

/** Round times within the interval, in the viewer's zone, at most about `most` of them. */
export function marks(from: number, to: number, most: number): Mark[] {
  const span = to - from;
  if (span <= 0 || most < 1) return [];
  const distance = MARKS.find((step) => span / step <= most) ?? 365 * DAY;
  const offset = offsetAt(from);
  const first = Math.ceil((from - offset) / distance) * distance + offset;
  const found: Mark[] = [];
  for (let n = 0; ; n += 1) {
    let at = first + n * distance;
    // Midnight is an hour earlier or later after a change to or from daylight saving time.
    if (distance >= DAY) at += offsetAt(at) - offset;
    if (!(at <= to)) return found;
    found.push({ at, label: markLabel(at, distance) });
  }
}

/** A rounded top for a value axis and its two to four marks. */
export function valueMarks(top: number, base: 1000 | 1024): number[] {
  if (!(top > 0)) return [];
  let unit = 1;
  while (top / unit >= base) unit *= base;
  while (top / unit < 1) unit /= base;
  const size = top / unit;
  const power = 10 ** Math.floor(Math.log10(size));
  const step = ([0.2, 0.5, 1, 2, 5].find((s) => size / (s * power) <= 4) ?? 5) * power * unit;
  const found: number[] = [];
  for (let at = step; at <= top * 1.0001; at += step) found.push(at);
  return found;
}
