// Which rows of a long list are drawn: those in view, and some above and below them. The others are
// room of the same height, so that a list of 10,000 costs as much as one of 50.

/** Rows that are drawn, and the room of those before and after them in pixels. */
export interface Part {
  from: number;
  to: number;
  before: number;
  after: number;
}

/** A list of so many rows is drawn as a whole: the browser's own search finds all of it. */
export const ALL_MAX = 30;
/** What is drawn above and below the view (px): a turn of the wheel shows no empty room. */
const MARGIN = 320;

/** The rows between `top` and `bottom` of the view, both in pixels from the first row on. */
export function part(count: number, height: (at: number) => number, top: number, bottom: number): Part {
  if (count <= ALL_MAX) return { from: 0, to: count, before: 0, after: 0 };
  let [from, to, before, below, edge] = [count, 0, 0, 0, 0];
  for (let at = 0; at < count; at += 1) {
    const end = edge + height(at);
    if (end < top - MARGIN) before = end;
    else if (edge <= bottom + MARGIN) [from, to, below] = [Math.min(from, at), at + 1, end];
    edge = end;
  }
  // All of it is above or below the view.
  if (from >= to) return top > 0 ? { from: count, to: count, before: edge, after: 0 } : { from: 0, to: 0, before: 0, after: edge };
  return { from, to, before, after: edge - below };
}

/** The row that a key leads to from row `now`, or null if the key moves to no other row. */
export function step(key: string, now: number, count: number, page: number): number | null {
  const to = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + page, PageUp: now - page, Home: 0, End: count - 1 }[key];
  if (to === undefined) return null;
  const next = Math.min(count - 1, Math.max(0, to));
  return next === now ? null : next;
}

/** The longest of some texts: what a column of a table has to have room for. */
export const longest = (texts: string[]): string => texts.reduce((most, text) => (text.length > most.length ? text : most), '');
