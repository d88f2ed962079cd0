import type { IncomingHttpHeaders } from 'node:http';

/**
 * What of a client's headers an upstream gets. A list of what passes, not of what is taken out: a new header of ours, or
 * one that a proxy reads in another way, can't slip through (G19, G25).
 */
const UP: ReadonlySet<string> = new Set([
  'accept',
  'last-event-id',
  'mcp-protocol-version',
  'traceparent',
  'tracestate',
  'user-agent',
]);
const DOWN: ReadonlySet<string> = new Set(['content-type', 'retry-after', 'mcp-protocol-version']);
/** Set by the gateway itself, or not at all. */
const OWN: ReadonlySet<string> = new Set(['mcp-session-id', 'mcp-name']);

/** @returns the headers that go up as they are */
export function upHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (typeof value !== 'string') continue;
    if (UP.has(name) || (name.startsWith('mcp-') && !OWN.has(name))) passed[name] = value;
  }
  return passed;
}

/** @returns the headers that come down as they are */
export function downHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (typeof value !== 'string') continue;
    if (DOWN.has(name) || (name.startsWith('mcp-') && !OWN.has(name))) passed[name] = value;
  }
  return passed;
}
