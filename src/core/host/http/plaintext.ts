/**
 * The rule for credentials on their way to others: none leaves this machine over `http://` unless the options that name the
 * server say `insecure: true`. Options are checked when they are read (`refusePlaintext`), and `HttpClient` checks each call.
 */
import { z } from 'zod';
import { bracketed, hostOf } from './addresses.ts';
import { isLoopback } from './admission.ts';

/**
 * Where something goes that everybody on the way can read.
 *
 * @param url `http://…`, or another
 * @returns its host and port when it is plaintext and leaves this machine; undefined otherwise
 */
export function plaintextHost(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const server = new URL(url);
  return server.protocol === 'http:' && !isLoopback(hostOf(server)) ? server.host : undefined;
}

/** The option by which an operator allows plaintext, each use with a doc comment of its own. */
export const insecureOption = z.boolean().optional();

export interface Sending {
  /** The server; undefined where none is configured. */
  readonly url: string | undefined;
  /** The host that is connected to in place of the URL's. */
  readonly connectTo?: string | undefined;
  /** Whether the operator allows plaintext. */
  readonly insecure?: boolean | undefined;
  /** What is sent, as the beginning of a sentence: `the push token`. */
  readonly credential: string;
}

/** @returns why a credential must not be sent, as a part of a sentence; undefined where it may */
export function plaintextProblem({ url, connectTo, insecure, credential }: Sending): string | undefined {
  if (url === undefined || insecure === true) return undefined;
  const elsewhere = connectTo === undefined ? undefined : `http://${bracketed(connectTo)}`;
  const host = plaintextHost(url.startsWith('http:') && elsewhere !== undefined ? elsewhere : url);
  if (host === undefined) return undefined;
  return `${credential} would go to ${host} in plaintext: give an https address, or write insecure: true`;
}

/**
 * Checks options when they are read. The problem is the option `insecure`, because that or the address must change.
 *
 * @param path of `insecure` in the options
 */
export function refusePlaintext(
  context: Pick<z.RefinementCtx, 'addIssue'>,
  sending: Sending,
  path: readonly (string | number)[] = ['insecure'],
): void {
  const message = plaintextProblem(sending);
  if (message !== undefined) context.addIssue({ code: 'custom', path: [...path], message });
}

/** Names of headers that hold credentials: `authorization`, `cookie`, `api-key`, `x-vault-token` and their like. */
const CREDENTIAL = /^cookie$|authorization$|(?:^|-)(?:key|token|secret|password)$/i;

/** @returns whether one of the headers holds a credential */
export function carriesCredential(headers: Readonly<Record<string, string>>): boolean {
  return Object.keys(headers).some((name) => CREDENTIAL.test(name));
}
