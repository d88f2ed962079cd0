import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { HEARTBEAT_SERVICE } from '../../core/contracts/columnar-tables.ts';
import { HostError } from '../../core/host/errors/host-error.ts';
import { HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import { plaintextProblem } from '../../core/host/http/plaintext.ts';
import { type Identity, identityOf } from '../../core/host/identity.ts';
import type { CommandContext } from '../../core/host/plugin/command.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { version } from '../../core/kernel/version.ts';
import { TelemetryError } from './errors.ts';

/** The gauge by which a rule tells a process that is down from a host or collector that is dark. */
export const HEARTBEAT = 'router.diag.heartbeat';
/** The `service.name` of this sender: its samples go on when the process of the runtime has ended. */
const SENDER = HEARTBEAT_SERVICE;

/** The most posts, and milliseconds between them: the next heartbeat is a minute away. */
const TRIES = 3;
const PAUSE_MS = 1_000;

const http = new HttpClient({
  timeoutMs: 5_000,
  answerLimit: 4_096,
  excess: 'cut',
  insecure: true, // the command has checked the endpoint
});
const partialSuccess = z.object({
  partialSuccess: z
    .object({ rejectedDataPoints: z.coerce.number().default(0), errorMessage: z.string().default('') })
    .optional(),
});

/**
 * Carries out `holdfast heartbeat`. @returns 0 when the receiver has taken it
 *
 * @throws HF_TELEMETRY_HEARTBEAT it has not; HF_CLI_USAGE; HF_CONFIG_SECRET_* the file of the key
 */
export async function sendHeartbeat(
  _args: readonly string[],
  flags: Readonly<Record<string, unknown>>,
  { dataDir, json, print, signal }: CommandContext,
): Promise<number> {
  const base = endpointOf(flags.endpoint ?? process.env.OTEL_EXPORTER_OTLP_ENDPOINT);
  const authorization =
    typeof flags.tokenFile === 'string' ? readTokenFile(resolve(flags.tokenFile)) : undefined;
  const { host } = identityOf(dataDir);
  const identity = { host, instance: `${host}:heartbeat` };
  const insecure = flags.insecure === true || process.env.OTEL_EXPORTER_OTLP_INSECURE === 'true';
  const refused = plaintextProblem({ url: base.href, insecure, credential: 'the ingest key' });
  if (authorization !== undefined && refused !== undefined) {
    throw new HostError('HF_CLI_USAGE', { reason: `${refused} (--insecure).`, command: 'heartbeat' });
  }
  for (let tries = 1; ; tries += 1) {
    const reason = await postOnce(base, authorization, identity, signal);
    if (reason === undefined) break;
    if (tries === TRIES) throw new TelemetryError('HF_TELEMETRY_HEARTBEAT', { place: base.origin, reason });
    await delay(PAUSE_MS, undefined, { signal });
  }
  if (json) print(JSON.stringify({ place: base.origin, host }));
  else print(`${base.origin} has the heartbeat of ${host}`);
  return 0;
}

function endpointOf(text: unknown): URL {
  const usage = (reason: string) => new HostError('HF_CLI_USAGE', { reason, command: 'heartbeat' });
  if (text === 'own') {
    throw usage(
      '`own` is the receiver of the process that a heartbeat must outlive: name that of a collector',
    );
  }
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url;
  throw usage('--endpoint or OTEL_EXPORTER_OTLP_ENDPOINT names an OTLP/HTTP receiver, http or https');
}

/** @returns why the receiver has not taken it; undefined when it has */
async function postOnce(
  base: URL,
  authorization: string | undefined,
  identity: Identity,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const answer = await http.call({
      method: 'POST',
      url: `${base.href.replace(/\/+$/, '')}/v1/metrics`,
      headers: { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) },
      body: JSON.stringify(sampleOf(identity, Date.now())),
      signal,
    });
    if (!answer.ok) return `it answered ${answer.status}`;
    const { rejectedDataPoints = 0, errorMessage } =
      partialSuccess.safeParse(answer.json()).data?.partialSuccess ?? {};
    return rejectedDataPoints > 0 ? `it rejected the sample: ${errorMessage}` : undefined;
  } catch (error) {
    if (signal.aborted || !(error instanceof HttpCallError)) throw error;
    return error.reason;
  }
}

/** @param now epoch milliseconds */
function sampleOf({ host, instance }: Identity, now: number) {
  const named = {
    'service.name': SENDER,
    'service.version': version,
    'host.name': host,
    'service.instance.id': instance,
  };
  const attributes = Object.entries(named).map(([key, stringValue]) => ({ key, value: { stringValue } }));
  const gauge = { dataPoints: [{ timeUnixNano: `${now}000000`, asDouble: 1 }] };
  const metrics = [{ name: HEARTBEAT, description: 'Always 1: this host sends telemetry.', gauge }];
  return {
    resourceMetrics: [
      { resource: { attributes }, scopeMetrics: [{ scope: { name: SENDER, version }, metrics }] },
    ],
  };
}
