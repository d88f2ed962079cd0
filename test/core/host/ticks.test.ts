import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';

const bin = new URL('../../../bin/', import.meta.url);

test('the object that Node makes for a process.nextTick is kept from the start, so that V8 keeps its shape', async (t) => {
  const ticks: { kept?: object } = await import(new URL('ticks.js', bin).href);
  await turn();
  const { kept = {} } = ticks;
  t.true('callback' in kept && 'args' in kept, 'what is kept is such an object');
  t.deepEqual(Object.getOwnPropertySymbols(kept).map(String).slice(0, 1), ['Symbol(async_id_symbol)']);
  // Nothing of a process tells of it but its speed after hours.
  t.regex(readFileSync(new URL('holdfast.js', bin), 'utf8'), /^ {4}await import\('\.\/ticks\.js'\);$/m);
});
