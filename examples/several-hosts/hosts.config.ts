import { defineConfig } from 'holdfast';
import { cluster } from 'holdfast/plugins/cluster';
import { consolePlugin } from 'holdfast/plugins/console';
import { gateway } from 'holdfast/plugins/gateway';
import { incidents } from 'holdfast/plugins/incidents';
import { reconciler } from 'holdfast/plugins/reconciler';
import { routerRemote } from 'holdfast/plugins/router';

/** One of several hosts: each holds the gateway, and one of them at a time the address of the router. */
export default defineConfig({
  plugins: [
    cluster({ leaseMs: 5_000 }),
    routerRemote({ url: 'http://127.0.0.1:8837', lookMs: 1_000 }),
    reconciler({
      router_ula_reconciler_addresses: [{ intf: 'eth1.10', label: 'Main', address: 'fd00:10::1/64' }],
      adopted: true,
    }),
    gateway(),
    incidents(),
    consolePlugin(),
  ],
});
