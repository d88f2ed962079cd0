/**
 * An HTTP API as an MCP route, by its OpenAPI document. The digest is what `holdfast gateway openapi examples/openapi/tickets.yaml`
 * prints; the token lies in a file (mode 0600) that HOLDFAST_MCP_TICKETS_TOKEN_FILE names.
 *
 *     npx holdfast start --config examples/openapi/plugins.config.ts --data-dir /tmp/tickets
 */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'holdfast';
import { gateway, overwrite } from 'holdfast/plugins/gateway';

export default defineConfig({
  plugins: [
    gateway({
      routes: [
        overwrite({
          name: 'tickets',
          openapi: {
            document: fileURLToPath(new URL('tickets.yaml', import.meta.url)),
            digest: 'sha256:a024c5f6e53b399b74a8cb864295e092a6700258f8e6928d7467bc3fbef61923',
            baseUrl: process.env.TICKETS_URL ?? 'http://127.0.0.1:8080/v1',
            tags: ['read'],
          },
        }),
      ],
    }),
  ],
});
