// A worksheet is its URL: `/analytics?w=STAT[!OPTION…]&w=…&span=60`, or `&from=T&to=T` when it does
// not move. Options of a panel: `!line`, `!stack`, `!crop=PERCENT`, `!hl=KEY,KEY`.
import { format, parsePrefix, type StatId } from './statid.ts';
import { DAY, HOUR, MINUTE, SPAN_MAX, SPAN_MIN, type View } from './time.ts';

/** A worksheet has no more panels than this; beyond it nobody reads them and the stream grows. */
export const PANELS_MAX = 24;
/** As many colours as can be told apart. */
export const HIGHLIGHTS_MAX = 8;

export interface PanelState {
  readonly stat: StatId;
  readonly plot: 'stack' | 'line';
  /** Per cent of the largest values left out at the top of the axis. */
  readonly crop: number;
  /** Keys of the highlighted elements, in the order of their colours. */
  readonly highlights: readonly string[];
}

export interface Worksheet {
  readonly panels: readonly PanelState[];
  readonly view: View;
}

export const CROPS = [0, 0.1, 1, 5, 10] as const;

export const panel = (stat: StatId): PanelState => ({ stat, plot: 'stack', crop: 0, highlights: [] });

function option(state: PanelState, text: string): PanelState {
  if (text === 'line' || text === 'stack') return { ...state, plot: text };
  if (text.startsWith('crop=')) {
    // As the server takes it: digits and a point, no sign, no exponent.
    const crop = /^[0-9.]+$/.test(text.slice(5)) ? Number(text.slice(5)) : NaN;
    return crop > 0 && crop < 100 ? { ...state, crop } : state;
  }
  if (text.startsWith('hl=')) {
    try {
      const highlights = text.slice(3).split(',').map(decodeURIComponent).slice(0, HIGHLIGHTS_MAX);
      return { ...state, highlights };
    } catch {
      return state;
    }
  }
  return state;
}

function parsePanel(text: string): PanelState | null {
  const found = parsePrefix(text);
  if (found === null || (found.rest !== '' && !found.rest.startsWith('!'))) return null;
  return found.rest.split('!').slice(1).reduce(option, panel(found.id));
}

export function formatPanel(state: PanelState): string {
  let text = format(state.stat);
  if (state.plot === 'line') text += '!line';
  if (state.crop > 0) text += `!crop=${state.crop}`;
  // `!` separates options, so it must not stay as it is in a key.
  const keys = state.highlights.map((key) => encodeURIComponent(key).replaceAll('!', '%21'));
  if (keys.length > 0) text += `!hl=${keys.join(',')}`;
  return text;
}

function parseView(query: URLSearchParams): View {
  const [from, to] = [Number(query.get('from') ?? NaN), Number(query.get('to') ?? NaN)];
  if (Number.isFinite(from) && Number.isFinite(to) && to > from && from > 0) {
    const start = Math.floor(from);
    return { live: false, from: start, to: Math.max(start + SPAN_MIN, Math.ceil(to)) };
  }
  const span = Number(query.get('span') ?? NaN);
  return { live: true, span: span >= SPAN_MIN && span <= SPAN_MAX ? Math.round(span) : MINUTE };
}

/** The first panel of each statistic: a panel is known by what it shows. */
export function once(panels: readonly PanelState[]): PanelState[] {
  const names = panels.map(({ stat }) => format(stat));
  return panels.filter(({ stat }, at) => names.indexOf(format(stat)) === at);
}

/** Reads the query of a URL. What cannot be read is left out; it never throws. */
export function parseWorksheet(search: string): Worksheet {
  const query = new URLSearchParams(search);
  const panels = query.getAll('w').map(parsePanel).filter((found) => found !== null);
  return { panels: once(panels).slice(0, PANELS_MAX), view: parseView(query) };
}

/** The characters of ids that may stand in a query as they are, so that a URL can be read. */
const readable = (text: string): string =>
  encodeURIComponent(text).replaceAll('%5B', '[').replaceAll('%5D', ']').replaceAll('%3D', '=')
    .replaceAll('%2F', '/').replaceAll('%2C', ',').replaceAll('%3A', ':');

export function formatWorksheet({ panels, view }: Worksheet): string {
  const parts = panels.map((state) => `w=${readable(formatPanel(state))}`);
  if (!view.live) parts.push(`from=${view.from}`, `to=${view.to}`);
  else if (view.span !== MINUTE) parts.push(`span=${view.span}`);
  // An address without a query opens the default worksheet: one that was emptied says so.
  if (panels.length === 0) parts.unshift('w=');
  return `?${parts.join('&')}`;
}

/** The address of a live worksheet with these panels, for links from other pages. */
export function sheetHref(panels: PanelState[]): string {
  return `/analytics${formatWorksheet({ panels, view: { live: true, span: MINUTE } })}`;
}

export const graphHref = (...stats: StatId[]): string => sheetHref(stats.map(panel));

export const SPANS = [
  { name: 'Minute', span: MINUTE },
  { name: 'Hour', span: HOUR },
  { name: 'Day', span: DAY },
  { name: 'Week', span: 7 * DAY },
  { name: 'Month', span: 30 * DAY },
] as const;
