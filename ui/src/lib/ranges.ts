// The rows of a range breakdown in the order of their axis.
import type { Element, Series } from './series.ts';

/** Lowest first. */
export const ranges = (series: Series): Element[] =>
  [...series.elements.values()].sort((a, b) => a.low - b.low);
