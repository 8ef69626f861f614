// The shapes of docs/protocols/api.md, by hand. Times are seconds since the Unix epoch.

/** What went wrong, in the words of the server. */
export interface ApiErrorBody {
  error: { tried: string; failed: string; hint: string; path?: string | null; property?: string | null };
}

export interface Session {
  user: string;
}

export interface Access {
  protocol: string;
  url: string;
  mount: string;
  note: string | null;
}

export interface Share {
  name: string;
  dir: string;
  read_only: boolean;
  total_bytes: number;
  available_bytes: number;
  /** Rules CLIENT(OPTIONS) in their order; none: everyone, everything. */
  exports: string[];
  access: Access[];
}

export interface Service {
  name: string;
  state: string;
  listen: string | null;
  reason: string | null;
}

export interface Budget {
  id: string;
  sentence: string;
  used: number;
  limit: number;
}

export interface Status {
  name: string;
  version: string;
  started: number;
  now: number;
  pid: number;
  healthy: boolean;
  problems: string[];
  /** How many there are at /maintenance/problems. */
  machine_problems?: number;
  acting_as: { privileged: boolean; user: string; note: string };
  shares: Share[];
  services: Service[];
  budgets: Budget[];
}

/** A list that may be cut. */
export interface Listing<T> {
  rows: T[];
  more: boolean;
}

/** A client of NFS that holds state. */
export interface NfsClient {
  id: string;
  protocol: string;
  version: string;
  /** The latest first. */
  addresses: string[];
  label: string;
  name: string;
  principal: string;
  state: string;
  /** Seconds since it was heard of; null: those of NLM need not say anything. */
  silent_s: number | null;
  sessions: number;
  opens: number;
  locks: number;
  waiting: number;
  delegations: number;
}

/** A lock of a WebDAV client. */
export interface DavLock {
  /** A part of its token. */
  id: string;
  user: string;
  client: string | null;
  label: string;
  file: string;
  share: string;
  scope: string;
  depth: string;
  owner: string;
  /** Seconds since the epoch. */
  since: number | null;
  timeout_s: number;
  left_s: number;
}

/** An open or a delegation. */
export interface NfsOpen {
  client: string;
  protocol: string;
  label: string;
  file: string;
  share: string | null;
  kind: string;
  access: string;
  deny: string;
  owner: string;
}

/** A byte-range lock, held or waited for; no length: to the end of the file. */
export interface NfsLock {
  client: string;
  protocol: string;
  label: string;
  file: string;
  share: string | null;
  kind: string;
  offset: number;
  length: number | null;
  waiting: boolean;
  owner: string;
}

export interface BreakdownInfo {
  id: string;
  sentence: string;
  kind: 'discrete' | 'range';
  unit: string | null;
}

/** One entry of the catalogue of what can be asked. */
export interface Statistic {
  id: string;
  group: string;
  /** The title of the group. */
  group_name: string;
  metric: string;
  sentence: string;
  unit: string;
  kind: string;
  breakdowns: BreakdownInfo[];
}

/** A level or rate per step; `null` is a step without data. */
export type Values = (number | null)[];

export interface Row {
  key: string;
  label: string;
  average: number;
  values: Values;
  /** Of the breakdown by phase only: the mean time of an operation in it, in nanoseconds. */
  time?: { average_ns: number; share: number; values_ns: Values } | null;
}

/** Operations between `low` and `high` (not included), nanoseconds or bytes. */
export interface Bucket {
  low: number;
  high: number;
  average: number;
  values: Values;
}

/** One statistic over one interval; `to` is not included. */
export interface Data {
  stat: string;
  title: string;
  unit: string;
  from: number;
  to: number;
  step: number;
  times: number[];
  total: Values;
  rows?: Row[] | null;
  other?: { average: number; values: Values } | null;
  buckets?: Bucket[] | null;
  dropped: number[];
  source: 'store' | 'recorder';
  exact: boolean;
  error_bound: number;
  note: string | null;
}
