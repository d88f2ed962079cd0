// What runs here. The runtime, `holdfast graph` and the commands of plugins read this file; it may also lie elsewhere
// (`--config FILE`), and then imports `defineConfig` from 'holdfast' and these plugins from 'holdfast/plugins/<name>'.
//
// To add a plugin: write one file with `definePlugin` (its contract: src/core/host/plugin/definition.ts), import it here,
// and call it in the list with its options. Nothing else has to know of it.
//   - The order of the list does not matter: a plugin starts after those that provide what it requires.
//   - To replace an adapter, take out the plugin that provides its token and put in another that provides the same.
//   - A misspelt or missing option ends the start with its name. A variable that the plugin's `env` names overrides its
//     option: HOLDFAST_ROUTER_PORT=0 npm run up.
//   - Secrets do not belong here: give the path of a file of mode 0600 instead.
import { defineConfig } from './src/core/host/config/define-config.ts';
import { alerts } from './src/plugins/alerts/index.ts';
import { collector } from './src/plugins/collector/index.ts';
import { columnar } from './src/plugins/columnar/index.ts';
import { consolePlugin } from './src/plugins/console/index.ts';
import { credentialFree, gateway, overwrite, relay } from './src/plugins/gateway/index.ts';
import { incidents } from './src/plugins/incidents/index.ts';
import { jobs } from './src/plugins/jobs/index.ts';
import { kubernetes } from './src/plugins/kubernetes/index.ts';
import { memory } from './src/plugins/memory/index.ts';
import { memoryStore } from './src/plugins/memory-store/index.ts';
import { otlp } from './src/plugins/otlp/index.ts';
import { reconciler } from './src/plugins/reconciler/index.ts';
import { restore } from './src/plugins/restore/index.ts';
import { router, routerRemote } from './src/plugins/router/index.ts';
import { secretsFolder, secretsKv } from './src/plugins/secrets/index.ts';
import { telemetry } from './src/plugins/telemetry/index.ts';
import { uptime } from './src/plugins/uptime/index.ts';
import { uptimeMonitor } from './src/plugins/uptime-monitor/index.ts';
import { watchdog } from './src/plugins/watchdog/index.ts';

