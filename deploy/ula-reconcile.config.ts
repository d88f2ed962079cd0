// What deploy/ula-reconcile.service runs: the reconciler beside a real router, and nothing else. Copy it to
// /etc/holdfast/ and put your legs into it; docs/guides/reconcile-a-real-router.md goes through it.
//
// The router is named by variables: HOLDFAST_ROUTER_URL (needed), HOLDFAST_REDIS_URL, HOLDFAST_ROUTER_CHANNEL_PREFIX.
import { defineConfig } from 'holdfast';
import { consolePlugin } from 'holdfast/plugins/console';
import { reconciler } from 'holdfast/plugins/reconciler';
import { routerRemote } from 'holdfast/plugins/router';

export default defineConfig({
  plugins: [
    routerRemote(),
    reconciler({
      // Legs that get a static address; Guest and Telework are refused here.
      router_ula_reconciler_addresses: [
        { intf: 'eth1.10', label: 'Main', address: 'fd5e:21aa:90c4:10::1/64' },
        { intf: 'eth1.20', label: 'IoT', address: 'fd5e:21aa:90c4:20::1/64' },
        { intf: 'eth1.40', label: 'Lab', address: 'fd5e:21aa:90c4:40::1/64' },
        { intf: 'eth1.50', label: 'Core', address: 'fd5e:21aa:90c4:50::1/64' },
        { intf: 'eth1.70', label: 'MainWireless', address: 'fd5e:21aa:90c4:70::1/64' },
      ],
    }),
    // Health and metrics on 127.0.0.1:7800.
    consolePlugin(),
  ],
});
