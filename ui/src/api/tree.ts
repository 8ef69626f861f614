// The tree of administration: its declaration, its nodes, changes, revisions, audit and logs.
// Shapes that may come in two forms are brought into one here, so that pages know only one.
import { request, requestText } from './client.ts';

export type Value = boolean | number | string | Value[] | null;

export interface Kind {
  type: 'bool' | 'integer' | 'bytes' | 'seconds' | 'time' | 'choice' | 'text' | 'list';
  min?: number | null;
  max?: number | null;
  choices?: { value: string; meaning: string }[] | null;
  of?: Kind | null;
  shape?: string | null;
  max_length?: number | null;
}

export interface Property {
  name: string;
  title: string;
  kind: Kind;
  unit: string;
  default: Value;
  role: 'setting' | 'state' | 'secret' | 'at-create';
  help: string;
  example: string;
  required?: boolean;
  /** Its default is the value of the node above. */
  inherited?: boolean;
  /** `service-restart`: a change takes effect when the service restarts; `restart`: when the server starts again. */
  effect?: string;
  /** The node whose items its values are names of. */
  items_of?: string | null;
  /** Of what use it is only with some values of another property. */
  only_if?: { property: string; values: string[] } | null;
  /** What is read in place of a time that is 0 or not there. */
  absent?: string;
}

export interface Action {
  name: string;
  title: string;
  help: string;
  destructive: boolean;
  /** It only shows something. */
  reads?: boolean;
  parameters: Property[];
}

export interface Items {
  noun: string;
  plural: string;
  key: Kind;
  max: number;
  origin: string;
  context: Context;
  /** Those that are always there. */
  fixed?: string[];
}

/** The declaration of a node. */
export interface Context {
  name: string;
  title: string;
  help: string;
  scope: string;
  properties: Property[];
  actions: Action[];
  children: Context[];
  items: Items | null;
  statistics?: string[];
}

export interface NodeProperty {
  name: string;
  value: Value;
  source: string;
  from: string | null;
  role: string;
  /** Of a secret: whether there is one. */
  set?: boolean;
  /** Why it cannot be set now. */
  why?: string | null;
}

/** Current state of a node. */
export interface Node {
  path: string;
  name: string;
  title: string;
  help: string;
  revision: number;
  properties: NodeProperty[];
  children: string[];
  items: string[];
  actions: string[];
  may: { change: boolean; why: string };
  /** Nodes below it, as far as they were asked for, by name. */
  below: Record<string, Node>;
}

export type ChangeRequest =
  | { set: string; property: string; value: Value }
  | { unset: string; property: string }
  | { create: string; name: string; properties: Record<string, Value> }
  | { destroy: string; confirm: boolean }
  | { rename: string; to: string };

export interface Change {
  path?: string;
  /** None: the node itself came or went. */
  property?: string | null;
  action?: string | null;
  before?: Value;
  after?: Value;
}

export interface Committed {
  revision: number;
  changes: Change[];
  notes: string[];
}

export interface Revision {
  revision: number;
  when: number;
  who: string;
  from: string;
  comment: string;
  changes: number;
}

export interface AuditEntry extends Change {
  when: number;
  who: string;
  from: string;
  /** What else is to be said. */
  detail?: string;
}

/** A transfer that has ended, as docs/formats/transfers.md has it. */
export interface Transfer {
  start: string;
  end: string;
  protocol: string;
  direction: string;
  share: string;
  path: string;
  user: string;
  client: string;
  bytes: number;
  offset?: number;
  duration_us: number;
  outcome: string;
  reason?: string;
  security?: string;
  cipher?: string;
}

export interface LogLine {
  /** Counts up by one from line to line. */
  number: number;
  when: number;
  service: string;
  level: string;
  text: string;
}

type Raw = Record<string, unknown>;

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** Names, or nodes in place of names. */
function below(found: unknown, into: Record<string, Node>): string[] {
  return (Array.isArray(found) ? found : []).map((one: unknown) => {
    if (typeof one === 'string') return one;
    const node = nodeOf(one as Raw);
    into[node.name] = node;
    return node.name;
  });
}

export function nodeOf(raw: Raw): Node {
  const nested: Record<string, Node> = {};
  const { name, path = '/' } = raw as unknown as Node;
  return {
    ...(raw as unknown as Node),
    name: name ?? nameOf(path),
    children: below(raw.children, nested),
    items: below(raw.items, nested),
    actions: ((raw.actions ?? []) as unknown[]).map((one) => (typeof one === 'string' ? one : (one as Action).name)),
    below: nested,
  };
}

const changesOf = (raw: unknown): Change[] =>
  (Array.isArray(raw) ? raw : ((raw as Raw | undefined)?.changes as Change[] | undefined)) ?? [];

