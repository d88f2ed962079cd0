import type { IngestKeys } from '../../core/contracts/ingest-keys.ts';
import { isLoopback } from '../../core/host/http/admission.ts';
import { plaintextHost } from '../../core/host/plaintext.ts';
import type { CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { readTokenFile } from '../../core/kernel/secret-file.ts';

/**
 * What to send as `authorization`, read for each batch: a rotated key needs no restart. What can't be read leaves the
 * header out, and the receiver says so.
 *
 * @param endpoint the key known here goes to no other machine by itself
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

/** Whether this process sends OTLP off the host in plaintext (O26). The collector's exporters are in its own config. */
export function plaintextCheck(endpoint: string | undefined, env: NodeJS.ProcessEnv): CheckResult {
  const lookedAt = 'where OTLP of this process goes';
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
