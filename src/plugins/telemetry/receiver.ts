/** The receiver of this process's telemetry: the key that it gets, and the check for plaintext. */
import { z } from 'zod';
import type { IngestKeys } from '../../core/contracts/ingest-keys.ts';
import { hostOf } from '../../core/host/http/addresses.ts';
import { isLoopback } from '../../core/host/http/admission.ts';
import { plaintextHost } from '../../core/host/http/plaintext.ts';
import type { CheckContext, CheckResult } from '../../core/host/plugin/diagnosis.ts';
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
  const isHere = !URL.canParse(endpoint) || isLoopback(hostOf(new URL(endpoint)));
  return async () => {
    try {
      if (file !== undefined) return readTokenFile(file);
      return isHere ? await keys?.current() : undefined;
    } catch {
      return undefined;
    }
  };
}

/** What an instance reports of the places that it sends OTLP to. A type, because only types count as JSON. */
export type TelemetryFact = {
  /** For a person. */
  readonly text: string;
  /** Whether anything is sent. */
  readonly enabled: boolean;
  /** Names of settings with the hosts that they send to in plaintext. */
  readonly plaintext: readonly string[];
};

/** Which places this process sends OTLP to in plaintext, on another host. The collector's exporters are checked by its own plugin. */
export function telemetryFact(endpoint: string | undefined, env: NodeJS.ProcessEnv): TelemetryFact {
  const named = ['TRACES', 'METRICS', 'LOGS'].map((signal) => `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`);
  const plaintext = [
    ['the telemetry plugin', endpoint] as const,
    ...named.map((name) => [name, env[name]] as const),
  ].flatMap(([name, url]) => {
    const host = url === undefined ? undefined : plaintextHost(url);
    return host === undefined ? [] : [`${name} to ${host}`];
  });
  const text =
    endpoint === undefined
      ? 'sends nothing of its own: OTEL_EXPORTER_OTLP_ENDPOINT names no receiver'
      : 'sends its own spans and metrics';
  return { text, enabled: endpoint !== undefined, plaintext };
}

const factShape = z.object({ enabled: z.boolean(), plaintext: z.array(z.string()) });

/** Whether the running instance sends OTLP in plaintext (O26): its environment may be another than that of the command. */
export function plaintextCheck({ running }: Pick<CheckContext, 'running'>): CheckResult {
  const lookedAt = "endpoints of the instance's own OTLP";
  const { data: seen } = factShape.safeParse(running?.facts.telemetry);
  if (!seen) {
    const found = 'not looked at, because no instance with telemetry runs here';
    return { state: 'unknown', lookedAt, found, remedy: 'Start it with `holdfast start`.' };
  }
  const { enabled, plaintext } = seen;
  if (plaintext.length > 0) {
    return {
      state: 'warn',
      lookedAt,
      found: `in plaintext, the key too: ${plaintext.join(', ')}`,
      remedy: 'Send it to the OTLP gateway, port 443, with a client certificate.',
    };
  }
  const found = enabled ? 'nothing leaves the host in plaintext' : 'it sends nothing: no endpoint is set';
  return { state: 'ok', lookedAt, found };
}
