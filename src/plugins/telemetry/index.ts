/**
 * Exports the spans and metrics of this process by the OpenTelemetry SDK, as OTLP over HTTP. The receiver is another
 * program or the `otlp` plugin of this process. Without an endpoint nothing is measured, and the SDK is not loaded.
 *
 * The receiver makes no spans and the exporters are not instrumented, so telemetry never produces telemetry.
 */
import { z } from 'zod';
import { IngestKeysToken } from '../../core/contracts/ingest-keys.ts';
import { type Telemetry, TelemetryToken } from '../../core/contracts/telemetry.ts';
import { insecureOption, plaintextHost, refusePlaintext } from '../../core/host/http/plaintext.ts';
import { identityOf } from '../../core/host/identity.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { readRuntimeFile } from '../../core/host/runtime/runtime-file.ts';
import { TelemetryError } from './errors.ts';
import { plaintextCheck, telemetryFact, tokenReader } from './receiver.ts';
import type { Sdk } from './sdk.ts';
import { standaloneCommands } from './standalone.ts';

/** As `endpoint`: the receiver of this process. */
const OWN = 'own';

const fields = z.strictObject({
  /** Base of an OTLP/HTTP receiver, e.g. `http://127.0.0.1:4318`, or `own` for the one of this process. */
  endpoint: z.union([z.literal(OWN), z.url({ protocol: /^https?$/ })]).optional(),
  /** File (mode 0600) with the ingest key; a receiver on this machine gets the key known here without. */
  tokenFile: z.string().min(1).optional(),
  /** The ingest key may go to another machine over `http://`. */
  insecure: insecureOption,
  serviceName: z.string().min(1).max(200).default('holdfast'),
  /** How often spans are exported, milliseconds. */
  everyMs: z.int().min(100).max(600_000).default(10_000),
  /** How often metrics are exported, milliseconds. */
  metricsEveryMs: z.int().min(100).max(600_000).default(60_000),
});

const options = fields.superRefine(({ endpoint, tokenFile, insecure }, context) => {
  // The SDK reads this variable by itself.
  const sendsKey = tokenFile !== undefined || Boolean(process.env.OTEL_EXPORTER_OTLP_HEADERS);
  if (sendsKey) refusePlaintext(context, { url: endpoint, insecure, credential: 'the ingest key' });
});

/**
 * The plugin `telemetry`: our own spans and metrics, sent as OTLP.
 *
 * @public
 */
export const telemetry = definePlugin({
  name: 'telemetry',
  about: {
    area: 'Telemetry stack',
    what: 'our own spans and metrics, sent as OTLP',
    docs: 'stack.md',
  },
  options,
  env: {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'endpoint',
    OTEL_METRIC_EXPORT_INTERVAL: 'metricsEveryMs',
    OTEL_EXPORTER_OTLP_INSECURE: 'insecure',
  },
  variables: {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'Receiver of our own spans and metrics; `own` for the one of this process.',
    OTEL_RESOURCE_ATTRIBUTES:
      'Names the host and the instance of our series and alerts: `host.name=router,service.instance.id=ula-reconcile`.',
    OTEL_METRIC_EXPORT_INTERVAL: 'Milliseconds between two exports of metrics; 60000 unless set.',
    OTEL_EXPORTER_OTLP_INSECURE:
      'Whether the ingest key may go to another machine over http; not unless `true`.',
    OTEL_EXPORTER_OTLP_HEADERS: 'Headers of those exports, as the OpenTelemetry SDK reads them.',
  },
  errors: TelemetryError,
  wants: [IngestKeysToken],
  provides: [TelemetryToken],
  onFailure: 'continue',
  start: async (services, settings) => ({ sdk: await startSdk(services, settings) }),
  register(context, { endpoint }) {
    context.provide(TelemetryToken, ({ sdk }): Telemetry => (sdk ? { enabled: true, ...sdk } : disabled));
    for (const command of standaloneCommands) context.command(command);
    context.health('telemetry', () => telemetryFact(endpoint, process.env));
    context.check({ name: 'stack.telemetry', run: plaintextCheck });
    context.onStop(({ sdk }) => sdk?.stop());
  },
});

async function startSdk(
  services: Services,
  { endpoint, tokenFile, ...settings }: z.output<typeof options>,
): Promise<Sdk | undefined> {
  if (endpoint === undefined) return undefined;
  const host = plaintextHost(endpoint);
  if (host !== undefined) {
    const remedy = 'use the OTLP gateway, port 443, with a client certificate';
    services.logger.warn({ host, remedy }, 'telemetry.plaintext');
  }
  const own = () => readRuntimeFile(services.dataDir)?.surfaces.otlpHttp;
  const sdk = await import('./sdk.ts');
  return sdk.startSdk({
    ...settings,
    identity: identityOf(services.dataDir),
    endpoint: () => (endpoint === OWN ? own()?.url : endpoint),
    certFile: () => (endpoint === OWN ? own()?.tls?.file : undefined),
    token: tokenReader(tokenFile, endpoint, services.find(IngestKeysToken)),
    log: () => services.log.status(),
  });
}

const disabled: Telemetry = {
  enabled: false,
  tracer: refuse,
  meter: refuse,
  exportMetrics: refuse,
  spanExport: refuse,
};

function refuse(): never {
  throw new Error('telemetry has no endpoint: check `enabled` before you ask for a tracer or a meter');
}
