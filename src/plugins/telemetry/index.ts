/**
 * Our own telemetry by the OpenTelemetry SDK: spans and instruments of whoever asks for `TelemetryToken`, and metrics of
 * the process, sent as OTLP over HTTP to a receiver elsewhere or to our own. Without an endpoint nothing is measured,
 * and the SDK is not even loaded.
 *
 * Nothing loops: the receiver makes no spans, and what exports is not instrumented.
 *
 * Imports core; no other plugin.
 */
import { z } from 'zod';
import { IngestKeysToken } from '../../core/contracts/ingest-keys.ts';
import { type Telemetry, TelemetryToken } from '../../core/contracts/telemetry.ts';
import { plaintextHost } from '../../core/host/plaintext.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { readRuntimeFile } from '../../core/host/runtime/runtime-file.ts';
import { plaintextCheck, tokenReader } from './receiver.ts';
import type { Sdk } from './sdk.ts';

/** Our own receiver, wherever it listens. */
const OWN = 'own';

export const telemetry = definePlugin({
  name: 'telemetry',
  about: {
    area: 'Telemetry stack',
    what: 'our own spans and metrics, sent as OTLP',
    docs: 'stack.md',
  },
  options: z.strictObject({
    /** Base of an OTLP/HTTP receiver, e.g. `http://127.0.0.1:4318`, or `own` for the one of this process. */
    endpoint: z.union([z.literal(OWN), z.url({ protocol: /^https?$/ })]).optional(),
    /** File (mode 0600) with the ingest key; a receiver on this machine gets the key known here without. */
    tokenFile: z.string().min(1).optional(),
    serviceName: z.string().min(1).max(200).default('holdfast'),
    /** How often spans go out, and metrics; milliseconds. */
    everyMs: z.int().min(100).max(600_000).default(10_000),
    metricsEveryMs: z.int().min(100).max(600_000).default(60_000),
  }),
  env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'endpoint' },
  wants: [IngestKeysToken],
  provides: [TelemetryToken],
  onFailure: 'continue',
  register(context, options) {
    const { endpoint } = options;
    let sdk: Sdk | undefined;
    const provided: Telemetry = {
      enabled: endpoint !== undefined,
      tracer: (scope) => running().tracer(scope),
      meter: (scope) => running().meter(scope),
    };
    function running(): Sdk {
      if (!sdk) throw new Error('telemetry is asked for spans or instruments although it is not enabled');
      return sdk;
    }
    context.provide(TelemetryToken, () => provided);
    context.check({ name: 'stack.plaintext', run: () => plaintextCheck(endpoint, process.env) });
    if (endpoint === undefined) return;

    context.onStart(async () => {
      const { services } = context;
      const host = plaintextHost(endpoint);
      if (host !== undefined) {
        const remedy = 'use the OTLP gateway, port 443, with a client certificate';
        services.logger.warn({ host, remedy }, 'telemetry.plaintext');
      }
      const { startSdk } = await import('./sdk.ts');
      sdk = startSdk({
        ...options,
        // The receiver listens after every plugin has started, perhaps on another port each time.
        endpoint: () =>
          endpoint === OWN ? readRuntimeFile(services.dataDir)?.surfaces.otlpHttp?.url : endpoint,
        token: tokenReader(options.tokenFile, endpoint, services.find(IngestKeysToken)),
        log: () => services.log.status(),
      });
    });
    context.onStop(() => sdk?.stop());
  },
});