const rowsOf = <T>(raw: T[] | { rows: T[] }): T[] => (Array.isArray(raw) ? raw : raw.rows);

const committed = (raw: Partial<Committed>): Committed =>
  ({ revision: raw.revision ?? 0, changes: changesOf(raw), notes: raw.notes ?? [] });

/** `/shares/default/a b` as it stands in an address. */
export const encodePath = (path: string): string => path.split('/').map(encodeURIComponent).join('/');

export const tree = (): Promise<Context> => request('GET', '/tree', 'read what can be configured');

export async function node(path: string, depth = 0): Promise<Node> {
  return nodeOf(await request('GET', `/nodes${encodePath(path)}${depth > 0 ? `?depth=${depth}` : ''}`, `read ${path}`));
}

/** Everything in one transaction; `revision`: fails if the same nodes were changed since. */
export interface Transaction {
  revision?: number;
  dry_run?: boolean;
  comment?: string;
  changes: ChangeRequest[];
}

export const change = async (transaction: Transaction): Promise<Committed> =>
  committed(await request('POST', '/changes', transaction.dry_run ? 'check the changes' : 'commit the changes', transaction));

export const act = (path: string, action: string, parameters: Record<string, Value>): Promise<{ result: unknown }> =>
  request('POST', `/nodes${encodePath(path)}/actions/${encodeURIComponent(action)}`, `${action} ${path}`, { parameters });

export const EXPORT = '/api/v1/configuration';

export const exported = (): Promise<string> => requestText('GET', '/configuration', 'export the configuration');

/** Without `seen` only what it would change is told; with it, that revision and no other is replaced. */
export const imported = async (toml: string, seen: number | null): Promise<Committed> =>
  committed(JSON.parse((await requestText('PUT', `/configuration?${seen === null ? 'dry_run=1' : `revision=${seen}`}`, 'import the configuration', toml)) || '{}') as Partial<Committed>);

export async function history(): Promise<Revision[]> {
  type Told = Omit<Revision, 'changes'> & { changes: number | unknown[] };
  const all = rowsOf(await request<Told[] | { rows: Told[] }>('GET', '/configuration/history', 'list the revisions'));
  const counted = all.map((one) => ({ ...one, changes: Array.isArray(one.changes) ? one.changes.length : one.changes }));
  return counted.sort((a, b) => b.revision - a.revision);
}

export const revision = (n: number): Promise<string> => requestText('GET', `/configuration/history/${n}`, `read revision ${n}`);

export const compare = async (from: number, to: number): Promise<Change[]> =>
  changesOf(await request('GET', `/configuration/compare?from=${from}&to=${to}`, `compare revisions ${from} and ${to}`));

/** Takes revision `n` again in place of the one that was `seen` in force, and of no other. */
export const restore = async (n: number, seen: number): Promise<Committed> =>
  committed(await request('POST', '/configuration/restore', `restore revision ${n}`, { revision: n, seen }));

export async function audit(path: string, limit: number): Promise<AuditEntry[]> {
  const query = new URLSearchParams({ limit: String(limit) });
  if (path !== '') query.set('path', path);
  return rowsOf(await request<AuditEntry[] | { rows: AuditEntry[] }>('GET', `/audit?${query}`, 'read the audit log'));
}

/** The newest first; what is empty is not asked for. */
export function transfers(wanted: Record<string, string | number>): Promise<{ rows: Transfer[]; more: boolean }> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wanted)) if (value !== '') query.set(name, String(value));
  return request('GET', `/transfers?${query}`, 'read the log of transfers');
}

export const logs = async (limit: number): Promise<LogLine[]> =>
  rowsOf(await request<{ rows: LogLine[] }>('GET', `/logs?limit=${limit}`, 'read the log'));

/** How long to wait before a stream that was refused or cut is tried again (ms). */
const AGAIN_MS = 5000;

/** Listens to server-sent events of one name until the returned function is called. */
export function follow<T>(path: string, name: string, event: (one: T) => void, live: (connected: boolean) => void): () => void {
  let source: EventSource;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = (message: MessageEvent<string>): void => {
    try {
      event(JSON.parse(message.data) as T);
    } catch {
      // What is not JSON is a comment or a sign of life.
    }
  };
  const start = (): void => {
    source = new EventSource(`/api/v1${path}`);
    source.onopen = () => live(true);
    source.addEventListener(name, heard);
    // What a slow reader has lost is read anew, as after an interruption.
    source.addEventListener('lost', () => { live(false); live(true); });
    source.onerror = () => {
      live(false);
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(start, AGAIN_MS);
    };
  };
  start();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
