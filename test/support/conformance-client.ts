/**
 * The official client as the conformance suite starts it: the suite's own server is the last argument. With
 * `CONFORMANCE_GATEWAY` the client calls `<that>/<scenario>/mcp` instead, after it has told the server's address to
 * `CONFORMANCE_FORWARD`, from where the gateway's route of that scenario gets it.
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const {
  MCP_CONFORMANCE_SCENARIO: scenario = '',
  CONFORMANCE_GATEWAY: gateway,
  CONFORMANCE_FORWARD: forward,
  CONFORMANCE_KEY: key,
} = process.env;
const server = process.argv.at(-1) ?? '';
const name = scenario.replaceAll('-', '_');
if (forward !== undefined) await fetch(`${forward}/${name}`, { method: 'PUT', body: server });

/** What each scenario wants called, beside the list of tools. */
const CALLS: Readonly<Record<string, readonly [tool: string, args: Record<string, unknown>]>> = {
  tools_call: ['add_numbers', { a: 5, b: 3 }],
  'elicitation-sep1034-client-defaults': ['test_client_elicitation_defaults', {}],
  'sse-retry': ['test_reconnection', {}],
};
const client = new Client(
  { name: 'official', version: '1.0.0' },
  { capabilities: { elicitation: { form: { applyDefaults: true } } } },
);
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: {} }));
const transport = new StreamableHTTPClientTransport(new URL(gateway ? `${gateway}/${name}/mcp` : server), {
  requestInit: { headers: { ...(key !== undefined && { 'x-gateway-api-key': `Bearer ${key}` }) } },
});
await client.connect(transport as never);
await client.listTools();
const [tool, args] = CALLS[scenario] ?? [];
if (tool !== undefined) await client.callTool({ name: tool, arguments: args ?? {} });
await transport.close();
