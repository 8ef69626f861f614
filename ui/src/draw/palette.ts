// The colours of the page as the canvas needs them: read from the CSS tokens once per theme.

export interface Palette {
  ground: string;
  plot: string;
  grid: string;
  area: string;
  stroke: string;
  hatch: string;
  cross: string;
  text: string;
  muted: string;
  warn: string;
  heatLow: Rgb;
  heatHigh: Rgb;
  heatMark: Rgb;
  series: string[];
}

export type Rgb = [number, number, number];

let current: Palette | null = null;
const listeners = new Set<() => void>();

/** `#rrggbb` as three bytes; the tokens are all written so. */
export function rgb(hex: string): Rgb {
  const n = Number.parseInt(hex.replace('#', ''), 16);
  return Number.isNaN(n) ? [128, 128, 128] : [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

export function palette(): Palette {
  if (current !== null) return current;
  const style = getComputedStyle(document.documentElement);
  const token = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  current = {
    ground: token('bg'),
    plot: token('plot'),
    grid: token('grid'),
    area: token('area'),
    stroke: token('stroke'),
    hatch: token('hatch'),
    cross: token('cross'),
    text: token('text'),
    muted: token('muted'),
    warn: token('warn'),
    heatLow: rgb(token('heat-low')),
    heatHigh: rgb(token('heat-high')),
    heatMark: rgb(token('heat-mark')),
    series: [0, 1, 2, 3, 4, 5, 6, 7].map((n) => token(`c${n}`)),
  };
  return current;
}

/** Calls back when the system changes between light and dark; gives the way to stop. */
export function onTheme(callback: () => void): () => void {
  listeners.add(callback);
  return () => listeners.delete(callback);
}

if (typeof matchMedia === 'function') {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    current = null;
    for (const listener of listeners) listener();
  });
}
