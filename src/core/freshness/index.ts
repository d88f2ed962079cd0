/**
 * Freshness (O18, O28): how long ago the file was touched that a job touches when it has succeeded, and telling so by a
 * webhook. It is the backstop of everything else, so it needs no database, no runtime and no configuration of one.
 * Imports errors, secrets and webhook.
 */
export { type Freshness, judge, type Seen, see } from './look.ts';
export { type Format, readReceiver, type Stale, type To, tell } from './tell.ts';
