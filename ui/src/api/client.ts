// The one place that sends requests. Errors come out as ApiError with the server's own words.
import type { ApiErrorBody, Data, DavLock, Listing, NfsClient, NfsLock, NfsOpen, Session, Statistic, Status } from './types.ts';

/** A request that was answered with an error, or not at all (`status` 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly tried: string;
  readonly failed: string;
  readonly hint: string;
  /** Which node and which of its properties it is about, where the server says so. */
  readonly path: string | null;
  readonly property: string | null;

  constructor(status: number, tried: string, failed: string, hint: string, path: string | null = null, property: string | null = null) {
    super(`${tried}: ${failed}`);
    this.status = status;
    this.tried = tried;
    this.failed = failed;
    this.hint = hint;
    this.path = path;
    this.property = property;
  }
}

let signedOut: () => void = () => {};

/** Called whenever a request other than the sign-in itself is answered with 401. */
export function onSignedOut(callback: () => void): void {
  signedOut = callback;
}

function errorOf(status: number, text: string, tried: string): ApiError {
  try {
    const { error } = JSON.parse(text) as ApiErrorBody;
    return new ApiError(status, error.tried, error.failed, error.hint, error.path ?? null, error.property ?? null);
  } catch {
    return new ApiError(status, tried, `the server returned ${status}`, '');
  }
}

let asked: () => (answered: boolean) => void = () => () => {};

/** Called with each request; what it gives is called when that was answered, or was not. */
export function onAsked(callback: () => (answered: boolean) => void): void {
  asked = callback;
}

/** How long requests may wait for their answers (ms); without one as long as they do. */
interface Limits {
  reads?: number;
  changes?: number;
}

let limits: Limits = {};

/** Requests from now on end after these times: for a time in which the address of the server may be gone. */
export function limitRequests(to: Limits): void {
  limits = to;
}

async function answerOf(method: string, path: string, tried: string, type: string, body: string | null): Promise<string> {
  let response: Response;
  let text: string;
  const over = asked();
  try {
    const headers: Record<string, string> = body === null ? {} : { 'content-type': type };
    const limit = method === 'GET' ? limits.reads : limits.changes;
    const signal = limit === undefined ? null : AbortSignal.timeout(limit);
    response = await fetch(`/api/v1${path}`, { method, credentials: 'same-origin', headers, body, signal });
    text = await response.text();
    over(true);
  } catch {
    over(false);
    throw new ApiError(0, tried, 'the server does not respond', 'Check that the server is running and that the network is available.');
  }
  if (!response.ok) {
    const error = errorOf(response.status, text, tried);
    if (error.status === 401 && path !== '/session') signedOut();
    throw error;
  }
  return text;
}

/** Sends JSON and reads JSON; `tried` says what it was for, in case that nobody answers. */
export async function request<T>(method: string, path: string, tried: string, body?: unknown): Promise<T> {
  const text = await answerOf(method, path, tried, 'application/json', body === undefined ? null : JSON.stringify(body));
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** The same for what is text in both directions. */
export const requestText = (method: string, path: string, tried: string, body: string | null = null): Promise<string> =>
  answerOf(method, path, tried, 'application/toml', body);

export const signIn = (user: string, password: string): Promise<Session> =>
  request('POST', '/session', 'sign in', { user, password });

export const whoAmI = (): Promise<Session> => request('GET', '/session', 'read the session');

export const signOut = (): Promise<void> => request('DELETE', '/session', 'sign out', {});

export const status = (): Promise<Status> => request('GET', '/status', 'read the status');

export const statistics = (): Promise<Statistic[]> =>
  request('GET', '/analytics/statistics', 'list the statistics');

const NFS = '/services/nfs';
const ofClient = (id: string): string => `?client=${encodeURIComponent(id)}`;

export const nfsClients = (): Promise<Listing<NfsClient>> =>
  request('GET', `${NFS}/clients`, 'list the NFS clients');

export const nfsOpens = (client: string): Promise<Listing<NfsOpen>> =>
  request('GET', `${NFS}/opens${ofClient(client)}`, 'list its open files');

export const nfsLocks = (client: string): Promise<Listing<NfsLock>> =>
  request('GET', `${NFS}/locks${ofClient(client)}`, 'list its locks');

/** Ends a client with all that it holds; tells what it was. */
export const expireNfsClient = (client: string): Promise<NfsClient> =>
  request('DELETE', `${NFS}/clients/${encodeURIComponent(client)}`, 'expire the client');

export const davLocks = (): Promise<Listing<DavLock>> =>
  request('GET', '/services/http/locks', 'list the locks of WebDAV clients');

/** Ends a lock; tells what it was. */
export const releaseDavLock = (id: string): Promise<DavLock> =>
  request('DELETE', `/services/http/locks/${encodeURIComponent(id)}`, 'release the lock');

/** The interval and resolution of a query; `to` is not included. */
export interface Interval {
  from: number;
  to: number;
  step?: number;
  top?: number;
}

/** The query part of a data request, also used for export links. */
export function dataPath(stat: string, interval: Interval): string {
  const query = new URLSearchParams({ stat });
  query.set('from', String(interval.from));
  query.set('to', String(interval.to));
  if (interval.step !== undefined) query.set('step', String(interval.step));
  if (interval.top !== undefined) query.set('top', String(interval.top));
  return `/analytics/data?${query}`;
}

export const data = (stat: string, interval: Interval): Promise<Data> =>
  request('GET', dataPath(stat, interval), `read ${stat}`);

/** Where a statistic can be downloaded as JSON. */
export const dataUrl = (stat: string, interval: Interval): string =>
  `/api/v1${dataPath(stat, interval)}`;