export default defineConfig({
  plugins: [
    // Several hosts as one system, over the servers of NATS that HOLDFAST_NATS_URL names, with HOLDFAST_CLUSTER_KEY_FILE:
    // docs/guides/several-hosts.md. Without it nothing of this is loaded.
    ...(process.env.HOLDFAST_NATS_URL ? [(await import('./src/plugins/cluster/index.ts')).cluster()] : []),
    // The router: a real one elsewhere when HOLDFAST_ROUTER_URL names its config API (with HOLDFAST_REDIS_URL for its
    // events), else our own on port 8837: every write is applied, persisted, and reverted unless committed in time.
    // HOLDFAST_REDIS_URL makes our own keep its config in a Redis: docs/guides/config-in-redis.md.
    process.env.HOLDFAST_ROUTER_URL ? routerRemote() : router(),
    // Holds legs of the router to a static address, which a save of the phone app drops. Our own router's legs are those of
    // the example config. For a router elsewhere list yours, which `holdfast router adopt` confirms before anything is
    // written: reconciler({ router_ula_reconciler_addresses: [{ intf: 'eth1.10', label: 'Main', address: 'fd00:10::1/64' }] })
    reconciler(),
    // The MCP gateway on port 4000. A server is one entry; its upstream comes from HOLDFAST_MCP_<SERVER>_URL and
    // HOLDFAST_MCP_<SERVER>_TOKEN_FILE (or _TOKEN), and until then it is listed as not configured.
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
    // The event log as an MCP server of that gateway, for keys that list `incidents`: docs/guides/incidents-by-agent.md.
    incidents(),
    // Logs, metrics and spans: the ClickHouse that HOLDFAST_CLICKHOUSE_URL names, else the same engine in this process,
    // which keeps them in `<data dir>/columnar` for HOLDFAST_RETENTION_DAYS (30): docs/stack.md.
    // Its password lies in the secrets store: columnar({ password: 'clickstack#admin_password' })
    columnar(),
    // The memory store: a real one elsewhere when HOLDFAST_MEMORY_URL names its REST port (with
    // HOLDFAST_MEMORY_API_KEY_FILE), else our own on port 6333. One adapter speaks to either: docs/memory.md.
    ...(process.env.HOLDFAST_MEMORY_URL ? [] : [memoryStore()]),
    memory(),
    // Restore drills of it: `holdfast restore drill --path a`. By themselves every Sunday, and an alert without one for nine
    // days: restore({ schedule: { a: '0 5 * * 0', b: '30 5 * * 0' }, overdueMs: 9 * 24 * 3_600_000 }). For a real store they
    // need an instance of their own (HOLDFAST_MEMORY_SCRATCH_URL) or the cluster.
    restore(),
    // Secrets named `<path>#<property>`, as files of mode 0600 in a folder: `<data dir>/secrets/store/<path>/<property>`
    // unless HOLDFAST_SECRETS_DIR names another. With HOLDFAST_SECRETS_URL and HOLDFAST_SECRETS_TOKEN_FILE: on a server of
    // the KV version 2 protocol. `secretsEnvironment()` reads them from variables instead.
    process.env.HOLDFAST_SECRETS_URL ? secretsKv() : secretsFolder(),
    // The ingest keys of telemetry: those of the collector whose effective config HOLDFAST_COLLECTOR_CONFIG names (the
    // file is watched), else one of our own, made in `<data dir>/secrets/otel_ingest_api_key`.
    collector(),
    // Receives telemetry: OTLP over HTTP on port 4318 and gRPC on 4317. A listener for producers from outside, which must
    // show a client certificate too: HOLDFAST_OTLP_MTLS_PORT=4319 and otlp({ mtls: { certFile: '/etc/holdfast/tls.crt',
    // keyFile: '/etc/holdfast/tls.key', clientCaFile: '/etc/holdfast/clients.crt' } })
    otlp(),
    // Beats of the watchdog and the reconciler go to the uptime monitor that HOLDFAST_UPTIME_URL names, with the push token in
    // `<data dir>/secrets/push/<monitor>`: docs/uptime.md.
    uptime(),
    // The cluster's API, by the kubeconfig that HOLDFAST_KUBECONFIG names or the account of the pod this runs in: restore
    // drills and the rotation of keys use it. Without either there is no cluster, and nothing of it is loaded.
    ...(process.env.HOLDFAST_KUBECONFIG || process.env.KUBERNETES_SERVICE_HOST ? [kubernetes()] : []),
    // Our own monitor on port 3001 where no other is named, with status pages at /status/<slug>. One more of yours:
    // uptimeMonitor({ monitors: [{ name: 'backup', interval: 86_400, retries: 1, retryInterval: 3_600 }, …] })
    ...(process.env.HOLDFAST_UPTIME_URL ? [] : [uptimeMonitor()]),
    // Every five minutes: does the database answer, do signals arrive, are engines what they must be? Only then a heartbeat.
    // With a ClickHouse elsewhere, its logs and gauges are required from their first row on. With the embedded engine, which
    // may hold a trial, a signal is required once it has come for a day, or: watchdog({ signals: ['otel_logs'] })
    watchdog(process.env.HOLDFAST_CLICKHOUSE_URL ? { signals: ['otel_logs', 'otel_metrics_gauge'] } : {}),
    // Scheduled runs, ours and the Jobs of the cluster: why one failed, and why it is still there. Only of some namespaces:
    // jobs({ namespaces: ['observability', 'agent-memory'] })
    jobs(),
    // Our own spans and metrics, where OTEL_EXPORTER_OTLP_ENDPOINT names a receiver, or `own` for the one of this process.
    telemetry(),
    // Alerts: the rules of the NAS backup, the watchdog and the reconciler; HOLDFAST_ALERTS_CLUSTER_EDGE_URL (monitors that
    // are DOWN) and HOLDFAST_ALERTS_CLUSTER_INFRA_URL (all else), or …_URL_FILE, say whose webhooks are told: docs/alerts.md.
    alerts(),
    // Health, readiness and metrics of the process on port 7800.
    consolePlugin(),
  ],
});
