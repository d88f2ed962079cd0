// What deploy/holdfast.service runs: everything, with embedded services where no other is named. Copy it to /etc/holdfast/,
// take out what does not run here, and name the rest by options or by variables in /etc/holdfast/holdfast.env
// (docs/reference/variables.md). plugins.config.ts of the repository explains each entry. Surfaces listen on loopback.
import { defineConfig } from 'holdfast';
import { alerts } from 'holdfast/plugins/alerts';
import { collector } from 'holdfast/plugins/collector';
import { columnar } from 'holdfast/plugins/columnar';
import { consolePlugin } from 'holdfast/plugins/console';
import { credentialFree, gateway, overwrite, relay } from 'holdfast/plugins/gateway';
import { incidents } from 'holdfast/plugins/incidents';
import { jobs } from 'holdfast/plugins/jobs';
import { kubernetes } from 'holdfast/plugins/kubernetes';
import { memory } from 'holdfast/plugins/memory';
import { memoryStore } from 'holdfast/plugins/memory-store';
import { otlp } from 'holdfast/plugins/otlp';
import { reconciler } from 'holdfast/plugins/reconciler';
import { restore } from 'holdfast/plugins/restore';
import { router, routerRemote } from 'holdfast/plugins/router';
import { secretsFolder, secretsKv } from 'holdfast/plugins/secrets';
import { telemetry } from 'holdfast/plugins/telemetry';
import { uptime } from 'holdfast/plugins/uptime';
import { uptimeMonitor } from 'holdfast/plugins/uptime-monitor';
import { watchdog } from 'holdfast/plugins/watchdog';

export default defineConfig({
  plugins: [
    ...(process.env.HOLDFAST_NATS_URL ? [(await import('holdfast/plugins/cluster')).cluster()] : []),
    process.env.HOLDFAST_ROUTER_URL ? routerRemote() : router(),
    reconciler(),
    gateway({
      routes: [
        overwrite({ name: 'library_docs' }),
        overwrite({ name: 'web_search' }),
        overwrite({ name: 'web_crawl' }),
        overwrite({ name: 'media_gen' }),
        overwrite({ name: 'router_ro' }),
        overwrite({ name: 'columnar_ro' }),
        overwrite({ name: 'columnar_rw', writes: true }),
        relay({ name: 'memory', audience: 'mcp-public', callbackPort: 51_338 }),
        relay({
          name: 'cluster',
          audience: '{gateway_url}/cluster/mcp',
          callbackPort: 51_337,
          scopes: ['mcp-cluster', 'groups', 'offline_access'],
        }),
        credentialFree({ name: 'repo_wiki' }),
      ],
    }),
    incidents(),
    columnar(),
    ...(process.env.HOLDFAST_MEMORY_URL ? [] : [memoryStore()]),
    memory(),
    restore(),
    process.env.HOLDFAST_SECRETS_URL ? secretsKv() : secretsFolder(),
    collector(),
    otlp(),
    uptime(),
    ...(process.env.HOLDFAST_KUBECONFIG || process.env.KUBERNETES_SERVICE_HOST ? [kubernetes()] : []),
    ...(process.env.HOLDFAST_UPTIME_URL ? [] : [uptimeMonitor()]),
    watchdog(process.env.HOLDFAST_CLICKHOUSE_URL ? { signals: ['otel_logs', 'otel_metrics_gauge'] } : {}),
    jobs(),
    telemetry(),
    alerts(),
    consolePlugin(),
  ],
});
