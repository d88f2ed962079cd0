import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { definePlugin, mcpRoutes } from '../../src/index.ts';

/** A plugin that brings a route: a server in this process whose tool greets with the plugin's words. */
export const greeter = definePlugin({
  name: 'greeter',
  options: z.strictObject({
    words: z.string().default('hello'),
    route: z.string().default('greeter'),
    url: z.url().optional(),
    onDemand: z.boolean().default(false),
  }),
  start: () => ({ greeted: [] as string[] }),
  register(context, { words, route, url, onDemand }) {
    context.contribute(mcpRoutes, ({ greeted }) => ({
      name: route,
      ...(url === undefined ? { onDemand, server: () => greetingServer(words, greeted) } : { url }),
    }));
  },
});

/** Another plugin with the same route. */
export const rival = definePlugin({
  name: 'rival',
  options: z.strictObject({}),
  register(context) {
    context.contribute(mcpRoutes, () => ({ name: 'greeter', server: () => greetingServer('away', []) }));
  },
});

function greetingServer(words: string, greeted: string[]): McpServer {
  const server = new McpServer({ name: 'greeter', version: '1.0.0' });
  const inputSchema = z.object({ name: z.string() });
  server.registerTool('greet', { description: 'Greets.', inputSchema }, async ({ name }, { mcpReq }) => {
    greeted.push(name);
    if (name === 'slow') {
      await new Promise<void>((resolve) => {
        mcpReq.signal.addEventListener('abort', () => resolve(), { once: true });
      });
      greeted.push('gave up');
    }
    return { content: [{ type: 'text', text: `${words} ${name}` }] };
  });
  return server;
}
