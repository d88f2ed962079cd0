/**
 * A whole plugin: an API that takes a ring, a topic, a route to an actor, an effect, an error of its own. Its machine is in `door.ts`.
 *
 *     npx holdfast start --config examples/doorbell/plugins.config.ts --data-dir /tmp/doorbell
 *     curl -X POST http://127.0.0.1:7900/ring/front
 *     npx holdfast log list --config examples/doorbell/plugins.config.ts --data-dir /tmp/doorbell
 */
import { defineActor, defineErrors, definePlugin, defineTopic, listeningOf, listenOptions } from 'holdfast';
import { z } from 'zod';
import { door } from './door.ts';

export const DoorbellError = defineErrors({
  HF_DOORBELL_JAMMED: {
    status: 503,
    what: 'The bell of {door} is jammed.',
    remedy: 'Let it rest for a minute, then press it again.',
  },
});

const rung = defineTopic('doorbell.rung', z.object({ door: z.string() }), 'Somebody pressed a bell.');
const doorActor = defineActor({
  type: 'doorbell.door',
  machine: door,
  version: 1,
  describe: ({ event }) => (event.type === 'RUNG' ? 'somebody rings' : undefined),
});

/** @example doorbell({ port: 7901, jamsAfter: 3 }) */
export const doorbell = definePlugin({
  name: 'doorbell',
  options: z.strictObject({
    /** Where it listens, and who needs its token: the same options as of every surface. */
    ...listenOptions(7900),
    /** After how many rings the bell jams. */
    jamsAfter: z.int().min(1).default(100),
  }),
  env: { HOLDFAST_DOORBELL_PORT: 'port' },
  errors: DoorbellError,
  // What is returned here reaches every handler below.
  start({ bus, logger }, { jamsAfter }) {
    return { bus, logger, jamsAfter };
  },
  register(ctx, options) {
    ctx.actor(doorActor);
    ctx.route(rung, doorActor, ({ payload }) => [{ key: payload.door, event: { type: 'RUNG' } }]);
    ctx.effect(
      'doorbell.chime',
      ({ rings }: { rings: number }, { actor }, { logger, jamsAfter }) => {
        if (rings > jamsAfter) throw new DoorbellError('HF_DOORBELL_JAMMED', { door: actor });
        logger.info({ actor, rings }, 'doorbell.chimed');
      },
      { onRecovery: 'fail' }, // a chime that a crash interrupted is not repeated an hour later
    );
    const portVariable = 'HOLDFAST_DOORBELL_PORT';
    ctx.http({ name: 'doorbell', portVariable, ...listeningOf(options) }, (http, { bus }) => {
      // Nothing is decided here: the surface publishes the ring, and the machine decides.
      http.post<{ Params: { door: string } }>('/ring/:door', async (request) => {
        bus.publish(rung, { door: request.params.door }, { correlation: request.id });
        return { rung: true };
      });
    });
  },
});
