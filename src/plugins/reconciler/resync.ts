import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/index.ts';
import { HoldfastError } from '../../core/errors/index.ts';
import { isObject } from '../../core/json.ts';
import type { PluginContext } from '../../core/plugin/index.ts';

const RESYNC_PATH = '/reconciler/resync';

/** Somebody at the command line wants every leg looked at, whatever the events say. */
export const resyncAsked: Topic<Record<string, never>> = defineTopic(
  'router.resync_asked',
  z.object({}),
  'An operator asks for every leg to be looked at.',
);

/** Registers `holdfast router resync` and what it posts to, through the control socket. @param legs interfaces that are held */
export function registerResync(context: PluginContext, legs: readonly string[]): void {
  context.control((surface) => {
    surface.post(RESYNC_PATH, async (request) => {
      context.services.bus.publish(resyncAsked, {}, { correlation: request.id });
      return { correlation: request.id, legs };
    });
  });
  context.command({
    name: 'router resync',
    summary: 'Has the running reconciler look at every leg now, and put back what is missing',
    example: 'holdfast router resync',
    async run(_args, _flags, { dataDir, json, print, signal }) {
      const { postControl } = await import('../../core/cli/index.ts');
      const { status, body } = await postControl(dataDir, RESYNC_PATH, {}, signal);
      if (status !== 200 || !isObject(body)) {
        const reason = status === 404 ? 'it runs no reconciler' : `it answered ${status}`;
        throw new HoldfastError('HF_CONTROL_UNREACHABLE', { dir: dataDir, reason });
      }
      if (json) return print(JSON.stringify(body));
      print(`${legs.length} legs are looked at: ${legs.join(', ')}`);
      print(`What comes of it: holdfast log list --correlation ${String(body.correlation)}`);
    },
  });
}
