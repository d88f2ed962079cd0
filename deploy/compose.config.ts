// What deploy/compose.yml runs: all but the embedded columnar database, which the image does not have.
import { defineConfig } from 'holdfast';
import { alerts } from 'holdfast/plugins/alerts';
import { collector } from 'holdfast/plugins/collector';
import { columnar } from 'holdfast/plugins/columnar';
import { consolePlugin } from 'holdfast/plugins/console';
import { credentialFree, gateway } from 'holdfast/plugins/gateway';
import { jobs } from 'holdfast/plugins/jobs';
import { memory } from 'holdfast/plugins/memory';
import { memoryStore } from 'holdfast/plugins/memory-store';
import { otlp } from 'holdfast/plugins/otlp';
import { reconciler } from 'holdfast/plugins/reconciler';
import { restore } from 'holdfast/plugins/restore';
import { router } from 'holdfast/plugins/router';
import { secretsFolder } from 'holdfast/plugins/secrets';
import { telemetry } from 'holdfast/plugins/telemetry';
import { uptime } from 'holdfast/plugins/uptime';
import { uptimeMonitor } from 'holdfast/plugins/uptime-monitor';
import { watchdog } from 'holdfast/plugins/watchdog';

// Ports that an engine publishes must listen beyond the container's loopback. Without TLS, because compose.yml publishes them
// on the host's loopback only and no other container is in their network. Whoever publishes them to other machines
// gives each surface `tls: { certFile, keyFile }` in the place of `insecure`.
const published = { host: '0.0.0.0', insecure: true };
// In a container every caller comes from another address, so all of them need the token.
const guarded = { ...published, tokenFile: `${process.env.CREDENTIALS_DIRECTORY}/surface-token` };

const telemetryStack = process.env.HOLDFAST_CLICKHOUSE_URL
  ? [columnar(), collector(), otlp(published), watchdog({ signals: ['otel_logs', 'otel_metrics_gauge'] })]
  : [];

export default defineConfig({
  plugins: [
    router(guarded),
    reconciler(),
    // It asks everybody for a virtual key.
    gateway({ ...published, routes: [credentialFree({ name: 'repo_wiki' })] }),
    memoryStore(guarded),
    memory(),
    restore(),
    secretsFolder(),
    ...telemetryStack,
    uptime(),
    uptimeMonitor(guarded),
    jobs(),
    telemetry(),
    alerts(),
    consolePlugin(guarded),
  ],
});
