import { isLoopback } from './http/admission.ts';

/**
 * Where something goes that everybody on the way can read.
 *
 * @param url `http://…`, or another
 * @returns its host and port when it is plaintext and leaves this machine; undefined otherwise
 */
export function plaintextHost(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname, host } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, '')) ? host : undefined;
}
