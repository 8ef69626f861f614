// Runs of load jobs as the API tells them, and what pages show of them.
import { request } from '../api/client.ts';
import { capital, clock, day } from './format.ts';

export interface Step {
  clients: number;
  threads: number;
  started: number;
  figure: number;
  text: string;
  p50_ns: number;
  p99_ns: number;
  steady: string;
}

export interface Run {
  id: string;
  kind: 'run' | 'limits' | 'ab' | 'program' | 'iozone' | 'net' | 'suite';
  job: string;
  title: string;
  by: string;
  from: string;
  target: string;
  share: string | null;
  scratch: string;
  clients: number;
  /** `gone`: it was destroyed. */
  state: 'queued' | 'preparing' | 'running' | 'done' | 'failed' | 'aborted' | 'gone';
  queued: number;
  started: number | null;
  ended: number | null;
  planned: [number, number][];
  steps: Step[];
  message: string;
  /** Tests of IOzone that have ended. */
  lines?: string[];
  value: string | null;
  best: [number, number] | null;
  limiter: string | null;
  confidence: number | null;
  why: string[];
  degraded: string[];
}

export interface Comparison {
  job: string;
  differences: [string, string, string][];
  figures_text: [string, string];
  ratio: number;
  distinction: 'undecided' | 'differ' | 'chance';
  significant: boolean;
  sentence: string;
  p99_ns: [number, number];
  limiters: [string, string];
}

/** A part of a result, as every report of it has it. */
export interface Section {
  id: string;
  title: string;
  sentences: string[];
  heads: string[];
  rows: string[][];
}

export interface Figures {
  kind: 'run' | 'summary' | 'ab' | 'program' | 'iozone' | 'iozone-over' | 'net' | 'suite';
  title: string;
  sections: Section[];
}

/** Actions beside jobs: what takes several targets, and what takes none. */
export const SEVERAL = [
  { name: 'limits', title: 'Performance Limit Summary', about: 'What is the limit of each job on each target, and what sets it?' },
  { name: 'ab', title: 'Comparison', about: 'Is one target faster than the other, and by how much?' },
];

/** Actions that run threads of a text, or tests of another tool. */
export const LOADS = [
  { name: 'program', title: 'Program', about: 'How does a Filebench workload run here? Threads with their operations on sets of files, as text.' },
  { name: 'iozone', title: 'IOzone', about: 'What do the tests of IOzone’s throughput mode show, with children that begin together?' },
  { name: 'seqread', title: 'Sequential reads', about: 'How does sequential reading grow with block size and with threads?' },
  { name: 'filebench', title: 'Filebench workloads', about: 'What do nine Filebench workloads and file creation reach from 18 clients, next to a published table?' },
  { name: 'net', title: 'Network profile', about: 'How fast is the network, and how large are the segments that TCP sends?' },
];

export const RUNS = '/lab/runs';
export const STREAM = '/lab/stream';

export const compare = (a: string, b: string): Promise<Comparison> =>
  request('GET', `/lab/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`, 'compare the runs');

export const figures = (id: string): Promise<Figures> => request('GET', `/lab/runs/${encodeURIComponent(id)}/figures`, 'show the figures of the run');
export const figuresOf = (result: unknown): Promise<Figures> => request('POST', '/lab/figures', 'show the result', result);

const emptied = (latency: unknown): unknown => (typeof latency === 'object' && latency !== null ? { ...latency, histogram: '' } : latency);

/** A result without what only its own report draws: windows, histograms, data of the server. */
export function slim(result: unknown): unknown {
  if (typeof result !== 'object' || result === null || !('steps' in result) || !Array.isArray(result.steps)) return result;
  const steps = result.steps.map((step: Record<string, unknown>) => {
    const open = step.open as Record<string, unknown> | null | undefined;
    return { ...step, windows: [], server: {}, latency: emptied(step.latency), ...(open ? { open: { ...open, lateness: emptied(open.lateness) } } : {}) };
  });
  return { ...result, steps };
}

/** Parts that are long and seldom read. */
export const isFolded = ({ id }: Section): boolean => ['steps', 'archive', 'cells', 'reasons', 'rounds', 'flowops', 'command', 'children'].includes(id);

export const report = (id: string): string => `/api/v1/lab/runs/${encodeURIComponent(id)}/report`;
export const result = (id: string): string => `/api/v1/lab/runs/${encodeURIComponent(id)}/result`;
export const runHref = (id: string): string => `${RUNS}/${encodeURIComponent(id)}`;

