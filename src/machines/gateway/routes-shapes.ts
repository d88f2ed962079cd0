/** A route as it may be shown and recorded: no query of its URL, no token. Times are epoch milliseconds. */
export interface RouteFacts {
  readonly name: string;
  /** Names the whole definition (entry, environment entry, reference of its secret), sealed beside the record. */
  readonly fingerprint: string;
  readonly disposition: string;
  /** Where it goes, without query; absent while it is not configured. */
  readonly upstream?: string;
  /** Where its token comes from: `file:…`, `env:…` or `store:<path>#<property>`. */
  readonly secret?: string;
  /** A short fingerprint of each setting, so that a change can be told by name. */
  readonly parts: Readonly<Record<string, string>>;
}

/** A definition that serves, or did. */
export interface ServedRoute extends RouteFacts {
  /** Since when it serves. */
  readonly since: number;
  /** Revision of the table in which it began to. */
  readonly revision: number;
}

/** What is known of one name. */
export interface RouteState {
  /** Absent once its entry was taken out. */
  readonly serving?: ServedRoute;
  /** Fingerprint of what the file says; empty when it says nothing. */
  readonly source: string;
  /** It was rolled back, and stays so until the file says something else than `source`. */
  readonly pinned?: true;
  /** Why what the file says does not serve. */
  readonly problem?: string;
  /** What served before, newest first. */
  readonly before: readonly ServedRoute[];
}

/** An entry that can't be a route. */
export interface RejectedEntry {
  readonly name: string;
  /** The route that it would be: a hyphen stands for an underscore. */
  readonly route: string;
  readonly reason: string;
}

/** What a revision changed. */
export interface RouteChange {
  readonly name: string;
  readonly what: 'added' | 'changed' | 'removed' | 'rolled_back';
  /** The settings that differ. */
  readonly parts?: readonly string[];
}

export interface RoutesContext {
  /** Of the table; raised by every change. */
  readonly revision: number;
  /** Revision of the table that is in place. */
  readonly served: number;
  readonly routes: Readonly<Record<string, RouteState>>;
  readonly rejected: readonly RejectedEntry[];
  /** Why the file as a whole could not be taken. */
  readonly refused?: { readonly at: number; readonly reason: string };
  /** Of the newest revision. */
  readonly changes: readonly RouteChange[];
  readonly changedAt?: number;
}

/** Why the file was read. */
export type LoadOrigin = 'start' | 'changed' | 'asked';

export interface RoutesLoaded {
  readonly type: 'LOADED';
  readonly at: number;
  readonly origin: LoadOrigin;
  readonly routes: readonly RouteFacts[];
  readonly rejected: readonly RejectedEntry[];
}

export interface RollbackAsked {
  readonly type: 'ROLLBACK';
  readonly at: number;
  readonly route: string;
  /** A revision in which the wanted definition began to serve; the one before the present unless given. */
  readonly to?: number;
}

export type RoutesEvent =
  | RoutesLoaded
  | { readonly type: 'REFUSED'; readonly at: number; readonly origin: LoadOrigin; readonly reason: string }
  | RollbackAsked
  | { readonly type: 'SERVED'; readonly revision: number }
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string };

/** Effect `gateway.serve_routes`: the table of this revision is to serve. */
export interface ServeParams {
  readonly revision: number;
}
