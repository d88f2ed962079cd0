// What deploy/ula-reconcile.service runs on the router's host: the reconciler beside a real router, its beats, its gauge and
// its alerts, and the `holdfast router …` commands. Copy it to /etc/holdfast/ and put your legs into it;
// docs/guides/reconcile-a-real-router.md goes through it, and names the variables of the router, the monitor, the collector
// and the webhook.
import { defineConfig } from 'holdfast';
import { alerts } from 'holdfast/plugins/alerts';
import { consolePlugin } from 'holdfast/plugins/console';
import { reconciler } from 'holdfast/plugins/reconciler';
import { routerRemote } from 'holdfast/plugins/router';
import { telemetry } from 'holdfast/plugins/telemetry';
import { uptime } from 'holdfast/plugins/uptime';

// Files of mode 0600 that belong to the unit's user. A secrets agent writes and rewrites them; each is read when it is used.
const secrets = process.env.HOLDFAST_SECRETS_DIR || '/etc/holdfast/ula-reconcile';

export default defineConfig({
  plugins: [
    routerRemote(),
    reconciler({
      // Legs that get a static address; Guest and Telework are refused here. Nothing is written until
      // `holdfast router adopt` has confirmed them; configuration management may say `adopted: true` instead.
      router_ula_reconciler_addresses: [
        { intf: 'eth1.10', label: 'Main', address: 'fd5e:21aa:90c4:10::1/64' },
        { intf: 'eth1.20', label: 'IoT', address: 'fd5e:21aa:90c4:20::1/64' },
        { intf: 'eth1.40', label: 'Lab', address: 'fd5e:21aa:90c4:40::1/64' },
        { intf: 'eth1.50', label: 'Core', address: 'fd5e:21aa:90c4:50::1/64' },
        { intf: 'eth1.70', label: 'MainWireless', address: 'fd5e:21aa:90c4:70::1/64' },
      ],
    }),
    // Beats to the monitor `router-ula`.
    uptime({ monitors: { 'router-ula': { tokenFile: `${secrets}/push-token` } } }),
    // The gauge `router.ula_reconcile.up`, each minute.
    telemetry({ tokenFile: `${secrets}/ingest-key` }),
    // What the reconciler itself raises. The rule over the gauge runs elsewhere: here it would end with what it watches.
    alerts({ rules: [] }),
    // Health and metrics on 127.0.0.1:7800.
    consolePlugin(),
  ],
});