export const isOver = (run: { state: string }): boolean => !['queued', 'preparing', 'running'].includes(run.state);
/** Why an action of a run is not to be had in this state, or null. */
export function notNow(state: string, action: string): string | null {
  const over = isOver({ state });
  if (action === 'abort' && over) return `Nothing to abort: the run has ended (${state}).`;
  if (action === 'destroy' && !over) return 'The run has not ended: abort it first.';
  return null;
}

export const numberOf = (run: { id: string }): number => Number(run.id.slice(1));

/** A difference between two records, which are in JSON, as people write it: `gain_percent` is Gain percent. */
export function difference([name, ...values]: [string, string, string]): [string, string, string] {
  const plain = (value: unknown): string => {
    if (Array.isArray(value)) return value.every((one) => !Array.isArray(one)) && value.length === 2 ? value.map(plain).join(' × ') : value.map(plain).join(', ');
    if (typeof value === 'object' && value !== null) return Object.entries(value).map(([of, one]) => `${of.replaceAll('_', ' ')} ${plain(one)}`).join(', ');
    return String(value);
  };
  const read = (text: string): string => {
    try {
      return plain(JSON.parse(text));
    } catch {
      return text;
    }
  };
  return [capital(name.replaceAll('_', ' ')), read(values[0]), read(values[1])];
}

/** What the descriptions of a job say differs with the job, of which the name is enough. */
const DESCRIBES = ['answers', 'expect', 'title'];

/** What two runs are to each other, in a sentence. */
export function verdict({ differences, ratio, distinction }: Comparison): string {
  if (differences.some(([name]) => name === 'name')) return 'These are runs of different jobs and cannot be compared.';
  const means = {
    undecided: 'one run of each does not show whether they differ',
    differ: 'the difference is significant',
    chance: 'the difference is not significant',
  }[distinction];
  return `The newer result is ${ratio.toFixed(2)} times the older one; ${means}.`;
}

/** Where two runs differ, in words. */
export const differences = (found: Comparison): [string, string, string][] =>
  found.differences.filter(([name]) => !DESCRIBES.includes(name)).map(([name, a, b]) => difference([name === 'name' ? 'job' : name, a, b]));

/** The list with one run as it is now, the newest first. */
export function taken(runs: Run[], run: Run): Run[] {
  const others = runs.filter(({ id }) => id !== run.id);
  return run.state === 'gone' ? others : [...others, run].sort((a, b) => numberOf(b) - numberOf(a));
}

export const load = ([clients, threads]: readonly [number, number]): string => `${clients}\u00a0×\u00a0${threads}`;

/** What came of it, or what it does, in a few words. */
export function outcome(run: Run): string {
  if (run.value === null) return run.message;
  return run.best === null ? run.value : `${run.value} at ${load(run.best)}`;
}

/** A comparison has no page of its own, and only runs of one job can be laid side by side. */
export const hasReport = (run: Run): boolean => isOver(run) && run.value !== null && run.kind !== 'ab';
export const isComparable = (run: Run): boolean => isOver(run) && run.value !== null && run.kind === 'run';

/** A step that was made, or one that is still to come. */
export interface Stair {
  load: string;
  step: Step | null;
  /** Length of its bar, 0 to 1. */
  part: number;
  best: boolean;
  now: boolean;
}

/** The whole staircase; what throughput made needless is left out once the run is over. */
export function stairs(run: Run): Stair[] {
  const top = Math.max(0, ...run.steps.map(({ figure }) => figure));
  const made = run.steps.map((step): Stair => ({
    load: load([step.clients, step.threads]),
    step,
    part: top > 0 ? step.figure / top : 0,
    best: run.best !== null && step.clients === run.best[0] && step.threads === run.best[1],
    now: false,
  }));
  if (isOver(run)) return made;
  const ahead = run.planned.slice(run.steps.length);
  return [...made, ...ahead.map((one, at): Stair => ({ load: load(one), step: null, part: 0, best: false, now: at === 0 && run.state === 'running' }))];
}

/** The server's own graphs of the time of a run; of one that goes on, from now on. */
export function graphs(run: Run): string {
  const protocol = run.target.startsWith('nfs4:') ? 'nfs4' : 'nfs3';
  const sheet = [`${protocol}.ops[client]`, `${protocol}.ops[latency]`, 'cpu.utilization[mode]'].map((stat) => `w=${encodeURIComponent(stat)}`).join('&');
  const first = run.started;
  return `/analytics?${sheet}${run.ended === null || first === null ? '' : `&from=${first - 1}&to=${Math.max(run.ended, first + 4) + 1}`}`;
}

export const when = (seconds: number): string => `${day(seconds)} ${clock(seconds)}`;
