import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import { askInstance } from '../../core/host/operations/ask.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext } from '../../core/host/plugin/definition.ts';

const RESYNC_PATH = '/reconciler/resync';

/** Somebody at the command line wants every leg looked at, whatever the events say. */
export const resyncAsked: Topic<Record<string, never>> = defineTopic(
  'router.resync_asked',
  z.object({}),
  'An operator asks for every leg to be looked at.',
);

interface Resync {
  readonly correlation: string;
  readonly legs: readonly string[];
}

/** Registers `holdfast router resync` and what it posts to, through the control socket. @param legs interfaces that are held */
export function registerResync(context: PluginContext, legs: readonly string[]): void {
  context.control((surface) => {
    serveOperation(surface, RESYNC_PATH, z.object({}), (_asked, { correlation }) => {
      context.services.bus.publish(resyncAsked, {}, { correlation });
      return { correlation, legs };
    });
  });
  context.command({
    name: 'router resync',
    summary: 'Has the running reconciler look at every leg now, and put back what is missing',
    example: 'holdfast router resync',
    async run(_args, _flags, command) {
      const { json, print } = command;
      const body = await askInstance<Resync>(command, RESYNC_PATH, {}, 'it runs no reconciler');
      if (json) return print(JSON.stringify(body));
      print(`${legs.length} legs are looked at: ${legs.join(', ')}`);
      print(`What comes of it: holdfast log list --correlation ${body.correlation}`);
    },
  });
}
