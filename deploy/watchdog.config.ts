// What deploy/watchdog.service and deploy/watchdog.cronjob.yaml run: one look at a remote database, one push, and nothing
// else. The database and the monitor are named by variables: HOLDFAST_CLICKHOUSE_URL, HOLDFAST_UPTIME_URL. Its secrets lie
// where deploy/entrypoint.mjs has copied them to.
import { defineConfig } from 'holdfast';
import { columnar } from 'holdfast/plugins/columnar';
import { uptime } from 'holdfast/plugins/uptime';
import { watchdog } from 'holdfast/plugins/watchdog';

export default defineConfig({
  plugins: [
    columnar(),
    uptime({
      monitors: { 'clickstack-watchdog': { tokenFile: `${process.env.CREDENTIALS_DIRECTORY}/push-token` } },
    }),
    // What must never be silent here. A job whose data folder is empty each time remembers no signal: one that is not
    // declared would never be required.
    watchdog({
      signals: ['otel_logs', 'otel_metrics_gauge'],
      producers: ['otel_logs', 'otel_metrics_gauge'],
    }),
  ],
});
