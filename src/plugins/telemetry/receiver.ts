/** The receiver of this process's telemetry: the key that it gets, and the check for plaintext. */
import type { IngestKeys } from '../../core/contracts/ingest-keys.ts';
import { isLoopback, plaintextHost } from '../../core/host/http/admission.ts';
import type { CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';

/**
 * Reads the value of the header `authorization` for each export, so that a rotated key needs no restart. When it can't be
 * read, the header is left out and the receiver refuses the export.
 *
 * @param file with the token, which goes to any endpoint
 * @param endpoint decides about `keys`, which are used for a receiver on this machine only
 */
export function tokenReader(
  file: string | undefined,
  endpoint: string,
  keys: IngestKeys | undefined,
): () => Promise<string | undefined> {
  const isHere = !URL.canParse(endpoint) || isLoopback(new URL(endpoint).hostname.replace(/^\[|\]$/g, ''));
  return async () => {
    try {
      if (file !== undefined) return readTokenFile(file);
      return isHere ? await keys?.current() : undefined;
    } catch {
      return undefined;
    }
  };
}

/** Checks whether this process sends OTLP to another host in plaintext (O26). The collector's exporters are checked by its own plugin. */
export function plaintextCheck(endpoint: string | undefined, env: NodeJS.ProcessEnv): CheckResult {
  const lookedAt = 'endpoints of the OTLP of this process';
  const named = ['TRACES', 'METRICS', 'LOGS'].map((signal) => `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`);
  const places = [
    ['the telemetry plugin', endpoint] as const,
    ...named.map((name) => [name, env[name]] as const),
  ].flatMap(([name, url]) => {
    const host = url === undefined ? undefined : plaintextHost(url);
    return host === undefined ? [] : [`${name} to ${host}`];
  });
  if (places.length === 0) return { state: 'ok', lookedAt, found: 'nothing leaves the host in plaintext' };
  return {
    state: 'warn',
    lookedAt,
    found: `in plaintext, the key too: ${places.join(', ')}`,
    remedy: 'Send it to the OTLP gateway, port 443, with a client certificate.',
  };
}
