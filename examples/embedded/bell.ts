/** A plugin of this program: a machine, an effect, an MCP route, a page and a command. */
import { McpServer } from '@modelcontextprotocol/server';
import {
  addTool,
  defineActor,
  definePlugin,
  defineTopic,
  listeningOf,
  listenOptions,
  mcpRoutes,
} from 'holdfast';
import { assign, effect, setup } from 'holdfast/machines';
import { z } from 'zod';

const machine = setup({
  types: {} as { context: { rings: number }; events: { type: 'RUNG' } },
  delays: { rest: 200 },
  actions: {
    count: assign({ rings: ({ context }) => context.rings + 1 }),
    'bell.chime': effect<{ rings: number }>(),
  },
}).createMachine({
  id: 'bell',
  context: { rings: 0 },
  initial: 'quiet',
  states: {
    quiet: {
      on: {
        RUNG: {
          target: 'resting',
          actions: ['count', { type: 'bell.chime', params: ({ context }) => ({ rings: context.rings }) }],
        },
      },
    },
    resting: { after: { rest: 'quiet' } },
  },
});

export const rung = defineTopic('bell.rung', z.object({ door: z.string() }), 'Somebody pressed a bell.');
export const bellActor = defineActor({ type: 'bell.door', machine, version: 1 });

/** @param chimed called when the effect runs, after its record is durable */
export const bell = (chimed: (rings: number) => void) =>
  definePlugin({
    name: 'bell',
    options: z.strictObject(listenOptions(0)),
    env: { BELL_PORT: 'port' },
    register(context, options) {
      context.actor(bellActor);
      context.route(rung, bellActor, ({ payload }) => [{ key: payload.door, event: { type: 'RUNG' } }]);
      context.effect('bell.chime', ({ rings }: { rings: number }) => chimed(rings), { onRecovery: 'fail' });
      context.http(
        { name: 'bell', portVariable: 'BELL_PORT', ...listeningOf(options) },
        (http, { actors }) => {
          http.get('/', async () => ({ rings: actors.get(bellActor, 'front')?.context.rings ?? 0 }));
        },
      );
      context.contribute(mcpRoutes, ({ bus }) => ({
        name: 'bell',
        writes: true,
        server: () => {
          const server = new McpServer({ name: 'bell', version: '1.0.0' });
          addTool(server, {
            name: 'ring',
            description: 'Rings the bell of a door.',
            input: z.object({ door: z.string() }),
            annotations: { readOnlyHint: false },
            async answer({ door }) {
              bus.publish(rung, { door });
              return { door };
            },
          });
          return server;
        },
      }));
      context.command({
        name: 'bell doors',
        summary: 'Lists the doors',
        example: 'holdfast bell doors',
        run(_args, _flags, { print }) {
          print('front');
        },
      });
    },
  });
