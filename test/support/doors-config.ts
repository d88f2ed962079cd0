import { writeConfig } from './cli.ts';

const here = (file: string) => new URL(file, import.meta.url).href;

/**
 * A configuration with one plugin of everything: the door of these tests, its effects, a topic, a schedule, a surface
 * and a command.
 *
 * @param changes statements between the imports and the plugin, e.g. `door = {...}` to edit the machine
 */
export function doorsConfig(dir: string, changes = ''): string {
  const body = `
let door = original;
${changes}
const knock = defineTopic('test.knock', z.object({ by: z.string() }), 'Somebody wants in.');
const tick = defineTopic('test.tick', z.object({}), 'A minute has passed.');
const doors = definePlugin({
  name: 'doors',
  options: z.strictObject({ port: z.int().default(0) }),
  register(ctx, { port }) {
    ctx.actor({ ...door, describe });
    ctx.route(knock, door, ({ payload }) => [{ key: 'front', event: { type: 'OPEN', ...payload } }]);
    ctx.effect('lamp.on', () => undefined, { onRecovery: 'retry', adapter: 'lamp' });
    ctx.effect('bell.ring', () => ({ type: 'RANG', loud: true }), { onRecovery: 'retry', adapter: 'bell, lamp' });
    ctx.schedule('* * * * *', tick);
    ctx.route(tick, door, () => [{ key: 'clock', event: { type: 'KNOCK' } }]);
    ctx.command({
      name: 'doors count [street]',
      summary: 'Counts the doors',
      example: 'holdfast doors count "High Street" --lit',
      flags: [{ flags: '--lit', summary: 'only lit ones' }],
      run: ([street = 'anywhere'], flags, { print, json }) => {
        print(json ? JSON.stringify({ street }) : \`2 doors in \${street}\${flags.lit ? ', lit' : ''}\`);
      },
    });
  },
});
function describe({ event }) {
  if (event.type === 'OPEN') return \`\${event.by} opens the door\`;
  return event.type === 'KNOCK' ? '' : undefined;
}
export default defineConfig({ plugins: [doors()] });`;
  return writeConfig(dir, body, [
    `import { defineTopic } from 'holdfast';`,
    `import { door as original, doorMachine } from ${JSON.stringify(here('./door.ts'))};`,
  ]);
}
