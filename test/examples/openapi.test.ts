import { readFileSync } from 'node:fs';
import test from 'ava';
import { serveOwnModules } from '../../src/core/host/config/load.ts';
import { HttpClient } from '../../src/core/host/http/client.ts';
import type { PluginEntry } from '../../src/core/host/plugin/definition.ts';
import { findPinned, readDocument } from '../../src/plugins/gateway/openapi/source.ts';
import { readRouteEntries } from '../../src/plugins/gateway/routes/entries.ts';

serveOwnModules();
const { default: config } = await import('../../examples/openapi/plugins.config.ts');

test('[G1] the example of an HTTP API pins its document, whose operations that only read are tools', async (t) => {
  const [gateway] = config.plugins as readonly PluginEntry[];
  const { definitions, rejected } = readRouteEntries((gateway!.options as { routes: unknown[] }).routes, {});
  t.deepEqual(rejected, []);
  const { openapi } = definitions[0]!.entry;
  const http = new HttpClient({ timeoutMs: 1_000, answerLimit: 1_024 });
  t.teardown(() => http.close());
  const found = await findPinned(openapi!.document, openapi!.digest, http);
  t.is(found.text, readFileSync(openapi!.document, 'utf8'));
  const { tools, leftOut } = await readDocument(openapi!.document, found, { ...openapi!, writes: false });
  t.deepEqual(
    tools.map(({ name }) => name),
    ['listTickets', 'getTicket'],
  );
  t.deepEqual(leftOut, []);
});
