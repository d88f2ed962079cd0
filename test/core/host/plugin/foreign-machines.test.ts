import test from 'ava';
import pino from 'pino';
import { z } from 'zod';
import { definePlugin } from '../../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../../src/core/host/runtime/runtime.ts';
import { defineActor } from '../../../../src/core/kernel/actors/definition.ts';
import { setup } from '../../../../src/machines/effect.ts';
import { tempDir } from '../../../support/temp.ts';

interface Context {
  readonly rings: number;
  readonly by: string[];
}

const parts = setup({ types: { context: {} as Context, events: {} as { type: 'RUNG' } } });
const context = { rings: 0, by: [] };
const ring = (actions: ReturnType<typeof parts.assign>) => ({ context, on: { RUNG: { actions } } });
const machines = {
  clocked: parts.createMachine(ring(parts.assign({ rings: () => Date.now() }))),
  lucky: parts.createMachine(ring(parts.assign({ rings: () => Math.random() }))),
  mutating: parts.createMachine(
    ring(
      parts.assign(({ context }) => {
        context.by.push('somebody');
        return {};
      }),
    ),
  ),
  pure: parts.createMachine(ring(parts.assign({ rings: ({ context }) => context.rings + 1 }))),
};
const actors = Object.entries(machines).map(([name, machine]) =>
  defineActor({ type: `bells.${name}`, machine, version: 1 }),
);
const bells = definePlugin({
  name: 'bells',
  options: z.strictObject({}),
  register(context) {
    for (const actor of actors) context.actor(actor);
  },
});

test.serial(
  '[C3] outside of production a start names each impure machine of a plugin of the user',
  async (t) => {
    const started = async (env: string): Promise<Record<string, string>[]> => {
      const lines: Record<string, string>[] = [];
      const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
      const before = process.env.NODE_ENV;
      process.env.NODE_ENV = env;
      const plugins = [{ definition: bells.definition, options: {} }];
      const runtime = createRuntime({ plugins, dataDir: tempDir(t), logger });
      try {
        await runtime.start();
      } finally {
        await runtime.stop('test');
        if (before === undefined) delete process.env.NODE_ENV;
        else process.env.NODE_ENV = before;
      }
      return lines.filter(({ msg }) => msg === 'plugin.impure_machine');
    };
    const lines = await started('development');
    t.deepEqual(
      lines.map(({ code, actor, plugin }) => [code, plugin, actor]),
      ['clocked', 'lucky', 'mutating'].map((name) => ['HF_PLUGIN_IMPURE', 'bells', `bells.${name}`]),
    );
    t.regex(lines[0]?.what ?? '', /bells\.clocked.*Date in on\.RUNG/);
    t.regex(lines[1]?.what ?? '', /Math\.random in on\.RUNG/);
    t.regex(lines[2]?.what ?? '', /changed in place on RUNG/);
    t.regex(lines[0]?.remedy ?? '', /send the result as an event/);
    t.deepEqual(await started('production'), []);
  },
);
