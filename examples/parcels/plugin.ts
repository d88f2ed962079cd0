/**
 * An MCP route over a REST API: two tools, served in this process behind the gateway. The API's key lies in a file, is read
 * at each call, and is in no answer.
 *
 *     npx holdfast start --config examples/parcels/plugins.config.ts --data-dir /tmp/parcels
 */
import { readFile } from 'node:fs/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { addTool, defineErrors, definePlugin, mcpRoutes } from 'holdfast';
import { z } from 'zod';

export const ParcelsError = defineErrors({
  HF_PARCELS_ANSWER: {
    status: 502,
    what: 'The parcel service answered {status}.',
    remedy: 'Look whether its address and key are right, and whether it works.',
  },
});

const parcel = z.object({ id: z.string(), status: z.string(), due: z.string().optional() });
const parcels = z.object({ parcels: z.array(parcel) });

/** @example parcels({ url: 'https://parcels.example.net/v1', keyFile: '/etc/holdfast/parcels-key' }) */
export const parcelsRoute = definePlugin({
  name: 'parcels',
  options: z.strictObject({
    /** Base of the API. */
    url: z.url({ protocol: /^https?$/ }),
    /** File (mode 0600) with the key. */
    keyFile: z.string().min(1),
  }),
  errors: ParcelsError,
  register(context, { url, keyFile }) {
    const ask = async <T>(path: string, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> => {
      const key = (await readFile(keyFile, 'utf8')).trim();
      const answer = await fetch(`${url}${path}`, {
        headers: { 'x-api-key': key },
        redirect: 'error',
        signal,
      });
      if (!answer.ok) throw new ParcelsError('HF_PARCELS_ANSWER', { status: answer.status });
      return schema.parse(await answer.json()); // unknown fields are left out
    };
    context.contribute(mcpRoutes, () => ({ name: 'parcels', server: () => parcelServer(ask) }));
  },
});

type Ask = <T>(path: string, schema: z.ZodType<T>, signal: AbortSignal) => Promise<T>;

function parcelServer(ask: Ask): McpServer {
  const server = new McpServer({ name: 'parcels', version: '1.0.0' });
  addTool(server, {
    name: 'list',
    description: 'Lists the parcels that are on their way to us.',
    input: z.object({}),
    answer: (_given, signal) => ask('/parcels', parcels, signal),
  });
  addTool(server, {
    name: 'track',
    description: 'Says where a parcel is, and when it is due.',
    input: z.object({
      id: z
        .string()
        .regex(/^[A-Z0-9]{6,20}$/)
        .describe('The number of the parcel'),
    }),
    answer: ({ id }, signal) => ask(`/parcels/${id}`, parcel, signal),
  });
  return server;
}
