import { defineConfig } from 'holdfast';
import { gateway } from 'holdfast/plugins/gateway';
import { parcelsRoute } from './plugin.ts';

export default defineConfig({
  plugins: [
    gateway(),
    parcelsRoute({
      url: process.env.PARCELS_URL ?? 'http://127.0.0.1:8080',
      keyFile: process.env.PARCELS_KEY_FILE ?? '/etc/holdfast/parcels-key',
    }),
  ],
});
